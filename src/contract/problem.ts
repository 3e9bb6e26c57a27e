/** Problem details (RFC 9457): the body of every error response except 401 and 403. */
import { parsePointer, toPointer } from '../openapi/json-pointer.ts'

interface ProblemType {
  status: number
  title: string
}

/** Problem types by kind. The kind is the anchor of the section in docs/guides/errors.md that `type` links to. */
export type ProblemTypes = Readonly<Record<string, ProblemType>>

/** Problem types that any document needs; a surface adds those of its domain. */
export const httpProblemTypes = {
  'invalid-request': { status: 400, title: 'Invalid request' },
  'not-found': { status: 404, title: 'Not found' },
  'method-not-allowed': { status: 405, title: 'Method not allowed' },
  'not-acceptable': { status: 406, title: 'Not acceptable' },
  'request-timeout': { status: 408, title: 'Request timeout' },
  'content-too-large': { status: 413, title: 'Content too large' },
  'unsupported-media-type': { status: 415, title: 'Unsupported media type' },
  'rate-limited': { status: 429, title: 'Too many requests' },
  'too-many-concurrent-requests': { status: 429, title: 'Too many concurrent requests' },
  'header-fields-too-large': { status: 431, title: 'Header fields too large' },
  'internal-error': { status: 500, title: 'Internal error' },
  unavailable: { status: 503, title: 'Unavailable' },
  'storage-quota-exceeded': { status: 507, title: 'Storage quota exceeded' },
} as const satisfies ProblemTypes

export type HttpProblemKind = keyof typeof httpProblemTypes

/** One validation error: its place, as exactly one of `pointer`, `parameter` and `header`, and a description. */
export type ProblemMember = { detail: string } & ({ pointer: string } | { parameter: string } | { header: string })

export interface ProblemDetail {
  /** A key of the surface's problem types. */
  kind: string
  detail: string
  errors?: readonly ProblemMember[]
}

/** Aborts a request and responds with the problem. */
export class Problem extends Error {
  readonly problem: ProblemDetail
  readonly headers: Record<string, string>

  constructor(problem: ProblemDetail & { kind: HttpProblemKind }, headers: Record<string, string> = {}) {
    super(problem.detail)
    this.problem = problem
    this.headers = headers
  }
}

/** The credential of a waiting request is no longer valid: 401. */
export class CredentialRevoked extends Error {}

export function problemBody(types: ProblemTypes, { kind, detail, errors }: ProblemDetail, requestId: string) {
  const { status, title } = problemType(types, kind)
  const members = errors && { errors: errors.map(withShortNames) }
  return { type: `/docs/errors#${kind}`, title, status, detail, requestId, ...members }
}

/** Longest name that a problem repeats, in UTF-16 code units; the rest is replaced by `…`. */
const nameLengthMax = 200

/** The names of members and parameters are the caller's: they may be long, and not be I-JSON (RFC 7493, section 2.1). */
function withShortNames(member: ProblemMember): ProblemMember {
  if ('pointer' in member) return { ...member, pointer: toPointer(parsePointer(member.pointer).map(shorten)) }
  return 'parameter' in member ? { ...member, parameter: shorten(member.parameter) } : member
}

function shorten(name: string): string {
  const start = name.length > nameLengthMax ? `${name.slice(0, nameLengthMax)}…` : name
  return start.toWellFormed().replace(/\p{Noncharacter_Code_Point}/gu, '\uFFFD')
}

export function problemType(types: ProblemTypes, kind: string): ProblemType {
  const type = types[kind]
  if (!type) throw new Error(`There is no problem type ${kind}.`)
  return type
}

/** The credential does not permit the request, as its handler has found: 403. */
export class NotPermitted extends Error {}

/** Maximum number of validation errors in a response. */
export const errorsMax = 20

/** A 400 response with its first validation errors. */
export function invalidRequest(errors: ProblemMember[]) {
  const detail = 'The request is invalid. Nothing was stored.'
  return {
    status: 400 as const,
    problem: { kind: 'invalid-request' as const, detail, errors: errors.slice(0, errorsMax) },
  }
}

export function invalidBody(pointer: string, detail: string): Problem {
  return new Problem(invalidRequest([{ pointer, detail }]).problem)
}
