/** What a process was built from, as its metrics and traces tell it. */
import packageJson from '../../../package.json' with { type: 'json' }
import { browserContextContract, executionContract } from '../../openapi/served-documents.ts'

export const build = {
  version: packageJson.version,
  execution_document: executionContract.documentHash,
  browser_context_document: browserContextContract.documentHash,
}
