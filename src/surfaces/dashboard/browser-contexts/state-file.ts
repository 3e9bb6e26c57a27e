/**
 * Storage states that people send as files. They are held to the rules of the Browser Context API, which its document
 * states, and what is wrong is told by the names of members and never by their values.
 */

import { schemaCompiler } from '../../../contract/answer-validation.ts'
import { parseJson } from '../../../contract/json.ts'
import { Problem } from '../../../contract/problem.ts'
import { stateBytesMax } from '../../../domain/browser-contexts/storage-state.ts'
import { browserContextContract } from '../../../openapi/served-documents.ts'
import { byteSize } from '../elements.ts'

const faultOf = schemaCompiler(browserContextContract.document)({ $ref: '#/components/schemas/StorageState' })

export const tooLarge = `A storage state may have ${byteSize(stateBytesMax)}, and this file has more.`

/** The storage state as JSON text, as the API would store it; or what is wrong with it, in sentences. */
export function readState(file: Uint8Array): { state: string } | { fault: string } {
  try {
    const value = parseJson(Buffer.from(file.buffer, file.byteOffset, file.byteLength))
    if (value === undefined) return { fault: 'The file is empty.' }
    const fault = faultOf(value)
    return fault === undefined ? { state: JSON.stringify(value) } : { fault: sentence(fault.replace(/^data/, '')) }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const told = error.problem.errors ?? []
    return { fault: told.map((each) => sentence(`${'pointer' in each ? each.pointer : ''} ${each.detail}`)).join(' ') }
  }
}

/** @param fault a JSON Pointer (RFC 6901), which is empty for the whole, and what is wrong there. */
function sentence(fault: string): string {
  return `${fault.startsWith('/') ? fault : `The file ${fault.trim()}`}.`
}
