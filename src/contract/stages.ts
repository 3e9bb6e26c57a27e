/**
 * The stages of a request in their order, which the documents promise:
 * request id → operation → credential → rate limit → scopes → Accept → body → validation → handler.
 */
import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from 'express'
import type { Operation } from '../openapi/served-operations.ts'
import { ClientGone, readBody } from './body.ts'
import { isPreflight, preflightResponse } from './cross-origin.ts'
import {
  clientClosed,
  Exchange,
  type ExchangeContext,
  HandlerRequest,
  type HandlerResponse,
  type ServedOperation,
} from './exchange.ts'
import type { Parameters } from './parameters.ts'
import type { PathMatch } from './path-lookup.ts'
import { CredentialRevoked, NotPermitted, Problem, problemType } from './problem.ts'
import { drop, internalError, type RateLimitStatus, rateLimited, send, unavailable } from './response.ts'
import type { TenantLimits } from './tenant-limits.ts'

interface Authenticated<P> {
  principal: P
  /** `null` permits everything. */
  scopes: readonly string[] | null
  /** Set if the credential permits some requests only, by their parameters. Others get 403. */
  permits?: PermitsRequest | undefined
}

export type PermitsRequest = (operation: Operation, parameters: Parameters) => boolean

/**
 * Returns the principal of a credential; `undefined` when it is invalid or of none of the security schemes.
 *
 * @param client address and user agent of the client; omitted when a running request is checked again.
 */
export type Authenticate<P> = (
  credential: string,
  schemeNames: readonly string[],
  client?: string,
) => Promise<Authenticated<P> | undefined>

/** Counts a request of the principal. `client` is as in `Authenticate`. */
export type LimitRate<P> = (principal: P, client: string) => Promise<RateLimitStatus>

/** Finds the handler of a path that the document lacks. It serves all methods, and sends its own 404. */
export type Fallback = (path: string) => RequestHandler | undefined

export function startExchange<P>(context: ExchangeContext<P>): RequestHandler {
  return function startExchange(request, response, next) {
    response.locals.exchange = new Exchange(request, response, context)
    next()
  }
}

function exchangeOf(response: Response): Exchange {
  return response.locals.exchange
}

export function findOperation(
  find: (path: string) => PathMatch | undefined,
  servedOperations: Map<Operation, ServedOperation>,
  fallback: Fallback = () => undefined,
): RequestHandler {
  return function findOperation(request, response, next) {
    const exchange = exchangeOf(response)
    const { path } = splitUrl(request)
    const match = find(path)
    if (!match) {
      const handler = fallback(path)
      if (!handler) throw new Problem({ kind: 'not-found', detail: 'There is no such path.' })
      return serveFallback(exchange, handler, next)
    }
    const { crossOrigin } = exchange.context
    if (crossOrigin && isPreflight(crossOrigin, request.method, request.headers))
      return send(exchange, preflightResponse(match.operations))
    const operation = match.operations.get(request.method)
    if (!operation) {
      const allowed = [...match.operations.keys()].join(', ')
      throw new Problem({ kind: 'method-not-allowed', detail: `This path has ${allowed}.` }, { Allow: allowed })
    }
    if (request.method === 'HEAD') serveAsGet(request)
    exchange.pathValues = match.values
    exchange.served = servedOperations.get(operation)
    next()
  }
}

/** `dropped`: the connection is closed without a response, before or after the request is processed. */
export type Interception = HandlerResponse | 'dropped' | 'droppedAfterwards' | undefined

/** Decides what happens to a request of the operation before it is served. */
export type Intercept = (operation: Operation) => Promise<Interception>

export function interceptOperation(intercept: Intercept): RequestHandler {
  return async function interceptOperation(_request, response, next) {
    const exchange = exchangeOf(response)
    const interception = await intercept((exchange.served as ServedOperation).operation)
    if (interception === 'dropped') return drop(exchange)
    exchange.dropsResponse = interception === 'droppedAfterwards'
    if (typeof interception === 'object') send(exchange, interception)
    else next()
  }
}

/** HEAD is GET without content, which Node omits (RFC 9110, section 9.3.2). It ignores `Range` (section 14.2). */
function serveAsGet(request: Request) {
  request.method = 'GET'
  delete request.headers.range
}

/** Not `request.path` and `request.query`, which Express parses at every access. */
function splitUrl({ url }: Request): { path: string; search: string } {
  const mark = url.indexOf('?')
  return mark < 0 ? { path: url, search: '' } : { path: url.slice(0, mark), search: url.slice(mark + 1) }
}

