/** The bundled documents that this version serves, and the scopes that they name. */
import { readFileSync } from 'node:fs'
import { type Document, readOperations } from './contract/operations.ts'

function read(name: string): Document {
  return JSON.parse(readFileSync(new URL(`../generated/${name}/document.json`, import.meta.url), 'utf8'))
}

export const executionDocument = read('execution.v1')
export const browserContextDocument = read('browser-context.alpha')

/** Every scope that a security requirement of the documents names; there are no others. */
export function knownScopes(): string[] {
  const operations = [executionDocument, browserContextDocument].flatMap(readOperations)
  return [...new Set(operations.flatMap(({ scopes }) => scopes))].sort()
}
