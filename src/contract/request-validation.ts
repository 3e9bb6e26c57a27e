/**
 * Validates requests with express-openapi-validator ("EOV"), and reports all validation errors as one problem.
 * docs/decisions/0001-validation.md explains why each path has its own instance.
 */
import { parse } from 'node:url'
import type { Request, RequestHandler, Response } from 'express'
import { error as eovErrors, middleware as openApiValidator } from 'express-openapi-validator'
import { type Document, type ParameterObject, resolve, type Schema, walk } from '../openapi/document.ts'
import { parsePointer, toPointer, valueAt } from '../openapi/json-pointer.ts'
import type { Operation } from '../openapi/served-operations.ts'
import type { Body } from './body.ts'
import type { Parameters } from './parameters.ts'
import { invalidRequest, Problem, type ProblemMember } from './problem.ts'
import { formats } from './response-validation.ts'

/** Maximum number of validation errors in a response. */
const errorsMax = 20

/**
 * In larger bodies only the first error is reported. Finding all errors in 5 MiB of `{}` in place of cookies exhausted the
 * memory; in 16 KiB it takes 50 ms.
 */
const allErrorsBytesMax = 16 * 1024

/**
 * Resolves when the request is valid; its parameters then have their documented types.
 *
 * @throws {Problem} with the validation errors.
 */
export type RequestValidation = (
  request: Request,
  response: Response,
  parameters: Parameters,
  body: Body | undefined,
) => Promise<void>

/**
 * Creates the validations of a document's operations.
 *
 * @throws {Error} when the document has something that EOV would refuse at the first request.
 */
export function requestValidations(document: Document): (operation: Operation) => RequestValidation {
  requireReferences(document)
  skipDeprecationCheck()
  return (operation) => {
    const { path, parameters: documented } = operation
    const create = (allErrors: boolean) =>
      findValidator(JSON.stringify(documentFor(document, path), withoutDiscriminator), allErrors)
    let [reportAll, reportFirst]: (RequestHandler | undefined)[] = []
    const pathNames = documented.filter((it) => it.in === 'path').map(({ name }) => name)
    return async (request, response, parameters, body) => {
      // EOV decodes the path itself and reports an error without the name of the parameter.
      if (pathNames.some((name) => !(name in parameters.path))) throw problemFor(operation, parameters, body, [])
      prepare(request, parameters, body)
      const onlyFirst = body !== undefined && body.bytes > allErrorsBytesMax
      if (onlyFirst) reportFirst ??= create(false)
      else reportAll ??= create(true)
      const validator = (onlyFirst ? reportFirst : reportAll) as RequestHandler
      const error = await new Promise<unknown>((resolve) => validator(request, response, resolve))
      if (error instanceof eovErrors.BadRequest)
        throw problemFor(operation, parameters, body, error.errors as EovError[])
      if (error !== undefined) throw error
      if (parameters.errors.length > 0) throw problemFor(operation, parameters, body, [])
      Object.assign(parameters.path, (request as ValidatedRequest).openapi.pathParams)
    }
  }
}

/** EOV documents the path parameters, with their documented types, as a member of the request. */
type ValidatedRequest = Request & { openapi: { pathParams: object } }

/** Sets the parsed query and body where EOV expects them. */
function prepare(request: Request, { query }: Parameters, body: Body | undefined) {
  Object.defineProperty(request, 'query', { value: query, writable: true, configurable: true, enumerable: true })
  request.body = body?.value
  // EOV keeps a validator for each distinct Content-Type (35 KiB, 3.5 ms), so it sees only documented media types.
  if (body) request.headers['content-type'] = body.mediaType
  else delete request.headers['content-type']
}

/**
 * EOV calls the deprecated `url.parse` at each request. Node does not warn about calls of packages, but inspects the
 * stack to recognise them until it has warned once (10 µs).
 */
function skipDeprecationCheck() {
  const { noDeprecation = false } = process
  process.noDeprecation = true
  parse('/')
  process.noDeprecation = noDeprecation
}

const shared = new Map<string, RequestHandler>()

/** An EOV instance is created at the first request of its path: 30 to 50 ms of CPU, once for equal documents. */
function findValidator(apiSpec: string, allErrors: boolean): RequestHandler {
  const key = `${allErrors} ${apiSpec}`
  const validator = shared.get(key) ?? createValidator(JSON.parse(apiSpec) as never, allErrors)
  shared.set(key, validator)
  return validator
}

function createValidator(apiSpec: never, allErrors: boolean): RequestHandler {
  const steps = openApiValidator({
    apiSpec,
    // allErrors: the contract promises to report every invalid member of a small body.
    validateRequests: { allErrors, coerceTypes: false },
    validateResponses: false,
    validateSecurity: false,
    // Redocly lints the documents.
    validateApiSpec: false,
    fileUploader: false,
    ajvFormats: { mode: 'full' },
    formats,
    // Handlers receive dates as strings.
    serDes: [{ format: 'date' }, { format: 'date-time' }],
  }) as RequestHandler[]
  // Called in sequence here: a router in between costs 3 µs.
  return (request, response, done) => {
    let index = 0
    const next = (error?: unknown) => {
      const step = error === undefined ? steps[index++] : undefined
      if (step) step(request, response, next)
      else done(error)
    }
    next()
  }
}

interface OperationMembers {
  responses?: unknown
  requestBody?: object
  parameters?: unknown[]
}

