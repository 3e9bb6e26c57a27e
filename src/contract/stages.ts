/** The stages of a request, in their order; the documents' descriptions promise it. */
import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from 'express'
import type { Operation } from '../openapi/served-operations.ts'
import { internalError, problemAnswer, send, unavailable } from './answer.ts'
import { ClientGone, readBody } from './body.ts'
import { clientClosed, Exchange, type Reporting, type ServedOperation } from './exchange.ts'
import { HandlerRequest } from './handler-request.ts'
import type { Match } from './lookup.ts'
import { Problem } from './problem.ts'
import { type Admit, rateLimited } from './rate-limit.ts'

/**
 * Tells whose credential it is, or nothing when it is not good. Scopes of `null` permit everything.
 *
 * @param from the caller's address and program; not given when a request that goes on is looked at again.
 */
export type Authenticate<P> = (
  value: string,
  from?: string,
) => Promise<{ principal: P; scopes: readonly string[] | null } | undefined>

/** Tells what serves a path that the document does not have: all of its methods, and what it does not find as well. */
export type Fallback = (path: string) => RequestHandler | undefined

/** The stages that need nothing but the exchange. */
export const [negotiate, body, validate] = [stage(negotiateType), stage(takeBody), stage(validateRequest)]

function exchangeOf(response: Response): Exchange {
  return response.locals.exchange
}

/** A stage for requests that have an operation; `lookUp` lets no other through. */
function stage(
  run: (exchange: Exchange, served: ServedOperation, next: NextFunction) => void | Promise<void>,
): RequestHandler {
  const handler: RequestHandler = (_request, response, next) => {
    const exchange = exchangeOf(response)
    return run(exchange, exchange.served as ServedOperation, next)
  }
  return Object.defineProperty(handler, 'name', { value: run.name })
}

export function requestId<P>(reporting: Reporting<P>): RequestHandler {
  return function requestId(request, response, next) {
    response.locals.exchange = new Exchange(request, response, reporting)
    next()
  }
}

export function lookUp(
  find: (path: string) => Match | undefined,
  servedOperations: Map<Operation, ServedOperation>,
  elsewhere: Fallback = () => undefined,
): RequestHandler {
  return function lookUp(request, response, next) {
    const exchange = exchangeOf(response)
    const { method, url } = request
    const query = url.indexOf('?')
    const path = query < 0 ? url : url.slice(0, query)
    const match = find(path)
    if (!match) {
      const handler = elsewhere(path)
      if (!handler) throw new Problem({ kind: 'not-found', detail: 'There is no such path.' })
      return serveElsewhere(exchange, handler, next)
    }
    const operation = match.operations.get(method)
    if (!operation) {
      const allowed = [...match.operations.keys()].join(', ')
      throw new Problem({ kind: 'method-not-allowed', detail: `This path has ${allowed}.` }, { Allow: allowed })
    }
    exchange.pathValues = match.values
    exchange.served = servedOperations.get(operation)
    next()
  }
}

/** The exchange is not the document's, but it is logged and counted, and can be found by its id like any other. */
async function serveElsewhere(exchange: Exchange, handler: RequestHandler, next: NextFunction) {
  const { request, response } = exchange
  const ended = () => exchange.end(response.writableFinished ? response.statusCode : clientClosed)
  response.set('X-Request-Id', exchange.requestId).once('close', ended)
  const leave = (error: unknown = new Error('What serves a path elsewhere must answer.')) => {
    // Unless it has begun, the answer is that of a failed exchange, which is logged and counted as it is sent.
    if (!response.headersSent) response.off('close', ended)
    next(error)
  }
  try {
    await handler(request, response, leave)
  } catch (error) {
    leave(error)
  }
}

/** An error of `accepts` is not a 401: a store that does not answer must not look like a bad credential. */
export function authenticate<P>(
  accepts: Authenticate<P>,
  admit: Admit<P> | undefined,
  proxyHops: number,
): RequestHandler {
  return stage(async function authenticate(exchange, { credential, operation, refusals }, next) {
    const value = credential.read(exchange.request)
    const caller = value === undefined ? undefined : await accepts(value, callerOf(exchange.request, proxyHops))
    if (value === undefined || !caller) {
      return send(exchange, { status: 401, text: refusals[401], headers: { 'WWW-Authenticate': credential.challenge } })
    }
    exchange.credential = value
    exchange.principal = caller.principal
    const exceeded = admit && (await admit(caller.principal))
    if (exceeded) return send(exchange, rateLimited(exceeded))
    if (!permits(caller.scopes, operation)) return send(exchange, { status: 403, text: refusals[403] })
    next()
  })
}

/** The address and the program of whoever calls, for the notes of who has used a key. */
function callerOf(request: Request, proxyHops: number): string {
  // Express reads X-Forwarded-For for `ip` also when nobody stands in front (1 µs).
  const address = proxyHops === 0 ? request.socket.remoteAddress : request.ip
  return `${address} ${request.headers['user-agent']?.slice(0, agentLengthMax) ?? ''}`.trim()
}

const agentLengthMax = 100

function permits(scopes: readonly string[] | null, operation: Operation): boolean {
  return scopes === null || operation.scopes.every((scope) => scopes.includes(scope))
}

function negotiateType({ request }: Exchange, { operation }: ServedOperation, next: NextFunction) {
  const types = operation.successTypes
  const { accept } = request.headers
  // The usual values first: `accepts` parses the header at every call (1 µs). It accepts all when there is no type.
  const isUsual = accept === undefined || accept === '*/*' || types.includes(accept)
  if (isUsual || request.accepts(types)) return next()
  throw new Problem({ kind: 'not-acceptable', detail: `This operation answers with ${types.join(' or ')}.` })
}

async function takeBody(exchange: Exchange, { operation }: ServedOperation, next: NextFunction) {
  exchange.body = await readBody(operation, exchange.request)
  next()
}

function validateRequest(exchange: Exchange, served: ServedOperation, next: NextFunction) {
  const { request, body } = exchange
  const query = request.url.indexOf('?')
  const search = query < 0 ? '' : request.url.slice(query + 1)
  exchange.parameters = served.readParameters(exchange.pathValues, search, request.headers)
  served.validate(exchange.parameters, body, next)
}

export function handle<P>(accepts: Authenticate<P>): RequestHandler {
  return stage(async function handle(exchange, { run, operation }) {
    const stillAuthenticated = async () => {
      const caller = await accepts(exchange.credential)
      return caller !== undefined && permits(caller.scopes, operation)
    }
    send(exchange, await run(new HandlerRequest(exchange, stillAuthenticated)))
  })
}

/** Turns what a stage or a handler threw into an answer that says nothing of the inside. */
export function fail(isUnavailable: (error: unknown) => boolean): ErrorRequestHandler {
  return function fail(error: unknown, _request, response, _next) {
    const exchange = exchangeOf(response)
    if (error instanceof ClientGone) return exchange.end(clientClosed)
    if (response.headersSent) return exchange.fault('The exchange failed after its answer.', { err: error })
    if (error instanceof Problem) return send(exchange, problemAnswer(error.problem, error.headers))
    const isDown = isUnavailable(error)
    exchange.fault(isDown ? 'The store is unavailable.' : 'The request failed.', { err: error })
    send(exchange, isDown ? unavailable : internalError)
  }
}
