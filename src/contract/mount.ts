/** Mounts an OpenAPI document on Express: builds what serves each operation, and puts the stages in order. */
import express, { type Express, type RequestHandler } from 'express'
import { type Document, resolve, type Schema } from '../openapi/document.ts'
import { type Operation, readOperations } from '../openapi/served-operations.ts'
import { credentialReader } from './credential.ts'
import { crossOriginOf, type Origins } from './cross-origin.ts'
import type { ExchangeContext, HandlerResponse, ServedOperation, UntypedHandler } from './exchange.ts'
import { documentHashLocal } from './listener.ts'
import { parameterReader } from './parameters.ts'
import { createPathLookup } from './path-lookup.ts'
import { type HttpProblemKind, httpProblemTypes, problemBody } from './problem.ts'
import { compileValidations, requestValidations } from './request-validation.ts'
import { internalError, problemResponse, rateLimited, unavailable } from './response.ts'
import { responseChecks } from './response-checks.ts'
import { responseValidation } from './response-validation.ts'
import {
  type Fallback,
  fail,
  findOperation,
  type Intercept,
  interceptOperation,
  type StageOptions,
  serveOperation,
  startExchange,
} from './stages.ts'

/** Handlers by operationId, whose principal is `P`; the generated `…Handlers<P>` types them. */
export type HandlersFor<H, P> = {
  [Id in keyof H]: H[Id] extends (request: infer Request extends { principal: unknown }) => Promise<{ status: number }>
    ? P extends Request['principal']
      ? H[Id]
      : never
    : never
}

interface MountOptions<P, H> extends Omit<ExchangeContext<P>, 'problemTypes' | 'crossOrigin'>, StageOptions<P> {
  /** Names the surface in errors at start. */
  name: string
  /** An OpenAPI 3.1 document, bundled into one object. */
  document: unknown
  /** Keeps the compiled checks of the document's responses between starts. */
  responseChecksFile?: URL
  handlers: H & HandlersFor<H, P>
  /** Problem types that handlers use, in addition to those of HTTP. */
  problemTypes?: ExchangeContext<P>['problemTypes']
  /** The protection space in `WWW-Authenticate` (RFC 9110, section 11.5). */
  realm: string
  /** The origins whose pages may call the surface from a browser. */
  origins?: Origins | undefined
  /** Operations whose validation `warmUp` compiles, so that their first requests need not. */
  warm?: readonly (keyof H)[]
  /** Maximum sizes of bodies that settings change, in place of those in the document. */
  bodyBytesMax?: Partial<Record<keyof H, number>>
  /** Runs before all stages, for tracing. */
  before?: RequestHandler | undefined
  /** Answers requests in place of their handlers, for faults on request. */
  intercept?: Intercept | undefined
  /** Called for paths that the document lacks, which are 404 by default. */
  fallback?: Fallback
  /** Whether the error means that the store cannot be reached or written: 503 instead of 500. */
  isUnavailable(error: unknown): boolean
}

/** @throws {Error} with one sentence when the document cannot be served. */
export async function mountDocument<P, H extends object>(options: MountOptions<P, H>): Promise<Express> {
  try {
    const document = options.document as Document
    const bytesMax: Partial<Record<string, number>> = options.bodyBytesMax ?? {}
    const operations = readOperations(document).map((each) => withBytesMax(each, bytesMax[each.id]))
    const handlers = options.handlers as Record<string, UntypedHandler>
    requireHandlers(operations, handlers)
    if (options.limitRate || options.tenants) requireRateLimit(operations)
    const { proxyHops = 0, fallback, origins = [] } = options
    const crossOrigin = 'has' in origins || origins.length > 0 ? crossOriginOf(document, origins) : undefined
    const problemTypes = { ...httpProblemTypes, ...options.problemTypes }
    // express-openapi-validator matches paths by these settings.
    const app = express().enable('strict routing').enable('case sensitive routing')
    app.disable('x-powered-by').disable('etag').set('trust proxy', proxyHops)
    app.locals[documentHashLocal] = options.documentHash
    if (options.before) app.use(options.before)
    app.use(startExchange({ ...options, problemTypes, crossOrigin }))
    const served = serve(operations, handlers, { ...options, document })
    app.use(findOperation(createPathLookup(operations), served, fallback))
    if (options.intercept) app.use(interceptOperation(options.intercept))
    app.use(serveOperation(options), fail(options.isUnavailable))
    const warm = [...served.values()].filter(({ operation }) => options.warm?.includes(operation.id as keyof H))
    app.locals[warmUpLocal] = () => compileValidations(warm)
    return app
  } catch (error) {
    throw new Error(`The document of ${options.name} cannot be served. ${(error as Error).message}`, { cause: error })
  }
}

