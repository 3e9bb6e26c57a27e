/** The two bundled documents as the docs show them: their operations, decisions, and transitions of a run. */
import { readFileSync } from 'node:fs'

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
  document: OpenApi
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
  operation: OpenApiOperation
}

interface OpenApiOperation {
  operationId: string
  summary: string
  description: string
  tags: string[]
  'x-codeSamples'?: object[]
  [member: string]: unknown
}

export interface OpenApi {
  info: { title: string; version: string; summary: string; description: string }
  servers: { url: string; description: string }[]
  paths: Record<string, Record<string, OpenApiOperation>>
  components: Record<string, Record<string, Record<string, unknown>>>
}

const methods = ['get', 'put', 'post', 'delete', 'patch']

const files = [
  { file: 'execution.v1', page: 'execution' },
  { file: 'browser-context.alpha', page: 'browser-context' },
] as const

/** Where readers reach the APIs, by the name of each one's page. */
export type Addresses = Partial<Record<(typeof files)[number]['page'], string | undefined>>

/** Anew each time: a service reads them once, and `npm run docs` wants what is there now. */
export function readContracts(addresses: Addresses = {}): Contract[] {
  return files.map(({ file, page }) => {
    const json = readFileSync(new URL(`../../../generated/${file}/document.json`, import.meta.url))
    const document: OpenApi = JSON.parse(json.toString())
    const { title, version, summary } = document.info
    const documentedUrl = document.servers[0]?.url ?? ''
    const shownUrl = addresses[page] ?? documentedUrl
    const words = { title, version, summary, documentedUrl, shownUrl }
    return { file, page, ...words, json, document, operations: operationsOf(document) }
  })
}

/** The text with the addresses that readers reach. */
export function addressed(text: string, contracts: readonly Contract[]): string {
  return contracts.reduce((shown, { documentedUrl, shownUrl }) => shown.replaceAll(documentedUrl, shownUrl), text)
}

function operationsOf({ paths }: OpenApi): ContractOperation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const operation = item[method]
      if (!operation) return []
      const { operationId: id, summary, description, tags } = operation
      return [{ id, method, path, summary, description, anchor: anchorOf(tags[0] ?? '', id), operation }]
    }),
  )
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
  const found: Decision[] = []
  const visit = (value: unknown, path: string[]) => {
    if (typeof value !== 'object' || value === null) return
    const node = value as Record<string, unknown>
    const reason = node['x-decision-reason']
    if (node['x-decision'] === true && typeof reason === 'string')
      found.push({ place: placeOf(document, path), reason })
    for (const [name, member] of Object.entries(node)) visit(member, [...path, name])
  }
  visit(document, [])
  return found
}

const nouns: Record<string, string> = {
  parameters: 'Parameter',
  responses: 'Answer',
  schemas: 'Schema',
  headers: 'Header',
  requestBodies: 'Body',
}

function placeOf({ paths }: OpenApi, [room = '', first = '', second = '', ...rest]: string[]): string {
  if (room === 'info') return 'The document'
  if (room === 'components')
    return `${nouns[first] ?? first} \`${second}\`${rest.length > 0 ? `, ${rest.join(' ')}` : ''}`
  const operation = paths[first]?.[second]
  const [part = '', name = ''] = rest
  if (!operation)
    throw new Error(`The decision at ${[room, first, second, ...rest].join('/')} belongs to no operation.`)
  if (part === '') return `\`${operation.operationId}\``
  return `\`${operation.operationId}\`, ${(nouns[part] ?? part).toLowerCase()} ${name}`
}