/** The part of the document that the requests of one path need, as EOV understands it. */
function documentFor(document: Document, path: string): object {
  const { openapi, info } = document
  const adapt = ({ requestBody, responses, parameters, ...rest }: OperationMembers) => ({
    ...rest,
    ...(parameters && { parameters: parameters.map((it) => adaptParameter(document, it)) }),
    ...(requestBody && { requestBody: withDefaults(resolve(document, requestBody)) }),
    // Responses are validated by response-validation.ts.
    ...(responses ? { responses: {} } : {}),
  })
  const { parameters, ...operations } = document.paths[path] as Record<string, OperationMembers>
  const adapted = Object.entries(operations).map(([method, operation]) => [method, adapt(operation)])
  const item = { ...adapt({ parameters: (parameters ?? []) as unknown[] }), ...Object.fromEntries(adapted) }
  // Paths are looked up without the paths of servers.
  return { openapi, info, servers: [{ url: '/' }], paths: { [path]: item }, components: referenced(document, item) }
}

/** `discriminator` is a hint next to `oneOf`; EOV's own use of it throws for the body `null`. */
function withoutDiscriminator(key: string, value: unknown): unknown {
  return key === 'discriminator' && Object.hasOwn(Object(value), 'propertyName') ? undefined : value
}

/** EOV refuses an absent body unless OpenAPI's default is written out. */
function withDefaults(body: object): object {
  return { required: false, ...body }
}

/**
 * A query needs no escapes for reserved characters (RFC 3986, section 3.4); EOV demands them without `allowReserved`.
 * Resolved schemas and `explode: false` where it makes no difference spare work at each request (5 µs).
 */
function adaptParameter(document: Document, reference: unknown): object {
  const parameter = resolve<ParameterObject>(document, reference)
  const schema = resolve<Schema>(document, parameter.schema)
  const query = parameter.in === 'query' && { allowReserved: true, explode: schema.type === 'array' }
  return { ...parameter, schema, ...query }
}

/** The components that a value refers to, directly or through others. */
function referenced(document: Document, value: unknown): object {
  const components: Record<string, Record<string, unknown>> = {}
  const collect = (from: unknown) => {
    for (const { value: node } of walk(from)) {
      const { $ref } = Object(node) as { $ref?: unknown }
      if (typeof $ref !== 'string') continue
      const [, kind = '', name = ''] = parsePointer($ref.slice(1))
      if (components[kind]?.[name]) continue
      const component = document.components[kind]?.[name]
      components[kind] = { ...components[kind], [name]: component }
      collect(component)
    }
  }
  collect(value)
  return components
}

/** EOV answers 500 to every request when a reference leads nowhere, or into another schema's `$defs`. */
function requireReferences(document: Document) {
  if (!/^3\.1\.\d+$/.test(document.openapi)) throw new Error(`OpenAPI ${document.openapi} is not served, only 3.1.`)
  for (const { value } of walk(document)) {
    const { $ref } = Object(value) as { $ref?: unknown }
    if (typeof $ref !== 'string' || valueAt(document, $ref.slice(1)) !== undefined) continue
    throw new Error(`The document does not have ${$ref}.`)
  }
}

interface EovError {
  path: string
  message: string
  errorCode?: string
}

function problemFor(operation: Operation, { errors }: Parameters, body: Body | undefined, found: EovError[]): Problem {
  const reported = new Set(errors.map(({ parameter }) => parameter))
  // 16 KiB can have thousands of errors; the first ones contain enough distinct ones.
  const members = found
    .slice(0, 10 * errorsMax)
    .map((it) => toMember(operation, it, body?.value))
    // A parameter that could not be read is missing for EOV.
    .filter((it) => !('parameter' in it && reported.has(it.parameter)))
  const distinct = new Map([...errors, ...members].map((it) => [JSON.stringify(it), it]))
  return new Problem(invalidRequest([...distinct.values()].slice(0, errorsMax)).problem)
}

/** An EOV path begins with the part of the request: `/query/limit`, `/headers/prefer`, `/params/runId`, `/body/name`. */
function toMember(operation: Operation, { path, message, errorCode = '' }: EovError, body: unknown): ProblemMember {
  const isUnknown = /^(additional|unevaluated)Properties\./.test(errorCode)
  const isMissing = errorCode.startsWith('required.')
  const detail = isUnknown ? 'is not a documented member' : isMissing ? 'is required' : message
  const [part, name = ''] = parsePointer(path)
  if (part === 'body') {
    const pointer = path.slice('/body'.length)
    return { pointer: isUnknown ? unknownMemberPointer(pointer, body) : pointer, detail }
  }
  if (part !== 'headers') return { parameter: name, detail }
  const header = operation.parameters.find((it) => it.in === 'header' && it.name.toLowerCase() === name)
  return { header: header?.name ?? name, detail }
}

/** EOV appends the name of an unknown member without escapes: it is what remains below the object that contains it. */
function unknownMemberPointer(path: string, body: unknown): string {
  const tokens = path.split('/').slice(1)
  let parent = ''
  for (const [index, token] of tokens.entries()) {
    const rest = tokens.slice(index).join('/')
    if (rest === token || Object.hasOwn(Object(valueAt(body, parent)), rest)) return parent + toPointer([rest])
    parent += `/${token}`
  }
  return parent
}
