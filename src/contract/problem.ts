/** The catalogue of problems (RFC 9457): every error answer other than 401 and 403 is one of these. */

/** One member of a request that is at fault: exactly one of `pointer`, `parameter` and `header`, and what is wrong. */
export type ProblemMember = { detail: string } & ({ pointer: string } | { parameter: string } | { header: string })

interface Kind {
  status: number
  title: string
}

/** Each key is the anchor of a section in docs/guides/errors.md, to which the problem's `type` resolves. */
export const problemKinds = {
  'invalid-request': { status: 400, title: 'Invalid request' },
  'not-found': { status: 404, title: 'Not found' },
  'method-not-allowed': { status: 405, title: 'Method not allowed' },
  'not-acceptable': { status: 406, title: 'Not acceptable' },
  'request-timeout': { status: 408, title: 'Request timeout' },
  'idempotency-conflict': { status: 409, title: 'Idempotency key reused' },
  'name-taken': { status: 409, title: 'Name taken' },
  'browser-context-in-use': { status: 409, title: 'Browser context in use' },
  'content-too-large': { status: 413, title: 'Content too large' },
  'unsupported-media-type': { status: 415, title: 'Unsupported media type' },
  'rate-limited': { status: 429, title: 'Too many requests' },
  'too-many-queued-runs': { status: 429, title: 'Too many queued runs' },
  'header-fields-too-large': { status: 431, title: 'Header fields too large' },
  'internal-error': { status: 500, title: 'Internal error' },
  unavailable: { status: 503, title: 'Unavailable' },
} as const satisfies Record<string, Kind>

export type ProblemKind = keyof typeof problemKinds

/** What an answer adds to the kind of its problem. */
export interface ProblemDetail {
  kind: ProblemKind
  detail: string
  errors?: readonly ProblemMember[]
}

/** A problem that ends the handling of a request. */
export class Problem extends Error {
  readonly problem: ProblemDetail
  readonly headers: Record<string, string>

  constructor(problem: ProblemDetail, headers: Record<string, string> = {}) {
    super(problem.detail)
    this.problem = problem
    this.headers = headers
  }
}

/** The body of the answer that tells of the problem. */
export function problemBody({ kind, detail, errors }: ProblemDetail, requestId: string) {
  const { status, title } = problemKinds[kind]
  return { type: `/docs/errors#${kind}`, title, status, detail, requestId, ...(errors && { errors }) }
}

/** The answer for a request that does not fit the contract. */
export function invalidRequest(errors: ProblemMember[]) {
  const detail = 'The request does not fit the contract. Nothing was stored.'
  return { status: 400 as const, problem: { kind: 'invalid-request' as const, detail, errors } }
}

/** The answer for a resource that does not exist, or belongs to another account. */
export function notFound(noun: string, errors?: ProblemMember[]) {
  const detail = `No such ${noun} in this account.`
  return { status: 404 as const, problem: { kind: 'not-found' as const, detail, ...(errors && { errors }) } }
}
