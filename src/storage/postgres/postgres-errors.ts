/** What PostgreSQL's failures mean: the store is unavailable, the work is to be run again, or the statement is wrong. */
import { StoreUnavailable } from '../store.ts'

/** Classes of SQLSTATE (PostgreSQL, appendix A) after which the store may serve again: connection, rights of the role that
 * signs in, transaction state (a lost transaction, a server that only reads), resources, operator, system, internal. */
const unavailableClasses = ['08', '25', '28', '53', '57', '58', 'F0', 'XX']

/** No such database, and a lock that was waited for too long. */
const unavailableStates = ['3D000', '55P03']

/**
 * Serialization failure and deadlock: of two works that were in each other's way, one is to be run again. And a statement
 * that was prepared before a newer version of the service has migrated the tables ("cached plan must not change result
 * type"), which has to be prepared anew, on another connection.
 */
const againStates = ['40001', '40P01', '0A000']

/** Of the system, and of the driver, whose own errors have no code. */
const unavailableCodes = /^(ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ENOENT|EACCES)/
const unavailableMessages =
  /connection|Connection|timeout|Cannot use a pool after calling end|Client was closed and is not queryable|not queryable/

export function errorCode(error: unknown): string | undefined {
  const cause = error instanceof StoreUnavailable ? error.cause : error
  return (cause as { code?: string } | undefined)?.code
}

/** Whether the same work may succeed when it is run again at once. */
export function isRetryable(error: unknown): boolean {
  return againStates.includes(errorCode(error) ?? '')
}

/** A failure that is the store's, not the statement's, becomes StoreUnavailable. */
export function toStoreError(error: unknown): unknown {
  if (error instanceof StoreUnavailable) return error
  return isUnavailable(error) ? new StoreUnavailable((error as Error).message, { cause: error }) : error
}

/** Whether the connection has statements prepared for tables as they were. */
export function isStalePlan(error: unknown): boolean {
  return errorCode(error) === '0A000'
}

/** Whether the connection is of no use any more: outdated, or one on which no answer has come. */
export function isConnectionUnusable(error: unknown): boolean {
  const cause = error instanceof StoreUnavailable ? error.cause : error
  return isStalePlan(cause) || (isUnavailable(cause) && !isSqlState(errorCode(cause) ?? ''))
}

function isSqlState(code: string): boolean {
  return /^[0-9A-Z]{5}$/.test(code)
}

function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = errorCode(error)
  if (code === undefined) return unavailableMessages.test(error.message)
  if (isSqlState(code)) {
    return unavailableClasses.includes(code.slice(0, 2)) || unavailableStates.includes(code) || isRetryable(error)
  }
  return unavailableCodes.test(code)
}
