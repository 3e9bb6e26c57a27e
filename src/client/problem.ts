/** Errors as values: what went wrong with a call, in the form of RFC 9457, whoever noticed it. */
import type { components } from '../../generated/execution.v1/types.ts'

/** One member of a request that is at fault. */
export type ProblemMember = components['schemas']['ProblemMember']

/** Why a call failed: the service's own problem (RFC 9457), or one in the same form where there was no such answer. */
export interface Problem {
  /** The answer's status code; 0 when there was no answer. */
  status: number
  /**
   * Names the kind of problem: `/docs/errors#not-found` and the like, from the service; `about:blank` where the status
   * says it all, as for 401 and 403 (RFC 9457, section 4.2.1); one of `problemTypes` where there was no usable answer.
   */
  type: string
  /** The same words for every problem of this type. */
  title: string
  /** What happened this time, for people. */
  detail: string
  /** Finds the request in the service's logs. */
  requestId?: string | undefined
  /** The members of the request at fault. */
  errors?: ProblemMember[] | undefined
  /** How long the service asks to wait before the next try (`Retry-After`). */
  retryAfterSeconds?: number | undefined
  /** The run that was waited for, as far as it is known: it goes on, whatever became of the wait. */
  runId?: string | undefined
  /** What was thrown, where something was. */
  cause?: unknown
}

/** The types of problems that the client itself notices. Their `status` is 0, but for an unexpected answer's. */
export const problemTypes = {
  /** The service could not be reached, or the connection broke. */
  networkFailure: 'urn:execution-service-client:network-failure',
  /** The answer, or the end of a run, did not come in time. */
  timeout: 'urn:execution-service-client:timeout',
  /** The caller's AbortSignal ended the call. */
  aborted: 'urn:execution-service-client:aborted',
  /** The answer cannot be read, is a redirect, or is not the service's. */
  unexpectedAnswer: 'urn:execution-service-client:unexpected-answer',
  /** The request could not be made from what was given. */
  invalidRequest: 'urn:execution-service-client:invalid-request',
} as const

/** A problem where only an exception can tell of it: inside `for await`, and from `unwrap`. */
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
  /** The same as a plain value. */
  readonly problem: Problem

  constructor(problem: Problem) {
    super(messageOf(problem), { cause: problem.cause })
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

function messageOf({ status, title, detail, requestId, errors = [] }: Problem): string {
  const members = errors.map((it) => `${it.pointer ?? it.parameter ?? it.header}: ${it.detail}`)
  const request = requestId ? ` (request ${requestId})` : ''
  return [`${status || title}: ${detail}${request}`, ...members].join('\n  ')
}

/** The problem that an answer tells of. `body` is what its text says: parsed where it is JSON. */
export function problemOf(response: Response, body: unknown): Problem {
  const { status } = response
  const requestId = response.headers.get('X-Request-Id') ?? undefined
  const retryAfterSeconds = retryAfterOf(response.headers)
  const more = { ...(requestId && { requestId }), ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) }
  if (isProblem(body)) return { ...body, ...more, status }
  const title = titles[status] ?? (response.statusText || `Status ${status}`)
  return { status, type: 'about:blank', title, detail: details[status] ?? shortened(body, title), ...more }
}

/** Whether the service itself has answered, and not something in front of it. */
export function isProblem(body: unknown): body is Problem {
  if (typeof body !== 'object' || body === null) return false
  const { type, title, detail } = body as Partial<Problem>
  return typeof type === 'string' && typeof title === 'string' && typeof detail === 'string'
}

const titles: Record<number, string> = { 401: 'Unauthorized', 403: 'Forbidden' }

/** The specification's 401 and 403 are one word of plain text. */
const details: Record<number, string> = {
  401: 'The API key is missing, unknown, deleted or expired.',
  403: 'The API key is valid, but its scopes do not permit this operation.',
}

function shortened(body: unknown, title: string): string {
  const text = typeof body === 'string' ? body.trim().slice(0, 200) : ''
  return text || `${title}.`
}

/** The seconds that `Retry-After` asks for, in seconds or as a date (RFC 9110, section 10.2.3). */
function retryAfterOf(headers: Headers): number | undefined {
  const value = headers.get('Retry-After')?.trim()
  if (!value) return undefined
  if (/^\d+$/.test(value)) return Number(value)
  const date = Date.parse(value)
  if (Number.isNaN(date)) return undefined
  // By the clock that wrote the date, where it says its time.
  const now = Date.parse(headers.get('Date') ?? '')
  return Math.max(0, (date - (Number.isNaN(now) ? Date.now() : now)) / 1000)
}

/** What fetch, or reading the body, has thrown. */
export function networkFailure(method: string, url: string, cause: unknown): Problem {
  const detail = `${method} ${url} got no answer: ${reasonOf(cause)}.`
  return { status: 0, type: problemTypes.networkFailure, title: 'Network failure', detail, cause }
}

/** Node tells why in the error's cause. */
function reasonOf(thrown: unknown): string {
  const { message = String(thrown), cause } = (thrown ?? {}) as { message?: string; cause?: unknown }
  const { code, message: reason } = (cause ?? {}) as { code?: string; message?: string }
  return String(reason || code || message).replace(/\.$/, '')
}

export function timedOut(detail: string): Problem {
  return { status: 0, type: problemTypes.timeout, title: 'Timeout', detail }
}

export function aborted(signal: AbortSignal | null | undefined): Problem {
  const detail = 'The caller has ended the call.'
  return { status: 0, type: problemTypes.aborted, title: 'Aborted', detail, cause: signal?.reason }
}

export function unexpectedAnswer(response: Response, detail: string): Problem {
  return { ...problemOf(response, undefined), type: problemTypes.unexpectedAnswer, title: 'Unexpected answer', detail }
}

export function unreadable(response: Response, cause: unknown): Problem {
  return { ...unexpectedAnswer(response, `The body of the answer cannot be read: ${reasonOf(cause)}.`), cause }
}

/** Browsers tell neither the status of a redirect nor where it leads. */
export function isRedirect({ status, type, headers }: Response): boolean {
  return type === 'opaqueredirect' || (status >= 300 && status < 400 && headers.has('Location'))
}

export function redirected(response: Response): Problem {
  const to = response.headers.get('Location') ?? 'another address'
  const detail = `The request is redirected to ${to}. The client does not follow: check baseUrl.`
  return unexpectedAnswer(response, detail)
}

export function invalidRequest(cause: unknown): Problem {
  const detail = `The request cannot be sent: ${reasonOf(cause)}.`
  return { status: 0, type: problemTypes.invalidRequest, title: 'Invalid request', detail, cause }
}