function withBytesMax(operation: Operation, bytesMax: number | undefined): Operation {
  const { body } = operation
  return body && bytesMax !== undefined ? { ...operation, body: { ...body, bytesMax } } : operation
}

const warmUpLocal = 'warmUp'

/** @param app returned by `mountDocument`; others have nothing to compile. */
export async function warmUp(app: Express): Promise<void> {
  await app.locals[warmUpLocal]?.()
}

/** Refuses handlers that are not exactly those of the document's operations. */
function requireHandlers(operations: Operation[], handlers: Record<string, unknown>) {
  const unhandled = operations.find(({ id }) => typeof handlers[id] !== 'function')
  if (unhandled) throw new Error(`The operation ${unhandled.id} has no handler.`)
  const unknown = Object.keys(handlers).find((id) => !operations.some((operation) => operation.id === id))
  if (unknown) throw new Error(`The handler ${unknown} has no operation.`)
}

function requireRateLimit(operations: Operation[]) {
  const without = operations.find(({ responses }) => !responses.has(429))
  if (without) throw new Error(`The operation ${without.id} does not document 429, which it can send.`)
}

/** Prepares all checks of responses now, so that an error in the document ends the start and not a request. */
function serve(
  operations: Operation[],
  handlers: Record<string, UntypedHandler>,
  { document, realm, responseChecksFile }: { document: Document; realm: string; responseChecksFile?: URL | undefined },
): Map<Operation, ServedOperation> {
  const findCheck = responseChecks(document, operations, responseChecksFile)
  const validationFor = requestValidations(document)
  const served = operations.map((operation): [Operation, ServedOperation] => {
    const it = {
      operation,
      credential: credentialReader(operation.scheme, realm),
      refusals: { 401: readText(document, operation, 401), 403: readText(document, operation, 403) },
      readParameters: parameterReader(operation),
      validateRequest: validationFor(operation),
      responses: responseValidation(findCheck, operation),
      run: handlers[operation.id] as UntypedHandler,
    }
    requireFrameworkResponses(it)
    return [operation, it]
  })
  return new Map(served)
}

function readText(document: Document, { id, responses }: Operation, status: number): string {
  const schema = resolve<Schema | undefined>(document, responses.get(status)?.content['text/plain'])
  if (typeof schema?.const !== 'string') throw new Error(`The response ${status} of ${id} must be a text/plain const.`)
  return schema.const
}

/** The responses that the framework sends by itself must match the document, too. */
function requireFrameworkResponses({ operation, responses, credential, refusals }: ServedOperation) {
  const kinds: HttpProblemKind[] = ['invalid-request', 'not-acceptable', 'content-too-large', 'unsupported-media-type']
  const sent: HandlerResponse[] = [
    ...kinds.map((kind) => problemResponse({ kind, detail: '', errors: [{ pointer: '', detail: '' }] })),
    { status: 401, text: refusals[401], headers: { 'WWW-Authenticate': credential.challenge } },
    { status: 403, text: refusals[403] },
    rateLimited({ policy: '', requestsMax: 1, windowSeconds: 1, remaining: 0, resetSeconds: 1, isExceeded: true }),
    internalError,
    unavailable,
  ]
  for (const { status, headers = {}, text, problem } of sent) {
    if (!operation.responses.has(status)) continue
    const mediaType = problem ? 'application/problem+json' : 'text/plain'
    const body = problem ? problemBody(httpProblemTypes, problem, crypto.randomUUID()) : text
    const mismatch = responses.check(status, mediaType, headers, body)
    if (!mismatch) continue
    const place = `${mismatch.pointer} ${mismatch.detail}`.trim()
    throw new Error(`The response ${status} of ${operation.id} differs from the one that is sent: ${place}.`)
  }
}