/** The document does not describe the exchange, but it has a request id, is logged and counted. */
async function serveFallback(exchange: Exchange, handler: RequestHandler, next: NextFunction) {
  const { request, response } = exchange
  const end = () => exchange.end(response.writableFinished ? response.statusCode : clientClosed)
  response.set('X-Request-Id', exchange.requestId).once('close', end)
  const leave = (error: unknown = new Error('The fallback did not send a response.')) => {
    // `fail` logs and counts the response that it sends.
    if (!response.headersSent) response.off('close', end)
    next(error)
  }
  try {
    await handler(request, response, leave)
  } catch (error) {
    leave(error)
  }
}

export interface StageOptions<P> {
  authenticate: Authenticate<P>
  /** Called for each request with a valid credential. Without it there is no rate limit. */
  limitRate?: LimitRate<P>
  /** Bounds what the principals of one tenant use at the same time. Without it there are no such limits. */
  tenants?: { limits: TenantLimits; nameOf(principal: P): string }
  /** Number of proxies in front; the client's address is read from what they add to `X-Forwarded-For`. */
  proxyHops?: number
}

/** Runs the stages from the credential to the response. One middleware, as each hop of Express costs 1 µs. */
export function serveOperation<P>(options: StageOptions<P>): RequestHandler {
  const checks = new CredentialChecks()
  return async function serveOperation(request, response) {
    const exchange = exchangeOf(response)
    const served = exchange.served as ServedOperation
    const { operation } = served
    const refusal = await authenticate(exchange, served, options)
    if (refusal) return send(exchange, refusal)
    negotiate(request, operation)
    exchange.body = await readBody(operation, request, exchange.tenant)
    exchange.parameters = served.readParameters(exchange.pathValues, splitUrl(request).search)
    await served.validateRequest(request, response, exchange.parameters, exchange.body)
    const { credential } = exchange
    const authenticateAgain = () => options.authenticate(credential, operation.schemeNames)
    const handlerRequest = new HandlerRequest(exchange, operation, {
      async stillAuthenticated() {
        const caller = await authenticateAgain()
        return caller !== undefined && permits(caller, served, exchange)
      },
      // The scopes of a credential change with the role of its creator.
      checkCredential: (abort) =>
        checks.add(
          `${operation.id} ${credential}`,
          async () => {
            const caller = await authenticateAgain()
            return caller !== undefined && includesScopes(caller.scopes, operation.scopes)
          },
          abort,
        ),
    })
    send(exchange, await served.run(handlerRequest))
    exchange.tenant?.unlockProcessing()
  }
}

/**
 * Returns 401, 429 or 403 when the request is refused. An error of `options.authenticate` is rethrown: an unavailable
 * store must not look like an invalid credential.
 */
async function authenticate<P>(
  exchange: Exchange,
  served: ServedOperation,
  options: StageOptions<P>,
): Promise<HandlerResponse | undefined> {
  const { request } = exchange
  const { credential, operation, refusals } = served
  const value = credential.read(request)
  const client = describeClient(request, options.proxyHops ?? 0)
  const caller = value && (await options.authenticate(value, operation.schemeNames, client))
  if (!value || !caller) return unauthorized(served)
  exchange.credential = value
  exchange.principal = caller.principal
  exchange.scopes = caller.scopes
  if (options.limitRate) {
    exchange.rateLimit = await options.limitRate(caller.principal, client)
    if (exchange.rateLimit.isExceeded) return rateLimited(exchange.rateLimit)
  }
  const { tenants } = options
  exchange.tenant = tenants?.limits.begin(tenants.nameOf(caller.principal), exchange.response)
  return permits(caller, served, exchange) ? undefined : { status: 403, text: refusals[403] }
}

function unauthorized({ credential, refusals }: ServedOperation): HandlerResponse {
  return { status: 401, text: refusals[401], headers: { 'WWW-Authenticate': credential.challenge } }
}

/** Maximum length of the user agent that is recorded with the use of a credential. */
const userAgentLengthMax = 100

function describeClient(request: Request, proxyHops: number): string {
  // `request.ip` reads X-Forwarded-For even without a proxy (1 µs).
  const address = proxyHops === 0 ? request.socket.remoteAddress : request.ip
  return `${address} ${request.headers['user-agent']?.slice(0, userAgentLengthMax) ?? ''}`.trim()
}

