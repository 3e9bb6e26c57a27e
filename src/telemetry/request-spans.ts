/**
 * One server span per request, by OpenTelemetry's conventions for HTTP. Spans omit the path, query and headers, which may
 * contain secrets such as the token of a sign-in link.
 */
import { type Attributes, context, propagation, ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api'
import type { Request, RequestHandler, Response } from 'express'
import type { Exchange } from '../contract/exchange.ts'
import { failSpan, tracer } from './tracing.ts'

/** The conventions report any other method as `_OTHER`, which bounds the number of distinct values. */
const knownMethods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', 'QUERY']

/** Spans of an API; the handler runs before all others of its surface. */
export function apiRequestSpans(surface: string): RequestHandler {
  return requestSpans(surface, (_request, response) => {
    const { served, requestId } = response.locals.exchange as Exchange
    const { id, path } = served?.operation ?? {}
    const operation = id === undefined ? {} : { 'execution_service.operation_id': id }
    return { route: path, attributes: { 'execution_service.request_id': requestId, ...operation } }
  })
}

export function dashboardRequestSpans(): RequestHandler {
  return requestSpans('dashboard', ({ route }) => ({ route: route?.path, attributes: {} }))
}

interface RouteDetails {
  /** The path template; `undefined` if no route matches. */
  route: string | undefined
  attributes: Attributes
}

function requestSpans(
  surface: string,
  findRoute: (request: Request, response: Response) => RouteDetails,
): RequestHandler {
  return (request, response, next) => {
    const method = knownMethods.includes(request.method) ? request.method : '_OTHER'
    const name = method === '_OTHER' ? 'HTTP' : method
    const attributes = {
      'http.request.method': method,
      'network.protocol.version': request.httpVersion,
      'execution_service.surface': surface,
    }
    const parent = propagation.extract(ROOT_CONTEXT, request.headers)
    const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent)
    response.once('close', () => {
      const { route, attributes } = findRoute(request, response)
      span.setAttributes(attributes)
      if (route !== undefined) span.updateName(`${name} ${route}`).setAttribute('http.route', route)
      if (response.headersSent) {
        span.setAttribute('http.response.status_code', response.statusCode)
        if (response.statusCode >= 500) failSpan(span, { name: String(response.statusCode) })
      }
      span.end()
    })
    context.with(trace.setSpan(parent, span), next)
  }
}
