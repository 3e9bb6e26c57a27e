/** Problem types of the domain, and what the responses of its operations share. */
import { httpProblemTypes, invalidRequest, type ProblemMember, type ProblemTypes } from '../contract/problem.ts'

export const domainProblemTypes = {
  'invalid-workflows': { status: 400, title: 'Invalid workflows' },
  'idempotency-conflict': { status: 409, title: 'Idempotency key reused' },
  'name-taken': { status: 409, title: 'Name taken' },
  'browser-context-in-use': { status: 409, title: 'Browser context in use' },
  'file-in-use': { status: 409, title: 'File in use' },
  'run-not-finished': { status: 409, title: 'Run not finished' },
  'run-does-not-fit': { status: 409, title: 'Run does not fit' },
  'too-many-bulk-actions': { status: 409, title: 'Too many bulk actions' },
  'too-many-webhook-endpoints': { status: 409, title: 'Too many webhook endpoints' },
  'too-many-notification-rules': { status: 409, title: 'Too many notification rules' },
  'too-many-secrets': { status: 409, title: 'Too many secrets' },
  'too-many-settings': { status: 409, title: 'Too many settings' },
  'too-many-schedules': { status: 409, title: 'Too many schedules' },
  'wait-ended': { status: 409, title: 'Wait ended' },
  'worker-conflict': { status: 409, title: 'Worker conflict' },
  'lease-lost': { status: 409, title: 'Lease lost' },
  'breaks-callers': { status: 409, title: 'Breaks callers' },
  'deployments-disabled': { status: 409, title: 'Deployments disabled' },
  'sign-in-does-not-fit': { status: 409, title: 'Sign-in does not fit' },
  'schedule-does-not-fit': { status: 409, title: 'Schedule does not fit' },
  'version-changed': { status: 412, title: 'Version changed' },
  'range-not-satisfiable': { status: 416, title: 'Range not satisfiable' },
  'too-many-queued-runs': { status: 429, title: 'Too many queued runs' },
} as const satisfies ProblemTypes

/** Every problem type that the APIs send; each is a section of docs/guides/errors.md. */
export const problemTypes: ProblemTypes = { ...httpProblemTypes, ...domainProblemTypes }

/** A 404 for a resource that does not exist or belongs to another account. */
export function notFound(noun: string, errors?: ProblemMember[]) {
  const detail = `No such ${noun} in this account.`
  return { status: 404 as const, problem: { kind: 'not-found' as const, detail, ...(errors && { errors }) } }
}

/** A 416 for a range that begins after the end of a file. */
export function rangeNotSatisfiable(noun: string, sizeBytes: number) {
  const detail = `The ${noun} has ${sizeBytes} bytes; the range begins after its end.`
  const errors = [{ header: 'Range', detail: `begins after the end of the ${noun}` }]
  const headers = { 'Content-Range': `bytes */${sizeBytes}` }
  return { status: 416 as const, headers, problem: { kind: 'range-not-satisfiable', detail, errors } }
}

/** Milliseconds since 1970 as responses have them. */
export function toTimestamp(at: number): string
export function toTimestamp(at: number | null): string | null
export function toTimestamp(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString()
}

export const wrongCursor = invalidRequest([{ parameter: 'cursor', detail: 'is not a cursor of this list' }])