/** @param scopes of a credential; `null` permits everything. */
export function includesScopes(scopes: readonly string[] | null, needed: readonly string[]): boolean {
  return scopes === null || needed.every((scope) => scopes.includes(scope))
}

function permits(
  { scopes, permits }: Authenticated<unknown>,
  { operation, readParameters }: ServedOperation,
  { request, pathValues }: Exchange,
): boolean {
  if (permits && !permits(operation, readParameters(pathValues, splitUrl(request).search))) return false
  if (scopes === null) return true
  const { scopes: needed, parameters } = operation
  const ofParameters = parameters.filter((it) => it.scopes.length > 0)
  const query = new URLSearchParams(ofParameters.length > 0 ? splitUrl(request).search : '')
  const all = [...needed, ...ofParameters.flatMap((it) => (query.has(it.name) ? it.scopes : []))]
  return includesScopes(scopes, all)
}

/** Parameters of media ranges, with quoted values, except the weight `q`. */
const parametersOfAccept = /;(?![ \t]*q=)[^;,="]*(?:="(?:[^"\\]|\\.)*"|=[^;,"]*)?/gi

/** @throws {Problem} 406 unless the client accepts a successful response of the operation. */
function negotiate(request: Request, { successTypes }: Operation) {
  const { accept } = request.headers
  // `request.accepts` parses the header at every call (1 µs). Without types it accepts everything.
  const isUsual = accept === undefined || accept === '*/*' || successTypes.includes(accept)
  if (isUsual) return
  // Parameters do not count: each media type has one form (RFC 9110, section 12.5.1).
  request.headers.accept = accept.replace(parametersOfAccept, '')
  if (request.accepts(successTypes)) return
  throw new Problem({ kind: 'not-acceptable', detail: `This operation responds with ${successTypes.join(' or ')}.` })
}

/** Turns an error of a stage or handler into a response that reveals nothing internal. */
export function fail(isUnavailable: (error: unknown) => boolean): ErrorRequestHandler {
  return function fail(error: unknown, _request, response, _next) {
    const exchange = exchangeOf(response)
    exchange.tenant?.unlockProcessing()
    if (error instanceof ClientGone) return exchange.end(clientClosed)
    if (response.headersSent) return exchange.logError('request failed after its response', { err: error })
    if (error instanceof CredentialRevoked && exchange.served) return send(exchange, unauthorized(exchange.served))
    if (error instanceof NotPermitted && exchange.served)
      return send(exchange, { status: 403, text: exchange.served.refusals[403] })
    if (error instanceof Problem) {
      const { problem, headers } = error
      return send(exchange, {
        status: problemType(exchange.context.problemTypes, problem.kind).status,
        problem,
        headers,
      })
    }
    const isDown = isUnavailable(error)
    exchange.logError(isDown ? 'store unavailable' : 'request failed', { err: error })
    send(exchange, isDown ? unavailable : internalError)
  }
}

// Checks the credentials of requests that take long: once a second, one check for all requests with the same credential.

const checkMilliseconds = 1000

interface Checked {
  isValid(): Promise<boolean>
  requests: Set<AbortController>
}

export class CredentialChecks {
  readonly #checked = new Map<string, Checked>()
  #timer: NodeJS.Timeout | undefined

  /**
   * Aborts the request within about a second after its credential has become invalid.
   *
   * @param name of the credential: requests with the same name share `isValid`.
   * @returns a function that ends the checks.
   */
  add(name: string, isValid: () => Promise<boolean>, request: AbortController): () => void {
    const checked = this.#checked.get(name) ?? { isValid, requests: new Set() }
    checked.requests.add(request)
    this.#checked.set(name, checked)
    this.#timer ??= setInterval(() => this.#check(), checkMilliseconds).unref()
    return () => {
      checked.requests.delete(request)
      if (checked.requests.size === 0 && this.#checked.get(name) === checked) this.#checked.delete(name)
      if (this.#checked.size > 0) return
      clearInterval(this.#timer)
      this.#timer = undefined
    }
  }

  #check(): void {
    for (const { isValid, requests } of this.#checked.values()) {
      // An unavailable store does not make a credential invalid. The request gets the error from its own reads.
      const result = isValid().catch(() => true)
      void result.then((valid) => {
        if (!valid) for (const request of requests) request.abort()
      })
    }
  }
}
