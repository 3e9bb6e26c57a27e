/** The model of a bundled OpenAPI 3.1 document: its shape, its references, its operations, and the places in it. */
import { hash } from 'node:crypto'
import { type Path, toPointer, valueAt } from './json-pointer.ts'

/** The documents by file name in openapi/. To add one, list it here and in redocly.yaml. */
export const documentNames = ['execution.v1', 'browser-context.alpha'] as const
export type DocumentName = (typeof documentNames)[number]

export interface Document {
  openapi: string
  info: { title: string; version: string; summary: string; description: string }
  servers: { url: string; description: string }[]
  tags: { name: string; description: string }[]
  security?: SecurityRequirement[]
  /** Path items: an operation for each method, and parameters that all of them share. */
  paths: Record<string, Record<string, unknown>>
  /** Path items of the requests that the service sends, by name. */
  webhooks?: Record<string, unknown>
  components: Record<string, Record<string, Record<string, unknown>>>
}

export type Schema = Record<string, unknown>
export type SecurityRequirement = Record<string, string[]>

export interface MediaTypeObject {
  schema?: Schema
  example?: unknown
  examples?: Record<string, unknown>
}

export interface ParameterObject {
  name: string
  in: 'path' | 'query' | 'header'
  description: string
  required?: boolean
  example?: unknown
  schema: Schema
  /** Extension: scopes that a request with the parameter needs in addition to those of its operation. */
  'x-required-scopes'?: string[]
}

export interface RequestBodyObject {
  required?: boolean
  content: Record<string, MediaTypeObject>
  /** Extension: the maximum size of the body in bytes. */
  'x-body-bytes-max'?: number
}

export interface ResponseObject {
  description: string
  headers?: Record<string, unknown>
  content?: Record<string, MediaTypeObject>
}

export interface OperationObject {
  operationId: string
  tags: string[]
  summary: string
  description: string
  security: SecurityRequirement[]
  parameters?: unknown[]
  requestBody?: RequestBodyObject
  responses: Record<string, ResponseObject>
  /** Extension: clients may repeat the operation although its method is not idempotent. */
  'x-idempotent'?: boolean
  /** Extension: scopes that some requests need in addition to those of the operation; its description says which. */
  'x-conditional-scopes'?: string[]
}

export interface DocumentOperation {
  path: string
  /** In lower case, as in the document. */
  method: string
  operation: OperationObject
  /** The parameters of the path and of the operation, resolved. */
  parameters: ParameterObject[]
}

const methods = ['get', 'put', 'post', 'patch', 'delete']

/** Every operation, in the document's order. */
export function listOperations(document: Document): DocumentOperation[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => methods.includes(method))
      .map(([method, value]) => {
        const operation = value as OperationObject
        const declared = [...((item.parameters as unknown[]) ?? []), ...(operation.parameters ?? [])]
        const resolved = declared.map((it) => resolve<ParameterObject>(document, it))
        // An operation's parameter replaces the path's of the same name and place (OpenAPI 3.1.1, section 4.8.9).
        const merged = new Map(resolved.map((it) => [`${it.in} ${it.name}`, it]))
        return { path, method, operation, parameters: [...merged.values()] }
      }),
  )
}

/** A value whose references have been followed. */
export interface Resolved<T> {
  value: T
  /** JSON Pointer to where the last reference led; `undefined` when there was none. */
  pointer: string | undefined
}

/**
 * Follows `$ref` until it leads to a value; keywords next to a `$ref` override those of its target.
 *
 * @throws {Error} when the document lacks the target.
 */
export function follow<T>(document: Document, value: unknown): Resolved<T> {
  const { $ref, ...siblings } = Object(value) as { $ref?: unknown }
  if (typeof $ref !== 'string') return { value: value as T, pointer: undefined }
  const pointer = decodeURIComponent($ref.slice(1))
  const target = valueAt(document, pointer)
  if (!$ref.startsWith('#/') || target === undefined) throw new Error(`The document does not have ${$ref}.`)
  const found = follow<T>(document, target)
  // Without siblings, the same object every time: schemas are compiled once for each.
  const merged = Object.keys(siblings).length === 0 ? found.value : { ...found.value, ...siblings }
  return { value: merged, pointer: found.pointer ?? pointer }
}

/** The value itself, or the target of its `$ref`; see {@link follow}. */
export function resolve<T>(document: Document, value: unknown): T {
  return follow<T>(document, value).value
}

/** Every value below `value`, parents first, with its path. */
export function* walk(value: unknown, path: Path = []): Generator<{ value: unknown; path: Path }> {
  yield { value, path }
  if (typeof value !== 'object' || value === null) return
  for (const [key, member] of Object.entries(value)) yield* walk(member, [...path, key])
}

/** The operation that a path leads into, if it leads into one. */
export function operationAt(document: Document, [root, path, method]: Path): OperationObject | undefined {
  const item = root === 'paths' ? document.paths[String(path)] : undefined
  return methods.includes(String(method)) ? (item?.[String(method)] as OperationObject | undefined) : undefined
}

/** `openapi/execution.v1.yaml, listRuns: /paths/…`: a place in the format of messages. */
export function describePlace(name: string, document: Document, path: Path): string {
  const id = operationAt(document, path)?.operationId
  return `openapi/${name}.yaml, ${id ? `${id}: ` : ''}${toPointer(path)}`
}

type PartialDocument = Pick<Document, 'paths'> & Partial<Document>

/** JSON Pointers of everything that constrains requests: parameters, bodies, and all components that they refer to. */
export function requestPointers(document: PartialDocument): Set<string> {
  const inRequests = ([, , inItem, inOperation]: Path) =>
    inItem === 'parameters' || inOperation === 'parameters' || inOperation === 'requestBody'
  return pointersWithin(document, inRequests)
}

/** JSON Pointers of everything that describes responses, with all components that they refer to. */
export function responsePointers(document: PartialDocument): Set<string> {
  return pointersWithin(document, ([, , , inOperation]) => inOperation === 'responses')
}

function pointersWithin(document: PartialDocument, isWithin: (path: Path) => boolean): Set<string> {
  const found = new Set<string>()
  const mark = (value: unknown, path: Path) => {
    for (const place of walk(value, path)) {
      const pointer = toPointer(place.path)
      if (found.has(pointer)) continue
      found.add(pointer)
      const { $ref } = Object(place.value) as { $ref?: unknown }
      if (typeof $ref === 'string') mark(valueAt(document, $ref.slice(1)), $ref.slice(2).split('/'))
    }
  }
  for (const { value, path } of walk(document.paths, ['paths'])) if (isWithin(path)) mark(value, path)
  return found
}

/**
 * Identifies a document by its content, so that a client notices when the service follows another one. Without `servers`:
 * what a service serves has its own address there.
 */
export function documentHash(document: Document): string {
  return hash('sha256', JSON.stringify({ ...document, servers: undefined }), 'hex').slice(0, 16)
}
