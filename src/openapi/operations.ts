/** Reads the operations of a bundled OpenAPI 3.1 document, once, and refuses a document that cannot be served. */

/** Of an operation whose document states no other with `x-body-bytes-max`. */
export const bodyBytesMax = 1024 * 1024

export type Schema = Record<string, unknown>

/** As much of a bundled document as is read here. What a `$ref` may stand for is read through `resolved`. */
export interface Document {
  openapi: string
  paths: Record<string, Record<string, unknown>>
  security?: SecurityRequirement[]
  components?: Record<string, Record<string, unknown>>
}

type SecurityRequirement = Record<string, string[]>
type Content = Record<string, { schema?: Schema }>

interface OperationObject {
  operationId?: string
  security?: SecurityRequirement[]
  parameters?: unknown[]
  requestBody?: unknown
  responses?: Record<string, unknown>
}

interface RequestBody {
  required?: boolean
  content: Content
  /** Our own: how many bytes the body may have. */
  'x-body-bytes-max'?: number
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  schema: Schema
}

/** Where the credential of a request stands. */
export type Scheme = { type: 'bearer' } | { type: 'header'; name: string }

export interface Response {
  /** Schemas by media type; empty when the answer has no body. */
  content: Record<string, Schema>
  isBinary: boolean
  requiredHeaders: string[]
}

export interface Operation {
  id: string
  method: string
  path: string
  parameters: Parameter[]
  scheme: Scheme
  scopes: string[]
  body: { required: boolean; mediaTypes: string[]; bytesMax: number } | undefined
  responses: Map<number, Response>
  /** The media types of all successful answers; empty when none of them has a body. */
  successTypes: string[]
}

const methods = ['get', 'put', 'post', 'delete', 'patch']

/** The document's operations, in its order. */
export function readOperations(document: Document): Operation[] {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, operation]) => {
      if (['head', 'options', 'trace', '$ref'].includes(method))
        throw new Error(`${path} has ${method}, which is not served.`)
      return methods.includes(method)
        ? [readOperation(document, path, method, item.parameters, operation as OperationObject)]
        : []
    }),
  )
  const twice = operations.find(({ id }, index) => operations.findIndex((other) => other.id === id) !== index)
  if (twice) throw new Error(`The operationId ${twice.id} is used twice.`)
  return operations
}

/** Refuses handlers that are not exactly those of the document's operations. */
export function requireHandlers(operations: Operation[], handlers: Record<string, unknown>) {
  const unhandled = operations.find(({ id }) => typeof handlers[id] !== 'function')
  if (unhandled) throw new Error(`The operation ${unhandled.id} has no handler.`)
  const unknown = Object.keys(handlers).find((id) => !operations.some((operation) => operation.id === id))
  if (unknown) throw new Error(`The handler ${unknown} has no operation.`)
}

function readOperation(
  document: Document,
  path: string,
  method: string,
  shared: unknown,
  object: OperationObject,
): Operation {
  const id = object.operationId
  if (!id) throw new Error(`${method.toUpperCase()} ${path} has no operationId.`)
  const responses = readResponses(document, id, object)
  const successes = [...responses].filter(([status]) => status < 300).flatMap(([, it]) => Object.keys(it.content))
  const operation = {
    id,
    method: method.toUpperCase(),
    path,
    parameters: readParameters(document, id, [...((shared as unknown[]) ?? []), ...(object.parameters ?? [])]),
    ...readSecurity(document, id, object.security ?? document.security),
    body: readBody(document, id, object),
    responses,
    successTypes: [...new Set(successes)],
  }
  requireStatuses(operation)
  return operation
}

/** Operation-level parameters replace those of the path with the same name and place (OpenAPI 3.1.1, section 4.8.9). */
function readParameters(document: Document, id: string, objects: unknown[]): Parameter[] {
  const merged = new Map<string, Parameter>()
  for (const object of objects) {
    const { name, in: place, ...rest } = resolved<Parameter>(document, object)
    const schema = resolved<Schema>(document, rest.schema)
    requireServable(`The parameter ${name} of ${id}`, name, place, schema, rest)
    merged.set(`${place} ${name}`, { name, in: place, schema })
  }
  return [...merged.values()]
}

/** Parameters are served in their place's default style: one value each, in the query also repeated for an array. */
function requireServable(the: string, name: string, place: string, schema: Schema | undefined, rest: object) {
  if (!['path', 'query', 'header'].includes(place)) throw new Error(`${the} is in ${place}, which is not served.`)
  if (!schema) throw new Error(`${the} has no schema.`)
  const list = schema.type === 'array' && place !== 'query'
  if (list || schema.type === 'object')
    throw new Error(`${the} is of type ${schema.type}, which is not served in ${place}.`)
  const styled = ['style', 'explode', 'allowReserved'].some((keyword) => keyword in rest)
  if (styled || name.includes('['))
    throw new Error(`${the} is not in the default style of its place, which alone is served.`)
}

