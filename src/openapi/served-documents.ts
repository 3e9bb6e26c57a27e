/** Reads bundled documents from generated/, and exports the two that this version serves. */
import { readFileSync } from 'node:fs'
import { type Document, type DocumentName, documentHash, listOperations } from './document.ts'

/** A bundled document with the text that it was parsed from. */
export interface Contract {
  document: Document
  text: string
  documentHash: string
  /** Where the compiled checks of its responses are, or will be. */
  responseChecksFile: URL
}

/** Reads the file every time, so that a development server sees its changes. */
export function readContract(name: DocumentName): Contract {
  const directory = new URL(`../../generated/${name}/`, import.meta.url)
  const text = readFileSync(new URL('document.json', directory), 'utf8')
  const document: Document = JSON.parse(text)
  const responseChecksFile = new URL('response-checks.cjs', directory)
  return { document, text, documentHash: documentHash(document), responseChecksFile }
}

export const executionContract = readContract('execution.v1')
export const browserContextContract = readContract('browser-context.alpha')

/** Every scope that a security requirement of either document names, sorted. */
export function knownScopes(): string[] {
  const operations = [executionContract, browserContextContract].flatMap(({ document }) => listOperations(document))
  const scopes = operations.flatMap(({ operation }) => operation.security.flatMap((it) => Object.values(it).flat()))
  return [...new Set(scopes)].sort()
}
