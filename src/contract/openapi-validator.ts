/**
 * The only file that knows express-openapi-validator ("EOV"). It is used as a middleware of one path at a time, apart from
 * four things, which its documentation does not offer:
 *
 * - It gets only the part of the document that it reads, in its own terms (`documentFor`). With the whole document it
 *   compiles the patterns of every path at every request: with 50 paths, 0.17 of the rate of Express alone, and 0.48 with
 *   one.
 * - It sees the documented media type instead of the Content-Type header (`prepare`). Without an option to bound them, it
 *   keeps a validator of 35 KiB for each combination of the header's parameters except `boundary`, compiled in 3.5 ms, so
 *   that callers could fill the memory.
 * - Node's check for the deprecated `url.parse`, which it calls, is done once at start (`skipDeprecationCheck`).
 * - It does not compile the schema of OpenAPI documents, which it would for each path, in 65 ms of CPU, also when it does
 *   not validate documents (`skipDocumentSchema`).
 */
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { parse } from 'node:url'
import express, { type Request, type RequestHandler, type Response } from 'express'
import { error as eovErrors, middleware as openApiValidator } from 'express-openapi-validator'
import documentValidation from 'express-openapi-validator/dist/framework/openapi.schema.validator.js'
import { type Document, type ParameterObject, resolve, type Schema, walk } from '../openapi/document.ts'
import { parsePointer, valueAt } from '../openapi/json-pointer.ts'
import type { Operation } from '../openapi/served-operations.ts'
import type { Body } from './body.ts'
import { formats } from './compiled-checks.ts'

export interface ValidationError {
  path: string
  message: string
  errorCode?: string
}

/** Sets `request.query` and `request.body`. @param query as it was parsed. */
export type Validator = (
  request: Request,
  response: Response,
  query: object,
  body: Body | undefined,
) => Promise<{ errors: ValidationError[]; pathParameters: object }>

/** EOV documents the path parameters, with their documented types, as a member of the request. */
type ValidatedRequest = Request & { openapi: { pathParams: object } }

/** @param allErrors whether it reports every error, or only the first. */
export function createValidator(document: Document, path: string, allErrors: boolean): Validator {
  const validator = findValidator(JSON.stringify(documentFor(document, path), withoutDiscriminator), allErrors)
  return async (request, response, query, body) => {
    prepare(request, query, body)
    const error = await new Promise<unknown>((resolve) => validator(request, response, resolve))
    if (error instanceof eovErrors.BadRequest) return { errors: error.errors as ValidationError[], pathParameters: {} }
    if (error !== undefined) throw error
    return { errors: [], pathParameters: (request as ValidatedRequest).openapi.pathParams }
  }
}

/** Calls `act` with a request of the operation as Express passes it on, without a connection. */
export async function offer(
  { method, path }: Operation,
  act: (request: Request, response: Response) => Promise<void>,
): Promise<void> {
  const request = Object.assign(new IncomingMessage(new Socket()), { method, url: path })
  // EOV matches paths by these settings.
  const app = express().enable('strict routing').enable('case sensitive routing')
  await new Promise<void>((resolve, reject) => {
    app.use((received, response) => act(received, response).then(resolve, reject))
    app(request, new ServerResponse(request))
  })
}

function prepare(request: Request, query: object, body: Body | undefined) {
  Object.defineProperty(request, 'query', { value: query, writable: true, configurable: true, enumerable: true })
  const isRead = body?.mediaType !== '*/*'
  request.body = isRead ? body?.value : undefined
  if (body && isRead) request.headers['content-type'] = body.mediaType
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

function skipDocumentSchema() {
  const OpenAPISchemaValidator = class {
    validate() {
      return { errors: [] }
    }
  }
  Object.assign(documentValidation, { OpenAPISchemaValidator })
}

const shared = new Map<string, RequestHandler>()

/** An instance takes 15 ms of CPU, once for equal documents. */
function findValidator(apiSpec: string, allErrors: boolean): RequestHandler {
  const key = `${allErrors} ${apiSpec}`
  const validator = shared.get(key) ?? createSteps(JSON.parse(apiSpec) as never, allErrors)
  shared.set(key, validator)
  return validator
}

function createSteps(apiSpec: never, allErrors: boolean): RequestHandler {
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
    // EOV refuses an absent body unless OpenAPI's default is written out. It would read a raw body.
    ...(requestBody &&
      !isRaw(document, requestBody) && {
        requestBody: { required: false, ...resolve<object>(document, requestBody) },
      }),
    // Responses are validated by response-validation.ts.
    ...(responses ? { responses: {} } : {}),
  })
  const { parameters, ...operations } = document.paths[path] as Record<string, OperationMembers>
  const adapted = Object.entries(operations).map(([method, operation]) => [method, adapt(operation)])
  const item = { ...adapt({ parameters: (parameters ?? []) as unknown[] }), ...Object.fromEntries(adapted) }
  // Paths are looked up without the paths of servers.
  return { openapi, info, servers: [{ url: '/' }], paths: { [path]: item }, components: referenced(document, item) }
}

function isRaw(document: Document, requestBody: object): boolean {
  const { content = {} } = resolve<{ content?: object }>(document, requestBody)
  return '*/*' in content
}

/** `discriminator` is a hint next to `oneOf`; EOV's own use of it throws for the body `null`. */
function withoutDiscriminator(key: string, value: unknown): unknown {
  return key === 'discriminator' && Object.hasOwn(Object(value), 'propertyName') ? undefined : value
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
export function prepareValidation(document: Document) {
  skipDeprecationCheck()
  skipDocumentSchema()
  if (!/^3\.1\.\d+$/.test(document.openapi)) throw new Error(`OpenAPI ${document.openapi} is not served, only 3.1.`)
  for (const { value } of walk(document)) {
    const { $ref } = Object(value) as { $ref?: unknown }
    if (typeof $ref !== 'string' || valueAt(document, $ref.slice(1)) !== undefined) continue
    throw new Error(`The document does not have ${$ref}.`)
  }
}
