/** Mounts an OpenAPI document on Express: looks up, authenticates, validates, handles and answers its operations. */
import express, { type Express, type RequestHandler } from 'express'
import { type Document, resolve, type Schema } from '../openapi/document.ts'
import { type Operation, readOperations } from '../openapi/served-operations.ts'
import { internalError, problemAnswer, unavailable } from './answer.ts'
import { answerValidation, schemaCompiler } from './answer-validation.ts'
import { credentialReader } from './credential.ts'
import type { LooseAnswer, LooseHandler, Reporting, ServedOperation } from './exchange.ts'
import { documentHashLocal } from './listener.ts'
import { buildLookup } from './lookup.ts'
import { parameterReader } from './parameters.ts'
import { type ProblemKind, problemBody } from './problem.ts'
import { type Admit, rateLimited } from './rate-limit.ts'
import { bySize, type RequestValidation, requestValidation, takesLargeBodies } from './request-validation.ts'
import {
  type Authenticate,
  authenticate,
  body,
  type Fallback,
  fail,
  handle,
  lookUp,
  negotiate,
  requestId,
  validate,
} from './stages.ts'
import { startValidator, type Validator } from './validator.ts'

/** Handlers, one for each operationId, whose principal is `P`; use the generated `…Handlers<P>` to type them. */
export type HandlersFor<H, P> = {
  [Id in keyof H]: H[Id] extends (request: infer Request extends { principal: unknown }) => Promise<{ status: number }>
    ? P extends Request['principal']
      ? H[Id]
      : never
    : never
}

export interface Surface<P, H> extends Reporting<P> {
  /** How the surface is called in errors at start. */
  name: string
  /** An OpenAPI 3.1 document, bundled into one object. */
  document: unknown
  handlers: H & HandlersFor<H, P>
  authenticate: Authenticate<P>
  /** Asked for each request whose credential is good. Without it there is no rate limit. */
  admit?: Admit<P>
  /** How many proxies stand in front; callers' addresses are read from what they add to `X-Forwarded-For`. */
  proxyHops?: number
  /** Stands before all stages: a trace. */
  before?: RequestHandler | undefined
  /** Asked for paths that the document does not have. Without it, and where it knows of nothing, they are a 404. */
  fallback?: Fallback
  /** Whether the error means that the store cannot be reached or written: 503, not 500. */
  isUnavailable(error: unknown): boolean
}

/** Rejects with one sentence when the document cannot be served as it stands. */
export async function mountDocument<P, H extends object>(surface: Surface<P, H>): Promise<Express> {
  const document = surface.document as Document
  const handlers = surface.handlers as Record<string, LooseHandler>
  try {
    const operations = readOperations(document)
    requireHandlers(operations, handlers)
    if (surface.admit) requireRateLimit(operations)
    const find = buildLookup(operations)
    const served = await serve(document, operations, handlers)
    const app = express().disable('x-powered-by').disable('etag')
    app.set('trust proxy', surface.proxyHops ?? false)
    app.locals[documentHashLocal] = surface.documentHash
    if (surface.before) app.use(surface.before)
    app.use(requestId(surface))
    app.use(lookUp(find, served, surface.fallback))
    app.use(authenticate(surface.authenticate, surface.admit, surface.proxyHops ?? 0))
    app.use(negotiate)
    app.use(body)
    app.use(validate)
    app.use(handle(surface.authenticate))
    app.use(fail(surface.isUnavailable))
    return app
  } catch (error) {
    throw new Error(`The document of ${surface.name} cannot be served. ${(error as Error).message}`, { cause: error })
  }
}

/** Builds all that a request needs, so that a fault of the document ends the start and not a request. */
async function serve(
  document: Document,
  operations: Operation[],
  handlers: Record<string, LooseHandler>,
): Promise<Map<Operation, ServedOperation>> {
  const validator = await startValidator(document, operations)
  const large = operations.filter(takesLargeBodies)
  // Started only where it is needed, because it takes 50 ms.
  const upToFirst = large.length > 0 ? await startValidator(document, large, false) : validator
  const compile = schemaCompiler(document)
  const served = new Map<Operation, ServedOperation>()
  for (const operation of operations) {
    const it = {
      operation,
      credential: credentialReader(operation.scheme),
      refusals: { 401: textOf(document, operation, 401), 403: textOf(document, operation, 403) },
      readParameters: parameterReader(operation),
      validate: await validationOf(operation, validator, upToFirst),
      answers: await answerValidation(validator, compile, operation),
      run: handlers[operation.id] as LooseHandler,
    }
    requireOwnAnswers(it)
    served.set(operation, it)
  }
  return served
}

async function validationOf(
  operation: Operation,
  validator: Validator,
  upToFirst: Validator,
): Promise<RequestValidation> {
  const all = await requestValidation(validator, operation)
  return takesLargeBodies(operation) ? bySize(all, await requestValidation(upToFirst, operation)) : all
}

function textOf(document: Document, { id, responses }: Operation, status: number): string {
  const schema = resolve<Schema | undefined>(document, responses.get(status)?.content['text/plain'])
  if (typeof schema?.const !== 'string') throw new Error(`The answer ${status} of ${id} must be a text/plain const.`)
  return schema.const
}

function requireRateLimit(operations: Operation[]) {
  const without = operations.find(({ responses }) => !responses.has(429))
  if (without) throw new Error(`The operation ${without.id} does not document 429, which it can answer.`)
}

/** Refuses handlers that are not exactly those of the document's operations. */
function requireHandlers(operations: Operation[], handlers: Record<string, unknown>) {
  const unhandled = operations.find(({ id }) => typeof handlers[id] !== 'function')
  if (unhandled) throw new Error(`The operation ${unhandled.id} has no handler.`)
  const unknown = Object.keys(handlers).find((id) => !operations.some((operation) => operation.id === id))
  if (unknown) throw new Error(`The handler ${unknown} has no operation.`)
}

/** The answers that the machinery gives by itself must fit too. */
function requireOwnAnswers({ operation, answers, credential, refusals }: ServedOperation) {
  const kinds: ProblemKind[] = ['invalid-request', 'not-acceptable', 'content-too-large', 'unsupported-media-type']
  const own: LooseAnswer[] = [
    ...kinds.map((kind) => problemAnswer({ kind, detail: '', errors: [{ pointer: '', detail: '' }] })),
    { status: 401, text: refusals[401], headers: { 'WWW-Authenticate': credential.challenge } },
    { status: 403, text: refusals[403] },
    rateLimited({ requestsMax: 1, windowSeconds: 1, retryAfterSeconds: 1 }),
    internalError,
    unavailable,
  ]
  for (const { status, headers = {}, text, problem } of own) {
    if (!operation.responses.has(status)) continue
    const mediaType = problem ? 'application/problem+json' : 'text/plain'
    const content = problem ? problemBody(problem, crypto.randomUUID()) : text
    const wrong = answers.check(status, mediaType, headers, content)
    if (wrong) throw new Error(`The answer ${status} of ${operation.id} is not the one that is sent: ${wrong}.`)
  }
}
