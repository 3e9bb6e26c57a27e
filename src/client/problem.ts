/** Errors as values, in the form of RFC 9457: those of the service and those that the client detects. */
import type { components } from '../../generated/execution.v1/types.ts'
import type { Result } from './operation.ts'

/** One invalid member of a request. */
export type ProblemMember = components['schemas']['ProblemMember']

/** Why a call failed: the problem that the service sent (RFC 9457), or one that the client created in the same form. */
export interface Problem {
  /** The HTTP status; 0 if there was no response. */
  status: number
  /**
   * Identifies the kind of problem. From the service: `/docs/errors#not-found` and similar. `about:blank` if the status
   * says everything, as for 401 and 403 (RFC 9457, section 4.2.1). One of `problemTypes` if the client detected it.
   */
  type: string
  /** Short summary, the same for every problem of this type. */
  title: string
  /** Explanation of this occurrence, for people. */
  detail: string
  /** Identifies the request in the service's logs. */
  requestId?: string | undefined
  /** The invalid members of the request. */
  errors?: ProblemMember[] | undefined
  /** How long to wait before the next try, from `Retry-After`. */
  retryAfterSeconds?: number | undefined
  /** The run that was awaited, if its id is known. The run continues. */
  runId?: string | undefined
  /** The value that was thrown, if any. */
  cause?: unknown
}

/** The types of problems that the client detects. Their `status` is 0, except for `unexpectedResponse`. */
export const problemTypes = {
  /** The service could not be reached, or the connection broke. */
  networkFailure: 'urn:execution-service-client:network-failure',
  /** The response, or the end of a run, did not arrive in time. */
  timeout: 'urn:execution-service-client:timeout',
  /** The caller's AbortSignal aborted the call. */
  aborted: 'urn:execution-service-client:aborted',
  /** The response cannot be read, is a redirect, or does not come from the service. */
  unexpectedResponse: 'urn:execution-service-client:unexpected-response',
  /** The request could not be created from the given options. */
  invalidRequest: 'urn:execution-service-client:invalid-request',
} as const

/** A Problem as an Error: thrown inside `for await`, and by `unwrap`. */
export class ProblemError extends Error implements Problem {
  override readonly name = 'ProblemError'
  readonly status: number
  readonly type: string
  readonly title: string
  readonly detail: string
  readonly requestId: string | undefined
  readonly errors: ProblemMember[] | undefined
  readonly retryAfterSeconds: number | undefined
  readonly runId: string | undefined
  /** The problem as a plain value. */
  readonly problem: Problem

  constructor(problem: Problem) {
    super(toMessage(problem), { cause: problem.cause })
    this.status = problem.status
    this.type = problem.type
    this.title = problem.title
    this.detail = problem.detail
    this.requestId = problem.requestId
    this.errors = problem.errors
    this.retryAfterSeconds = problem.retryAfterSeconds
    this.runId = problem.runId
    this.problem = problem
  }
}

/**
 * Returns the data of a result, for callers who prefer exceptions.
 *
 * @example
 * const run = unwrap(await client.getRun({ params: { path: { runId } } }))
 *
 * @throws {ProblemError} if the result is an error.
 */
export function unwrap<Data>(result: Result<Data>): Data {
  if (result.error) throw new ProblemError(result.error)
  return result.data
}

function toMessage({ status, title, detail, requestId, errors = [] }: Problem): string {
  const members = errors.map((it) => `${it.pointer ?? it.parameter ?? it.header}: ${it.detail}`)
  const request = requestId ? ` (request ${requestId})` : ''
  return [`${status || title}: ${detail}${request}`, ...members].join('\n  ')
}

/** @param body the parsed body if it is JSON, otherwise its text. */
export function problemFrom(response: Response, body: unknown): Problem {
  const { status, headers } = response
  const requestId = headers.get('X-Request-Id') ?? undefined
  const retryAfterSeconds = parseRetryAfter(headers)
  const more = { ...(requestId && { requestId }), ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) }
  if (isProblem(body)) return { ...body, ...more, status }
  const title = titles[status] ?? (response.statusText || `Status ${status}`)
  const text = typeof body === 'string' ? body.trim().slice(0, 200) : ''
  return { status, type: 'about:blank', title, detail: details[status] ?? (text || `${title}.`), ...more }
}

/** Distinguishes the service from a gateway in front of it. */
function isProblem(body: unknown): body is Problem {
  if (typeof body !== 'object' || body === null) return false
  const { type, title, detail } = body as Partial<Problem>
  return typeof type === 'string' && typeof title === 'string' && typeof detail === 'string'
}

/** Responses without a problem: the specification defines the bodies of 401 and 403 as one word of plain text. */
const titles: Record<number, string> = { 304: 'Not modified', 401: 'Unauthorized', 403: 'Forbidden' }

const details: Record<number, string> = {
  304: 'The resource is the one that If-None-Match names.',
  401: 'The API key is missing, unknown, deleted or expired.',
  403: 'The API key is valid, but its scopes do not permit this operation.',
}

/** `Retry-After` in seconds or as a date (RFC 9110, section 10.2.3). */
function parseRetryAfter(headers: Headers): number | undefined {
  const value = headers.get('Retry-After')?.trim()
  if (!value) return undefined
  if (/^\d+$/.test(value)) return Number(value)
  const date = Date.parse(value)
  if (Number.isNaN(date)) return undefined
  // Relative to the server's clock if it sends `Date`: the local clock may be wrong.
  const now = Date.parse(headers.get('Date') ?? '')
  return Math.max(0, (date - (Number.isNaN(now) ? Date.now() : now)) / 1000)
}

/** @param cause what fetch, or reading the body, threw. */
export function networkFailure(method: string, url: string, cause: unknown): Problem {
  const detail = `${method} ${url} got no response: ${reasonFor(cause)}.`
  return { status: 0, type: problemTypes.networkFailure, title: 'Network failure', detail, cause }
}

/** Node's fetch puts the reason into the error's cause. */
function reasonFor(thrown: unknown): string {
  const { message = String(thrown), cause } = (thrown ?? {}) as { message?: string; cause?: unknown }
  const { code, message: reason } = (cause ?? {}) as { code?: string; message?: string }
  return String(reason || code || message).replace(/\.$/, '')
}

export function timedOut(detail: string): Problem {
  return { status: 0, type: problemTypes.timeout, title: 'Timeout', detail }
}

export function aborted(signal: AbortSignal | null | undefined): Problem {
  const detail = 'The caller aborted the call.'
  return { status: 0, type: problemTypes.aborted, title: 'Aborted', detail, cause: signal?.reason }
}

export function unexpectedResponse(response: Response, detail: string): Problem {
  const type = problemTypes.unexpectedResponse
  return { ...problemFrom(response, undefined), type, title: 'Unexpected response', detail }
}

export function unreadable(response: Response, cause: unknown): Problem {
  return { ...unexpectedResponse(response, `The response body cannot be read: ${reasonFor(cause)}.`), cause }
}

/** Browsers hide the status and location of a redirect. */
export function isRedirect({ status, type, headers }: Response): boolean {
  return type === 'opaqueredirect' || (status >= 300 && status < 400 && headers.has('Location'))
}

export function redirected(response: Response): Problem {
  const to = response.headers.get('Location') ?? 'another address'
  return unexpectedResponse(
    response,
    `The request was redirected to ${to}, which the client does not follow: check baseUrl.`,
  )
}

export function invalidRequest(cause: unknown): Problem {
  const detail = `The request cannot be sent: ${reasonFor(cause)}.`
  return { status: 0, type: problemTypes.invalidRequest, title: 'Invalid request', detail, cause }
}