function readSecurity(document: Document, id: string, requirements: SecurityRequirement[] = []) {
  const [requirement, ...others] = requirements.flatMap((it) => Object.entries(it))
  if (!requirement || others.length > 0) throw new Error(`${id} must have exactly one security requirement.`)
  const [name, scopes] = requirement
  const scheme = resolved<Schema>(document, document.components?.securitySchemes?.[name])
  if (scheme?.type === 'http' && scheme.scheme === 'bearer') return { scopes, scheme: { type: 'bearer' } as const }
  if (scheme?.type === 'apiKey' && scheme.in === 'header' && typeof scheme.name === 'string') {
    return { scopes, scheme: { type: 'header', name: scheme.name } as const }
  }
  throw new Error(`The security scheme ${name} of ${id} is neither bearer nor a key in a header.`)
}

function readBody(document: Document, id: string, object: OperationObject): Operation['body'] {
  if (!object.requestBody) return undefined
  const { content, ...body } = resolved<RequestBody>(document, object.requestBody)
  const { required = false, 'x-body-bytes-max': bytesMax = bodyBytesMax } = body
  const mediaTypes = Object.keys(content)
  const other = mediaTypes.find((type) => !/^application\/([a-z.-]+\+)?json$/.test(type))
  if (other) throw new Error(`The body of ${id} is ${other}; only JSON is served.`)
  if (!Number.isSafeInteger(bytesMax) || bytesMax < 1)
    throw new Error(`The x-body-bytes-max of ${id} must be a positive integer.`)
  return { required, mediaTypes, bytesMax }
}

function readResponses(document: Document, id: string, object: OperationObject): Map<number, Response> {
  const entries = Object.entries(object.responses ?? {}).map(([status, response]): [number, Response] => {
    if (!/^[1-5][0-9][0-9]$/.test(status)) throw new Error(`${id} documents the answer ${status}; name each status.`)
    const { content = {}, headers = {} } = resolved<{ content?: Content; headers?: Record<string, unknown> }>(
      document,
      response,
    )
    const required = Object.entries(headers).filter(
      ([, header]) => resolved<{ required?: boolean }>(document, header).required,
    )
    const schemas = Object.entries(content).map(([type, { schema }]) => [type, schema ?? {}] as const)
    const range = Object.keys(content).find((type) => type.includes('*'))
    if (range) throw new Error(`The answer ${status} of ${id} is ${range}; name each media type.`)
    const isBinary = Object.keys(content).some(isBinaryType)
    if (!isBinary && schemas.some(([, schema]) => resolved<Schema>(document, schema).format === 'binary'))
      throw new Error(`The answer ${status} of ${id} has format binary, but only media types of text and JSON.`)
    const requiredHeaders = required.map(([name]) => name)
    return [Number(status), { content: Object.fromEntries(schemas), isBinary, requiredHeaders }]
  })
  return new Map(entries)
}

/**
 * An answer is binary when one of its media types is neither JSON, text/plain nor text/event-stream; then all of them
 * are, so that a file may also be text or JSON. Media types decide and not `format: binary`, because they are what is
 * left of the document in TypeScript: `BinaryType` in handler.ts is the same rule.
 */
export function isBinaryType(mediaType: string): boolean {
  return !/^(application\/(.+\+)?json|text\/plain|text\/event-stream)$/.test(mediaType)
}

/** Every status that the machinery answers with by itself must be documented, so that no undocumented one is sent. */
function requireStatuses({ id, body, responses, successTypes }: Operation) {
  const needed = [400, 401, 403, ...(successTypes.length > 0 ? [406] : []), ...(body ? [413, 415] : []), 500, 503]
  const missing = needed.find((status) => !responses.has(status))
  if (missing) throw new Error(`The operation ${id} does not document ${missing}, which it can answer.`)
}

/** What the value is, or what its `$ref` names in the same document. */
export function resolved<T>(document: Document, value: unknown): T {
  let current = value
  while (typeof current === 'object' && current !== null && '$ref' in current) {
    const ref = String(current.$ref)
    const steps = ref
      .split('/')
      .slice(1)
      .map((step) => decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'))
    current = steps.reduce<unknown>((holder, step) => (holder as Record<string, unknown> | undefined)?.[step], document)
    if (!ref.startsWith('#/') || current === undefined) throw new Error(`The document does not have ${ref}.`)
  }
  return current as T
}
