/** Generates generated/ from the documents in openapi/. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import openapiTypescript, { astToString, COMMENT_HEADER, type OpenAPI3 } from 'openapi-typescript'
import { situationTables } from '../../check/situation-tables.ts'
import type { OperationDescription, RetryRule } from '../../client/operation.ts'
import { patternDetails } from '../../contract/request-validation.ts'
import { writeValueChecks } from '../../contract/response-checks.ts'
import { checkedSchemas } from '../../contract/value-checks.ts'
import { buildSnapshot } from '../../domain/deployments/build-snapshot.ts'
import {
  type Document,
  type DocumentName,
  type DocumentOperation,
  documentHash,
  documentNames,
  listOperations,
  type OperationObject,
  type ResponseObject,
  resolve,
} from '../../openapi/document.ts'
import { scenariosSchema } from '../../simulator/scenarios-schema.ts'
import { writeBruno } from './bruno.ts'
import { bundle } from './bundle.ts'

type Writer = (document: Document, name: DocumentName) => string | Promise<string>

const writers: Record<string, Writer> = {
  /** As it is served and hashed. */
  'document.json': (document) => `${JSON.stringify(document, null, 2)}\n`,
  'types.ts': writeTypes,
  'value-checks.cjs': (document, name) =>
    writeValueChecks(document, checkedSchemas[name], Object.fromEntries(patternDetails(document))),
  'server.ts': writeServer,
  'client.ts': writeClient,
}

/**
 * Updates generated/, unless a document cannot be bundled.
 *
 * @param check changes nothing.
 * @returns a line for each file that was, or would be, changed.
 * @throws {DocumentError}
 */
export async function generate({ check = false } = {}): Promise<string[]> {
  return updateFolder(await renderFiles(), 'generated', check)
}

async function renderFiles(): Promise<Map<string, string>> {
  const bundled = await Promise.all(documentNames.map(async (name) => [name, await bundle(name)] as const))
  const files = new Map<string, string>()
  for (const [name, document] of bundled) {
    for (const [file, write] of Object.entries(writers)) files.set(join(name, file), await write(document, name))
  }
  const collection = writeBruno(Object.fromEntries(bundled) as Record<DocumentName, Document>)
  for (const [path, text] of collection) files.set(join('bruno', path), text)
  files.set('example-workflows.json', await describeExamples())
  files.set('scenarios.schema.json', `${JSON.stringify(scenariosSchema, null, 2)}\n`)
  files.set('check-situations.md', situationTables())
  return files
}

/** The definitions of the examples, which the docs describe. */
async function describeExamples(): Promise<string> {
  const { workflows } = await buildSnapshot('examples/workflows')
  const described = workflows.map(({ module: _module, ...workflow }) => workflow)
  return `${JSON.stringify(described, null, 2)}\n`
}

/** Writes the files that differ and removes those that are not generated. */
export async function updateFolder(files: Map<string, string>, folder: string, check: boolean): Promise<string[]> {
  const changes: string[] = []
  for (const [file, text] of files) {
    const path = join(folder, file)
    if (text === (await readFile(path, 'utf8').catch(() => undefined))) continue
    changes.push(`${check ? 'out of date' : 'wrote'}: ${path}`)
    if (check) continue
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text)
  }
  for (const file of await listFiles(folder)) {
    if (files.has(file)) continue
    changes.push(`${check ? 'no longer generated' : 'removed'}: ${join(folder, file)}`)
    if (!check) await rm(join(folder, file))
  }
  return changes
}

async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  // Each start may write the compiled checks of responses.
  const files = entries.filter((entry) => entry.isFile() && !entry.name.startsWith('response-checks.cjs'))
  return files.map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
}

// Writes the TypeScript files of a document: its types, the interface of a server, and the description for the client.

async function writeTypes(document: Document): Promise<string> {
  return COMMENT_HEADER + astToString(await openapiTypescript(inlineHeaders(document) as unknown as OpenAPI3))
}

/** openapi-typescript considers every response header behind a $ref required, so this inlines them. */
function inlineHeaders(document: Document): Document {
  const copy = structuredClone(document)
  const responses = listOperations(copy).flatMap(({ operation }) => Object.values(operation.responses))
  for (const response of [...responses, ...Object.values(copy.components.responses ?? {})]) {
    const { headers = {} } = response as Partial<ResponseObject>
    for (const [name, header] of Object.entries(headers)) headers[name] = resolve(copy, header)
  }
  return copy
}

