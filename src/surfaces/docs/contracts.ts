/** The two bundled documents as the docs show them: their operations, decisions, and transitions of a run. */
import { type Document, listOperations, type OperationObject, operationAt, walk } from '../../openapi/document.ts'
import { type Path, toPointer } from '../../openapi/json-pointer.ts'
import { readContract } from '../../openapi/served-documents.ts'

export interface Contract {
  /** Names its files: `execution.v1.json`. */
  file: string
  /** Names its page: `execution.html`. */
  page: string
  title: string
  version: string
  summary: string
  /** The address that the document names, which guides and samples have too. */
  documentedUrl: string
  /** The address that is shown in its place. */
  shownUrl: string
  /** The bytes that `npm run generate` wrote. */
  json: Buffer
  document: Document
  operations: ContractOperation[]
}

export interface ContractOperation {
  id: string
  method: string
  path: string
  summary: string
  description: string
  /** Where the reference shows it, within its page. */
  anchor: string
  operation: OperationObject
}

const files = [
  { file: 'execution.v1', page: 'execution' },
  { file: 'browser-context.alpha', page: 'browser-context' },
] as const

/** Where readers reach the APIs, by the name of each one's page. */
export type Addresses = Partial<Record<(typeof files)[number]['page'], string | undefined>>

/** Anew each time: a service reads them once, and `npm run docs` wants what is there now. */
export function readContracts(addresses: Addresses = {}): Contract[] {
  return files.map(({ file, page }) => {
    const { document, text } = readContract(file)
    const { title, version, summary } = document.info
    const documentedUrl = document.servers[0]?.url ?? ''
    const shownUrl = addresses[page] ?? documentedUrl
    const words = { title, version, summary, documentedUrl, shownUrl }
    return { file, page, ...words, json: Buffer.from(text), document, operations: operationsOf(document) }
  })
}

/** The text with the addresses that readers reach. */
export function addressed(text: string, contracts: readonly Contract[]): string {
  return contracts.reduce((shown, { documentedUrl, shownUrl }) => shown.replaceAll(documentedUrl, shownUrl), text)
}

function operationsOf(document: Document): ContractOperation[] {
  return listOperations(document).map(({ path, method, operation }) => {
    const { operationId: id, summary, description, tags } = operation
    return { id, method, path, summary, description, anchor: anchorOf(tags[0] ?? '', id), operation }
  })
}

/** As Redoc makes it of the tag and the operationId. */
function anchorOf(tag: string, id: string): string {
  return `/${tag.toLowerCase().replaceAll(' ', '-')}/${id.toLowerCase()}`
}

export interface Transition {
  from: string
  to: string
  when: string
}

/** From the table in the document, which a test compares with what the service does. */
export function transitionsOf({ document }: Contract): Transition[] {
  const description = String(document.components.schemas?.RunStatus?.description)
  const rows = [...description.matchAll(/^\| `(\w+)` \| `(\w+)` \| (.+) \|$/gm)]
  if (rows.length === 0) throw new Error('The description of RunStatus has no table of transitions.')
  return rows.map(([, from = '', to = '', when = '']) => ({ from, to, when }))
}

export interface Decision {
  place: string
  reason: string
}

/** Every place that is marked as decided here, in the document's order. */
export function decisionsOf({ document }: Contract): Decision[] {
  return [...walk(document)].flatMap(({ value, path }) => {
    const { 'x-decision': isDecision, 'x-decision-reason': reason } = Object(value) as Record<string, unknown>
    return isDecision === true && typeof reason === 'string' ? [{ place: placeOf(document, path), reason }] : []
  })
}

const nouns: Record<string, string> = {
  parameters: 'Parameter',
  responses: 'Response',
  schemas: 'Schema',
  headers: 'Header',
  requestBodies: 'Body',
}

function placeOf(document: Document, path: Path): string {
  const [root, first = '', second = '', part = '', name = ''] = path
  if (root === 'info') return 'The document'
  if (root === 'components') {
    const within = path.slice(3)
    return `${nouns[first] ?? first} \`${second}\`${within.length > 0 ? `, ${within.join(' ')}` : ''}`
  }
  const operation = operationAt(document, path)
  if (!operation) throw new Error(`The decision at ${toPointer(path)} belongs to no operation.`)
  if (part === '') return `\`${operation.operationId}\``
  return `\`${operation.operationId}\`, ${(nouns[part] ?? String(part)).toLowerCase()} ${name}`
}
