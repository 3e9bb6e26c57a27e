/**
 * Validates uploaded storage states by the schema of the Browser Context API. Errors name members, never their values,
 * which may be secrets.
 */
import { parseJson } from '../../../contract/i-json.ts'
import { Problem } from '../../../contract/problem.ts'
import { schemaCompiler } from '../../../contract/response-validation.ts'
import { stateBytesMax } from '../../../domain/browser-contexts/storage-state.ts'
import { browserContextContract } from '../../../openapi/served-documents.ts'
import { formatBytes } from '../format.ts'

const validate = schemaCompiler(browserContextContract.document)({ $ref: '#/components/schemas/StorageState' })

export const fileTooLarge = `The file is too large. A storage state has at most ${formatBytes(stateBytesMax)}.`

/** The storage state as JSON text, as the API stores it; or why it is invalid, in sentences. */
export function readStorageState(file: Uint8Array): { state: string } | { error: string } {
  try {
    const value = parseJson(Buffer.from(file.buffer, file.byteOffset, file.byteLength))
    if (value === undefined) return { error: 'The file is empty.' }
    const error = validate(value)
    return error === undefined ? { state: JSON.stringify(value) } : { error: toSentence(error) }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const errors = error.problem.errors ?? []
    const sentences = errors.map((each) => toSentence(`${'pointer' in each ? each.pointer : ''} ${each.detail}`))
    return { error: sentences.join(' ') }
  }
}

/** @param error a JSON Pointer (RFC 6901), empty for the whole document, followed by what is wrong there. */
function toSentence(error: string): string {
  return `${error.startsWith('/') ? error : `The file ${error.trim()}`}.`
}
