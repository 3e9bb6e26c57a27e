/** The operations of a document as the service serves them. Rejects an unsupported document at start. */
import {
  type Document,
  type DocumentOperation,
  listOperations,
  type ParameterObject,
  type RequestBodyObject,
  type ResponseObject,
  resolve,
  type Schema,
} from './document.ts'

/** Maximum size of a body in bytes, unless the document sets another one with `x-body-bytes-max`. */
export const bodyBytesMax = 1024 * 1024

export interface Parameter {
  name: string
  in: ParameterObject['in']
  schema: Schema
  /** Scopes that a request with the parameter needs in addition to those of its operation. */
  scopes: string[]
}

/** Where a request carries its credential. */
export type SecurityScheme = { type: 'bearer' } | { type: 'header'; name: string }

export interface Response {
  /** Schemas by media type; empty when the response has no body. */
  content: Record<string, Schema>
  isBinary: boolean
  requiredHeaders: string[]
}

export interface Operation {
  id: string
  /** In upper case. */
  method: string
  path: string
  parameters: Parameter[]
  scheme: SecurityScheme
  /** Names of all security schemes whose credentials it takes; all of them are sent as `scheme` says. */
  schemeNames: string[]
  scopes: string[]
  /** Scopes that some requests need in addition, as their handlers decide. */
  conditionalScopes: string[]
  /** `isRaw`: of any media type, and read by the handler while it arrives. */
  body: { required: boolean; mediaTypes: string[]; schemas: Schema[]; bytesMax: number; isRaw: boolean } | undefined
  responses: Map<number, Response>
  /** Media types of all successful responses; empty when none of them has a body. */
  successTypes: string[]
}

/**
 * Reads the document's operations, in its order.
 *
 * @throws {Error} when the document uses a feature that this service does not serve.
 */
export function readOperations(document: Document): Operation[] {
  for (const [path, item] of Object.entries(document.paths)) {
    const unserved = ['head', 'options', 'trace', '$ref'].find((member) => member in item)
    if (unserved) throw new Error(`${path} has ${unserved}, which is not served.`)
  }
  const operations = listOperations(document).map((it) => readOperation(document, it))
  const ids = operations.map(({ id }) => id)
  const duplicate = ids.find((id, index) => ids.indexOf(id) !== index)
  if (duplicate) throw new Error(`The operationId ${duplicate} is used twice.`)
  return operations
}

function readOperation(document: Document, { path, method, operation, parameters }: DocumentOperation): Operation {
  const { operationId: id, security, requestBody, 'x-conditional-scopes': conditionalScopes = [] } = operation
  if (!id) throw new Error(`${method.toUpperCase()} ${path} has no operationId.`)
  const responses = new Map(
    Object.entries(operation.responses ?? {}).map(([status, it]) => readResponse(document, id, status, it)),
  )
  const successes = [...responses].filter(([status]) => status < 300).flatMap(([, it]) => Object.keys(it.content))
  const read = {
    id,
    method: method.toUpperCase(),
    path,
    parameters: parameters.map((it) => readParameter(document, id, it)),
    ...readSecurity(document, id, security ?? document.security ?? [], [...scopesOf(parameters), ...conditionalScopes]),
    conditionalScopes,
    body: requestBody && readBody(id, resolve<RequestBodyObject>(document, requestBody)),
    responses,
    successTypes: [...new Set(successes)],
  }
  requireStatuses(read)
  return read
}

/** Parameters have the default style of their place: one value each; an array repeats its parameter in the query. */
function readParameter(document: Document, id: string, { name, in: place, ...rest }: ParameterObject): Parameter {
  const subject = `The parameter ${name} of ${id}`
  const schema = resolve<Schema | undefined>(document, rest.schema)
  if (!['path', 'query', 'header'].includes(place)) throw new Error(`${subject} is in ${place}, which is not served.`)
  if (!schema) throw new Error(`${subject} has no schema.`)
  if (schema.type === 'object' || (schema.type === 'array' && place !== 'query'))
    throw new Error(`${subject} is of type ${schema.type}, which is not served in ${place}.`)
  const hasStyle = ['style', 'explode', 'allowReserved'].some((keyword) => keyword in rest)
  if (hasStyle || name.includes('['))
    throw new Error(`${subject} does not have the default style of its place; only that is served.`)
  const { 'x-required-scopes': scopes = [] } = rest
  if (scopes.length > 0 && place !== 'query') throw new Error(`${subject} has x-required-scopes outside the query.`)
  return { name, in: place, schema, scopes }
}

function scopesOf(parameters: ParameterObject[]): string[] {
  return parameters.flatMap(({ 'x-required-scopes': scopes = [] }) => scopes)
}

