/** Lets pages of every origin call the mock (Fetch Standard, section 3.2), with credentials too. */
import type { RequestHandler } from 'express'
import { createPathLookup } from '../../contract/path-lookup.ts'
import type { Operation } from '../../openapi/served-operations.ts'

const maxAgeSeconds = 600

/** @param exposed names of the headers that pages may read. */
export function cors(operations: Operation[], exposed: string[]): RequestHandler {
  const find = createPathLookup(operations)
  return function cors({ method, path, headers }, response, next) {
    const { origin } = headers
    response.setHeader('Vary', 'Origin')
    if (origin === undefined) return next()
    response.setHeader('Access-Control-Allow-Origin', origin)
    response.setHeader('Access-Control-Allow-Credentials', 'true')
    response.setHeader('Access-Control-Expose-Headers', exposed.join(', '))
    const match = find(path)
    if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined || !match) return next()
    response.setHeader('Access-Control-Allow-Methods', [...match.operations.keys()].join(', '))
    // `*` would be taken for a name when there are credentials.
    response.setHeader('Access-Control-Allow-Headers', headers['access-control-request-headers'] ?? '')
    response.setHeader('Access-Control-Max-Age', String(maxAgeSeconds))
    response.writeHead(204).end()
  }
}
