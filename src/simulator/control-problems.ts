/** What the control of a simulator responds to requests that it refuses. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { invalidRequest, Problem, type ProblemDetail, type ProblemMember, problemBody } from '../contract/problem.ts'
import { problemTypes } from '../domain/problems.ts'

export const bodyLimit = '11mb'
export const bodyBytesMax = 11 * 1024 * 1024

export function invalid(errors: ProblemMember[]): Problem {
  return new Problem({ ...invalidRequest(errors).problem, detail: 'The request is invalid. Nothing was changed.' })
}

export function notFound(detail: string): Problem {
  return new Problem({ kind: 'not-found', detail })
}

/**
 * A page of another site must not set the clock of a simulator that its visitor runs: requests of forms and scripts need no
 * permission of CORS to be sent. Browsers state the initiator in `Sec-Fetch-Site` or `Origin`; other clients send neither.
 *
 * @throws {Problem}
 */
export function refuseOtherSites({ method, headers }: IncomingMessage): void {
  if (method === 'GET' || method === 'HEAD') return
  const site = headers['sec-fetch-site']
  const { origin, host } = headers
  const isOwn =
    site === undefined
      ? origin === undefined || URL.parse(origin)?.host === host
      : ['same-origin', 'none'].includes(String(site))
  if (!isOwn) throw invalid([{ header: 'Origin', detail: 'is another site: pages cannot change a simulator' }])
}

/** Responds with the problem that an error stands for. */
export function sendProblem(response: ServerResponse, error: unknown): void {
  const body = problemBody(problemTypes, toProblem(error), randomUUID())
  const headers = error instanceof Problem ? error.headers : {}
  response.writeHead(body.status, { 'Content-Type': 'application/problem+json', ...headers }).end(JSON.stringify(body))
}

function toProblem(error: unknown): ProblemDetail {
  if (error instanceof Problem) return error.problem
  const { type, message, status } = Object(error)
  if (type === 'entity.too.large') return { kind: 'content-too-large', detail: `The body is larger than ${bodyLimit}.` }
  if (type === 'entity.parse.failed')
    return invalid([{ pointer: '', detail: `is not JSON: ${String(message)}` }]).problem
  // Of Express, such as for a path that cannot be decoded.
  if (status >= 400 && status < 500) return invalid([{ pointer: '', detail: String(message) }]).problem
  return { kind: 'internal-error', detail: String(message ?? error) }
}
