/**
 * Requests of browsers from other origins (CORS; Fetch Standard, section 3.2). Credentials of the browser, such as
 * cookies, are never allowed: a page sends the key or token itself.
 */
import { type Document, listOperations, type ResponseObject, resolve } from '../openapi/document.ts'
import type { Operation } from '../openapi/served-operations.ts'
import type { HandlerResponse } from './exchange.ts'

/** The origins whose pages may call a surface, and what they may read. */
export interface CrossOrigin {
  origins: OriginSet
  /** The documented response headers, for `Access-Control-Expose-Headers`. */
  exposedHeaders: string
}

/** Seconds for which a browser may reuse the answer to a preflight request. Chromium's maximum. */
const preflightSeconds = '7200'

/** Headers of W3C Trace Context, which every operation takes. */
const traceHeaders = ['traceparent', 'tracestate']

type OriginSet = Pick<ReadonlySet<string>, 'has'>

export type Origins = readonly string[] | OriginSet

export function crossOriginOf(document: Document, origins: Origins): CrossOrigin {
  const names = listOperations(document).flatMap(({ operation }) =>
    Object.values(operation.responses ?? {}).flatMap((it) =>
      Object.keys(resolve<ResponseObject>(document, it).headers ?? {}),
    ),
  )
  return {
    origins: 'has' in origins ? origins : new Set(origins),
    exposedHeaders: [...new Set(names)].sort().join(', '),
  }
}

/** The origins of pages that this machine serves, whatever their port, and some more. */
export function loopbackOrigins(others: readonly string[] = []): OriginSet {
  return { has: (origin) => others.includes(origin) || isLoopback(URL.parse(origin)?.hostname ?? '') }
}

function isLoopback(hostname: string): boolean {
  const isAddress = hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
  return isAddress || hostname === 'localhost' || hostname.endsWith('.localhost')
}

/** Alternating names and values, for any response. `Vary` keeps caches from serving one origin's response to another. */
export function crossOriginHeaders({ origins, exposedHeaders }: CrossOrigin, origin: string | undefined): string[] {
  if (origin === undefined || !origins.has(origin)) return ['Vary', 'Origin']
  return [
    ...['Vary', 'Origin', 'Access-Control-Allow-Origin', origin],
    ...['Access-Control-Expose-Headers', exposedHeaders],
  ]
}

/** Whether the request asks for permission to send another one from an origin that may. */
export function isPreflight(
  { origins }: CrossOrigin,
  method: string,
  headers: NodeJS.Dict<string | string[]>,
): boolean {
  const { origin, 'access-control-request-method': requested } = headers
  return method === 'OPTIONS' && typeof origin === 'string' && origins.has(origin) && requested !== undefined
}

/** Permits every operation of the path with the headers that its document names. Needs no key: browsers send none. */
export function preflightResponse(operations: ReadonlyMap<string, Operation>): HandlerResponse {
  const headers = [...operations.values()].flatMap(({ scheme, body, parameters }) => [
    scheme.type === 'header' ? scheme.name : 'Authorization',
    ...(body ? ['Content-Type'] : []),
    ...parameters.filter((it) => it.in === 'header').map(({ name }) => name),
  ])
  return {
    status: 204,
    headers: {
      'Access-Control-Allow-Methods': [...operations.keys()].join(', '),
      'Access-Control-Allow-Headers': [...new Set([...headers, ...traceHeaders])].join(', '),
      'Access-Control-Max-Age': preflightSeconds,
    },
  }
}
