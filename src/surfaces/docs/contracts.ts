/** The two bundled documents as the docs present them: operations, code samples, decisions, and run transitions. */
import { readFileSync } from 'node:fs'
import { type Document, listOperations, type OperationObject, operationAt, walk } from '../../openapi/document.ts'
import { type Path, toPointer } from '../../openapi/json-pointer.ts'
import { readContract } from '../../openapi/served-documents.ts'

export interface Contract {
  /** Base name of its documents: `execution.v1`. */
  file: string
  /** Base name of the overview of its reference: `execution`. */
  page: string
  title: string
  version: string
  summary: string
  /** The server URL in the document, which guides and samples use too. */
  documentedUrl: string
  /** The URL shown in its place. */
  shownUrl: string
  /** The document as it is served, with the shown URL. */
  document: Document
  operations: ContractOperation[]
  tags: ContractTag[]
}

/** Operations that have a page of the reference. */
export interface ContractTag {
  name: string
  description: string
  /** Base name of the page: `execution-runs`. */
  page: string
  operations: ContractOperation[]
}

export interface ContractOperation {
  id: string
  method: string
  path: string
  summary: string
  description: string
  parameterNames: string[]
  /** Its address in the reference: `execution-webhooks.html#/webhooks/…`. */
  href: string
  operation: OperationObject
}

const files = [
  { file: 'execution.v1', page: 'execution' },
  { file: 'browser-context.alpha', page: 'browser-context' },
] as const

/** Public addresses of the APIs, by reference page, and of the dashboard. */
export type Addresses = Partial<Record<(typeof files)[number]['page'] | 'dashboard', string | undefined>>

export function readContracts(addresses: Addresses = {}): Contract[] {
  return files.map(({ file, page }) => {
    const { document } = readContract(file)
    const { title, version, summary } = document.info
    const documentedUrl = document.servers[0]?.url ?? ''
    const shownUrl = addresses[page] ?? documentedUrl
    if (shownUrl !== documentedUrl) document.servers = [{ url: shownUrl, description: 'This service.' }]
    const operations = readOperations(document, page)
    const tags = document.tags.map(({ name, description }) => {
      const ofTag = operations.filter(({ operation }) => operation.tags[0] === name)
      return { name, description, page: `${page}-${slug(name)}`, operations: ofTag }
    })
    return { file, page, title, version, summary, documentedUrl, shownUrl, document, operations, tags }
  })
}

/** Replaces the documented URLs in a text by those that readers can call. */
export function withAddresses(text: string, contracts: readonly Contract[]): string {
  return contracts.reduce((shown, { documentedUrl, shownUrl }) => shown.replaceAll(documentedUrl, shownUrl), text)
}

/** As Redoc builds it. */
function slug(tag: string): string {
  return tag.toLowerCase().replaceAll(' ', '-')
}

function readOperations(document: Document, page: string): ContractOperation[] {
  return listOperations(document).map(({ path, method, operation, parameters }) => {
    const { operationId: id, summary, description, tags } = operation
    const tag = slug(tags[0] ?? '')
    const href = `${page}-${tag}.html#/${tag}/${id.toLowerCase()}`
    const parameterNames = parameters.map(({ name }) => name)
    return { id, method, path, summary, description, parameterNames, href, operation }
  })
}

/** In the order shown, with their file extensions. */
export const sampleLanguages = { curl: 'sh', TypeScript: 'ts', Python: 'py' } as const

export type SampleLanguage = keyof typeof sampleLanguages

export interface Sample {
  lang: SampleLanguage
  source: string
}

export const samplesDirectory = new URL('../../../docs/samples/', import.meta.url)

export function samplesFor(operationId: string): Sample[] {
  return Object.entries(sampleLanguages).map(([lang, extension]) => {
    const source = readFileSync(new URL(`${operationId}.${extension}`, samplesDirectory), 'utf8').trimEnd()
    return { lang: lang as SampleLanguage, source }
  })
}

export interface Transition {
  from: string
  to: string
  when: string
}

/** Reads the table in the description of `RunStatus`; none for a document without runs. */
export function transitionsOf({ document }: Contract): Transition[] {
  const description = String(document.components.schemas?.RunStatus?.description)
  const rows = description.matchAll(/^\| `(\w+)` \| `(\w+)` \| (.+) \|$/gm)
  return [...rows].map(([, from = '', to = '', when = '']) => ({ from, to, when }))
}

export interface Decision {
  place: string
  reason: string
}

export function decisionsOf({ document }: Contract): Decision[] {
  return [...walk(document)].flatMap(({ value, path }) => {
    const { 'x-decision': isDecision, 'x-decision-reason': reason } = Object(value) as Record<string, unknown>
    return isDecision === true && typeof reason === 'string' ? [{ place: describePlace(document, path), reason }] : []
  })
}

const kinds: Record<string, string> = {
  parameters: 'Parameter',
  responses: 'Response',
  schemas: 'Schema',
  headers: 'Header',
  requestBodies: 'Body',
}

function describePlace(document: Document, path: Path): string {
  const [root, first = '', second = '', part = '', name = ''] = path
  if (root === 'info') return 'The document'
  if (root === 'components') {
    const within = path.slice(3)
    return `${kinds[first] ?? first} \`${second}\`${within.length > 0 ? `, ${within.join(' ')}` : ''}`
  }
  if (root === 'webhooks') return `Webhook \`${first}\``
  const operation = operationAt(document, path)
  if (!operation) throw new Error(`The decision at ${toPointer(path)} belongs to no operation.`)
  if (part === '') return `\`${operation.operationId}\``
  return `\`${operation.operationId}\`, ${(kinds[part] ?? String(part)).toLowerCase()} ${name}`
}
