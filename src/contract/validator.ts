/**
 * Starts express-openapi-validator ("EOV") on a document, and makes its two validating steps callable without what it
 * does around them at each request: with 50 routes, its look-up alone takes five times what Express takes.
 */
import { parse } from 'node:url'
import type { Response as ExpressResponse, Request } from 'express'
import { middleware } from 'express-openapi-validator'
import documents from 'express-openapi-validator/dist/framework/openapi.schema.validator.js'
import type { Document } from '../openapi/document.ts'
import type { Operation } from '../openapi/served-operations.ts'
import { formats } from './formats.ts'

const { OpenAPISchemaValidator } = documents

/**
 * EOV compiles the schema of OpenAPI documents also when it is told not to validate a document by it: some 40 ms for each
 * validator, of which a start has four. Here it does so only when it is asked.
 */
function schemaValidator(options: ConstructorParameters<typeof OpenAPISchemaValidator>[0]) {
  return options.validateApiSpec ? new OpenAPISchemaValidator(options) : {}
}
documents.OpenAPISchemaValidator = schemaValidator as unknown as typeof OpenAPISchemaValidator

/** As much of a request as EOV's steps read. */
export interface ValidatorRequest {
  method: string
  path: string
  originalUrl: string
  headers: Record<string, unknown>
  query?: Record<string, unknown>
  params?: Record<string, unknown>
  body?: unknown
  openapi: OperationMetadata
}

/** What EOV attaches to a request when it has found its operation. */
interface OperationMetadata {
  openApiRoute: string
  pathParams: Record<string, unknown>
  schema: { parameters?: unknown[]; requestBody?: { required?: boolean } }
}

type Step = (request: ValidatorRequest, response: unknown, next: (error?: unknown) => void) => void

export interface Validator {
  validateRequest: Step
  /** Puts a `json` into the response that validates what it is called with. */
  hookResponse: Step
  metadata(operation: Operation): OperationMetadata
}

/**
 * Rejects when EOV cannot serve the document.
 *
 * @param allErrors whether requests are validated to their end, or only up to the first member at fault.
 */
export async function startValidator(
  document: Document,
  operations: Operation[],
  allErrors = true,
): Promise<Validator> {
  settleUrlParse()
  const steps = middleware({
    apiSpec: adapted(document) as never,
    // allErrors: the contract promises to name each member at fault. 100,000 wrong members in 1 MiB take 70 ms, as
    // long as parsing them.
    validateRequests: { allErrors, coerceTypes: false },
    validateResponses: { coerceTypes: false, removeAdditional: false },
    validateSecurity: false,
    // Redocly lints the documents where they are written.
    validateApiSpec: false,
    fileUploader: false,
    ajvFormats: { mode: 'full' },
    formats,
    // Without these, EOV replaces the dates in a handler's answer by strings.
    serDes: [{ format: 'date' }, { format: 'date-time' }],
  })
  const step = (name: string): Step => {
    const found = steps.find((it) => it.name === name)
    if (!found) throw new Error(`express-openapi-validator has no ${name}; its steps have changed.`)
    return (request, response, next) => found(request as unknown as never, response as ExpressResponse, next)
  }
  const app = { param: () => {}, enabled: () => true } as unknown as Request['app']
  await completed(step('pathParamsMiddleware'), { app })
  const found = new Map<Operation, OperationMetadata>()
  for (const operation of operations) {
    const path = operation.path.replaceAll(/\{[^}]+\}/g, 'placeholder')
    const request = { app, method: operation.method, path, originalUrl: path, baseUrl: '', headers: {} }
    await completed(step('metadataMiddleware'), request)
    const { openapi } = request as unknown as ValidatorRequest
    if (openapi?.openApiRoute !== operation.path)
      throw new Error(`express-openapi-validator does not find ${operation.id}.`)
    // EOV refuses an absent body unless this default of OpenAPI is written out.
    if (openapi.schema.requestBody) openapi.schema.requestBody.required ??= false
    found.set(operation, openapi)
  }
  return {
    validateRequest: step('requestMiddleware'),
    hookResponse: step('responseMiddleware'),
    metadata: (operation) => found.get(operation) as OperationMetadata,
  }
}

function completed(step: Step, request: object): Promise<void> {
  return new Promise((resolve, reject) => {
    step(request as ValidatorRequest, {}, (error) => (error ? reject(error) : resolve()))
  })
}

/**
 * A copy of the document, because EOV changes it; without error answers, which all operations share: EOV compiles them
 * for each operation again, which took 110 ms and 16 MB at start.
 */
function adapted(document: Document): Document {
  // `discriminator` is a hint beside `oneOf`, which decides by itself; EOV's own use of it throws on the body `null`.
  const isHint = (key: string, value: unknown) =>
    key === 'discriminator' && Object.hasOwn(Object(value), 'propertyName')
  const copy: Document = JSON.parse(JSON.stringify(document, (key, value) => (isHint(key, value) ? undefined : value)))
  for (const operation of Object.values(copy.paths).flatMap((item) => Object.values(item))) {
    const { responses = {} } = operation as { responses?: Record<string, unknown> }
    for (const status of Object.keys(responses)) if (Number(status) >= 400) delete responses[status]
  }
  // Paths are matched before EOV, without the paths of servers.
  return Object.assign(copy, { servers: [{ url: '/' }] })
}

/**
 * EOV calls the deprecated `url.parse` at each request. Node lets packages do so without a warning, but looks through
 * the stack at each call to see that it is a package's, until it has warned once: 4 µs of 80 per request.
 */
function settleUrlParse() {
  const { noDeprecation = false } = process
  process.noDeprecation = true
  parse('/')
  process.noDeprecation = noDeprecation
}