export function writeServer(document: Document, name: DocumentName): string {
  const members = listOperations(document).map((it) => {
    const id = it.operation.operationId
    const withDefault = it.parameters.filter((each) => each.in === 'query' && each.schema.default !== undefined)
    const defaults = withDefault.map((each) => `'${each.name}'`).join(' | ') || 'never'
    return `${docComment(it, '  ')}\n  ${id}: Handler<operations['${id}'], ${defaults}, Principal>`
  })
  const { title, version } = document.info
  return `// Written by \`npm run generate\` from openapi/${name}.yaml. Do not edit.
import type { Handler } from '../../src/contract/handler.ts'
import type { operations } from './types.ts'

/** The handlers of ${title} ${version}. Query parameters with a default are always present. */
export interface ${typeName(name)}Handlers<Principal> {
${members.join('\n')}
}
`
}

export function writeClient(document: Document, name: DocumentName): string {
  const operations = listOperations(document)
  const members = operations.map((it) => {
    const id = it.operation.operationId
    const parseAs = parseAsFor(document, it.operation)
    const parameter = parseAs === 'json' ? '' : `, '${parseAs}'`
    return `${docComment(it, '  ')}\n  ${id}: Operation<operations, '${id}'${parameter}>`
  })
  const type = `${typeName(name)}Operations`
  const { title, version } = document.info
  return `// Written by \`npm run generate\` from openapi/${name}.yaml. Do not edit.
import type { Operation, SurfaceDescription } from '../../src/client/operation.ts'
import type { operations } from './types.ts'

/** A service built from the same document sends this as \`X-Document-Hash\`. */
export const documentHash = '${documentHash(document)}'

/** Every operation of ${title} ${version} as a function. */
export interface ${type} {
${members.join('\n')}
}

/** How to call the operations of ${title} ${version}. */
export const ${type.charAt(0).toLowerCase()}${type.slice(1)}: SurfaceDescription<${type}> = {
  document: '${name}',
  documentHash,
  credential: (apiKey) => ({ ${credential(document)} }),
  operations: {
${operations.map((it) => `    ${it.operation.operationId}: ${literal(describeOperation(document, it))},`).join('\n')}
  },
}
`
}

function credential(document: Document): string {
  const [scheme] = Object.values(document.components.securitySchemes ?? {}) as { type: string; name?: string }[]
  return scheme?.type === 'http' ? 'Authorization: `Bearer ${apiKey}`' : `'${scheme?.name}': apiKey`
}

function describeOperation(document: Document, it: DocumentOperation): OperationDescription {
  const method = it.method.toUpperCase() as OperationDescription['method']
  const parseAs = parseAsFor(document, it.operation)
  const isRaw = '*/*' in (it.operation.requestBody?.content ?? {})
  const described = { method, path: it.path, retry: retryRule(it), ...(parseAs !== 'json' && { parseAs }) }
  return { ...described, ...(isRaw && { body: 'raw' as const }) }
}

/** RFC 9110, section 9.2.2. */
const idempotentMethods = ['get', 'put', 'delete']

/** A PUT that accepts an Idempotency-Key is not idempotent without one. */
function retryRule({ method, operation, parameters }: DocumentOperation): RetryRule {
  if (parameters.some((each) => each.in === 'header' && each.name === 'Idempotency-Key')) return 'withIdempotencyKey'
  const isIdempotent = idempotentMethods.includes(method) || operation['x-idempotent'] === true
  return isIdempotent ? 'always' : 'ifRefused'
}

/** Event streams are left unread, files become a Blob; others are JSON or empty. What is also CSV is JSON by default. */
function parseAsFor(document: Document, { responses }: OperationObject): NonNullable<OperationDescription['parseAs']> {
  const successes = Object.entries(responses).filter(([status]) => status.startsWith('2'))
  const mediaTypes = successes.flatMap(([, response]) =>
    Object.keys(resolve<ResponseObject>(document, response).content ?? {}),
  )
  if (mediaTypes.includes('text/event-stream')) return 'stream'
  return mediaTypes.every((each) => each === 'application/json' || each === 'text/csv') ? 'json' : 'blob'
}

function literal(members: object): string {
  const entries = Object.entries(members).map(([name, value]) => `${name}: '${value}'`)
  return `{ ${entries.join(', ')} }`
}

/** `execution.v1` → `ExecutionV1`. */
function typeName(name: DocumentName): string {
  const words = name.split(/[.-]/)
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

/** A doc comment with the operation's summary, description, address, scopes and statuses. */
function docComment({ path, method, operation }: DocumentOperation, indent: string): string {
  // A token has no scopes.
  const required = operation.security.map((requirement) => Object.values(requirement).flat())
  const scopes = required.flatMap((it) => (it.length > 0 ? it.join(', ') : [])).join(' or ')
  const statuses = Object.keys(operation.responses).join(', ')
  const lines = [
    `${operation.summary}.`,
    '',
    ...operation.description.trim().split('\n'),
    '',
    `\`${method.toUpperCase()} ${path}\` · scopes: ${scopes} · responses: ${statuses}`,
  ]
  const safe = lines.map((line) => ` * ${line.replaceAll('*/', '*\\/')}`.trimEnd())
  return ['/**', ...safe, ' */'].map((line) => indent + line).join('\n')
}