/**
 * The first requirement, and the names of further schemes without scopes, whose tokens are sent in the same place.
 *
 * @param ofParameters scopes that are in the second requirement, since OpenAPI has no security of parameters and bodies.
 */
function readSecurity(
  document: Document,
  id: string,
  requirements: Record<string, string[]>[],
  ofParameters: string[],
) {
  const entries = requirements.flatMap((it) => Object.entries(it))
  const schemeOf = (name: string) => resolve<Schema | undefined>(document, document.components?.securitySchemes?.[name])
  const isBearer = (name: string) => schemeOf(name)?.type === 'http' && schemeOf(name)?.scheme === 'bearer'
  const [firstName = ''] = entries[0] ?? []
  const isToken = ([name, scopes]: [string, string[]]) =>
    name !== firstName && scopes.length === 0 && isBearer(name) && isBearer(firstName)
  const [requirement, another, ...others] = entries.filter((it) => !isToken(it))
  if (!requirement || others.length > 0 || (another && ofParameters.length === 0))
    throw new Error(`${id} must have exactly one security requirement.`)
  const [name, scopes] = requirement
  const expected = ofParameters.length > 0 ? [name, [...scopes, ...ofParameters]] : undefined
  if (JSON.stringify(another) !== JSON.stringify(expected))
    throw new Error(`${id} must have a second security requirement with the scopes of its parameters.`)
  const scheme = schemeOf(name)
  const schemeNames = [...new Set(entries.map(([each]) => each))]
  if (isBearer(name)) return { scopes, schemeNames, scheme: { type: 'bearer' } as const }
  if (scheme?.type === 'apiKey' && scheme.in === 'header' && typeof scheme.name === 'string')
    return { scopes, schemeNames, scheme: { type: 'header', name: scheme.name } as const }
  throw new Error(`The security scheme ${name} of ${id} is neither bearer nor a key in a header.`)
}

function readBody(id: string, body: RequestBodyObject): Operation['body'] {
  const { required = false, 'x-body-bytes-max': bytesMax = bodyBytesMax } = body
  const mediaTypes = Object.keys(body.content)
  const isRaw = mediaTypes.length === 1 && mediaTypes[0] === '*/*'
  const other = isRaw ? undefined : mediaTypes.find((type) => !/^application\/([a-z.-]+\+)?json$/.test(type))
  if (other) throw new Error(`The body of ${id} is ${other}; only JSON, and \`*/*\` alone, are served.`)
  if (!Number.isSafeInteger(bytesMax) || bytesMax < 1)
    throw new Error(`The x-body-bytes-max of ${id} must be a positive integer.`)
  const schemas = Object.values(body.content).map(({ schema = {} }) => schema)
  return { required, mediaTypes, schemas, bytesMax, isRaw }
}

function readResponse(document: Document, id: string, status: string, reference: unknown): [number, Response] {
  const subject = `The response ${status} of ${id}`
  if (!/^[1-5][0-9][0-9]$/.test(status)) throw new Error(`${subject} has no single status; document each status.`)
  const { content = {}, headers = {} } = resolve<ResponseObject>(document, reference)
  const mediaTypes = Object.keys(content)
  const range = mediaTypes.find((type) => type.includes('*'))
  if (range) throw new Error(`${subject} is ${range}; document each media type.`)
  const schemas = Object.fromEntries(mediaTypes.map((type) => [type, content[type]?.schema ?? {}]))
  const isBinary = mediaTypes.some(isBinaryType)
  if (!isBinary && Object.values(schemas).some((it) => resolve<Schema>(document, it).format === 'binary'))
    throw new Error(`${subject} has format binary, but only media types of text and JSON.`)
  const isRequired = (header: unknown) => resolve<{ required?: boolean }>(document, header).required === true
  const requiredHeaders = Object.keys(headers).filter((name) => isRequired(headers[name]))
  return [Number(status), { content: schemas, isBinary, requiredHeaders }]
}

/**
 * A response is binary when any of its media types is neither JSON, text/plain, text/csv nor text/event-stream; all of its
 * media types then carry bytes, so that a file may also be text or JSON. The media type decides and not `format: binary`,
 * because TypeScript sees only the media type: `BinaryType` in contract/handler.ts is the same rule.
 */
export function isBinaryType(mediaType: string): boolean {
  return !/^(application\/(.+\+)?json|text\/(plain|csv|event-stream))$/.test(mediaType)
}

/** The framework itself sends these statuses, so the operation must document them. */
function requireStatuses({ id, body, responses, successTypes }: Operation) {
  const needed = [400, 401, 403, ...(successTypes.length > 0 ? [406] : []), ...(body ? [413, 415] : []), 500, 503]
  const missing = needed.find((status) => !responses.has(status))
  if (missing) throw new Error(`The operation ${id} does not document ${missing}, which it can send.`)
}
