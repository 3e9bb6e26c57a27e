/** Classifies PostgreSQL's errors: the store is unavailable, the transaction can be retried, or the statement is wrong. */

import { describeCauses } from '../error-causes.ts'
import { StoreUnavailable } from '../store.ts'

/**
 * SQLSTATE classes (PostgreSQL documentation, appendix A) of failures that may pass: connection, transaction state (such
 * as a read-only server), authorization, resources, operator intervention, system, configuration file, internal.
 */
const unavailableClasses = ['08', '25', '28', '53', '57', '58', 'F0', 'XX']

/** invalid_catalog_name (no such database), lock_not_available */
const unavailableStates = ['3D000', '55P03']

/** "cached plan must not change result type": a newer version of the service has migrated the tables. */
const stalePlanState = '0A000'
/** serialization_failure, deadlock_detected */
const conflictStates = ['40001', '40P01']

/** Codes of system errors, and messages of the driver's errors, which have no code. */
const unavailableCodes = /^(ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ENOENT|EACCES)/
const unavailableMessages = /[Cc]onnection|timeout|Cannot use a pool after calling end|not queryable/

export function errorCode(error: unknown): string | undefined {
  const cause = error instanceof StoreUnavailable ? error.cause : error
  return (cause as { code?: string } | undefined)?.code
}

/** Whether the connection has prepared statements for an earlier version of the tables. */
export function isStalePlan(error: unknown): boolean {
  return errorCode(error) === stalePlanState
}

/** Whether the same transaction may succeed if retried at once. A stale plan needs another connection. */
export function isRetryable(error: unknown): boolean {
  return isStalePlan(error) || conflictStates.includes(errorCode(error) ?? '') || isEventNumberTaken(error)
}

/** A statement without a transaction numbers events by its snapshot, before it locks their run. */
function isEventNumberTaken(error: unknown): boolean {
  return (error as { constraint?: string } | undefined)?.constraint === 'run_events_by_run'
}

/** Turns failures of the store, as opposed to the statement, into StoreUnavailable. */
export function toStoreError(error: unknown): unknown {
  if (error instanceof StoreUnavailable) return error
  return isUnavailable(error) ? new StoreUnavailable(describeCauses(error), { cause: error }) : error
}

/** Whether the connection must be discarded: its plans are stale, or it got no response from the server. */
export function isConnectionUnusable(error: unknown): boolean {
  const cause = error instanceof StoreUnavailable ? error.cause : error
  return isStalePlan(cause) || (isUnavailable(cause) && !isSqlState(errorCode(cause) ?? ''))
}

/** No SQLSTATE class begins with E; EPIPE has five letters, too. */
export function isSqlState(code: string): boolean {
  return /^(?!E)[0-9A-Z]{5}$/.test(code)
}

function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = errorCode(error)
  if (code === undefined) return unavailableMessages.test(error.message)
  if (!isSqlState(code)) return unavailableCodes.test(code)
  return unavailableClasses.includes(code.slice(0, 2)) || unavailableStates.includes(code) || isRetryable(error)
}
