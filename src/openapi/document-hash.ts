/** Names a bundled document by its content, so that a client can tell when the service follows another one. */
import { hash } from 'node:crypto'

/** @param text the document as it is served: the bytes that a reader can hash too. */
export function documentHash(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 16)
}
