/** A server span for each request, by OpenTelemetry's conventions for HTTP. Loaded only where traces are on. */
import {
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
  ATTR_NETWORK_PROTOCOL_VERSION,
} from '@opentelemetry/semantic-conventions'
import type { Request, RequestHandler, Response } from 'express'
import type { Exchange } from '../../contract/exchange.ts'
import { type Attributes, type Tracing, within } from './tracing.ts'

/** Methods that the conventions know; any other is told as `_OTHER`, so that callers make up no names. */
const knownMethods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', 'QUERY']

/** What stands before everything else of a surface. */
export function traceRequests(tracing: Tracing) {
  return {
    ofDocument: (surface: string) => trace(tracing, surface, operationOf),
    ofDashboard: () => trace(tracing, 'dashboard', ({ route }) => ({ route: route?.path, attributes: {} })),
  }
}

/** What of a request is known only when it has been answered. */
interface Routed {
  /** The path as a template: no value of a caller's is in it. `undefined` where there is none. */
  route: string | undefined
  attributes: Attributes
}

function operationOf(_request: Request, response: Response): Routed {
  const { served, requestId } = response.locals.exchange as Exchange
  const { id, path } = served?.operation ?? {}
  const operation = id === undefined ? {} : { 'execution_service.operation_id': id }
  return { route: path, attributes: { 'execution_service.request_id': requestId, ...operation } }
}

/**
 * The path itself is told nowhere, nor the query or any header: they may
 * hold what nobody else is to read, such as the token of a link that signs somebody in.
 */
function trace(
  tracing: Tracing,
  surface: string,
  routeOf: (request: Request, response: Response) => Routed,
): RequestHandler {
  return function trace(request, response, next) {
    const method = knownMethods.includes(request.method) ? request.method : '_OTHER'
    const { traceparent, tracestate } = request.headers as Record<string, string | undefined>
    const attributes = {
      [ATTR_HTTP_REQUEST_METHOD]: method,
      [ATTR_NETWORK_PROTOCOL_VERSION]: request.httpVersion,
      'execution_service.surface': surface,
    }
    const word = method === '_OTHER' ? 'HTTP' : method
    const span = tracing.begin(word, { kind: 'server', attributes }, { traceparent, tracestate })
    response.once('close', () => {
      const { route, attributes: more } = routeOf(request, response)
      const status = response.statusCode
      const answered = response.headersSent ? { [ATTR_HTTP_RESPONSE_STATUS_CODE]: status } : {}
      const routed = route === undefined ? {} : { [ATTR_HTTP_ROUTE]: route }
      span.describe(route === undefined ? word : `${word} ${route}`, { ...answered, ...routed, ...more })
      span.end(response.headersSent && status >= 500 ? { error: { name: String(status) } } : {})
    })
    within(span, next)
  }
}
