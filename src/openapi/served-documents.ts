/** The bundled documents that this version serves, and the scopes that they name. */
import { readFileSync } from 'node:fs'
import { documentHash } from './document-hash.ts'
import { type Document, readOperations } from './operations.ts'

function read(name: string): { document: Document; documentHash: string } {
  const text = readFileSync(new URL(`../../generated/${name}/document.json`, import.meta.url), 'utf8')
  return { document: JSON.parse(text), documentHash: documentHash(text) }
}

export const executionContract = read('execution.v1')
export const browserContextContract = read('browser-context.alpha')

/** Every scope that a security requirement of the documents names; there are no others. */
export function knownScopes(): string[] {
  const operations = [executionContract, browserContextContract].flatMap(({ document }) => readOperations(document))
  return [...new Set(operations.flatMap(({ scopes }) => scopes))].sort()
}
