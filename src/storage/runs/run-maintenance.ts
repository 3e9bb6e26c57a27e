/** The statements of maintenance: runs become ready, expire, are counted in statistics, measured and erased. */
import { inList } from '../statement-values.ts'
import { statement, type Transaction } from '../store.ts'
import type { RunsTable } from '../tables/run-tables.ts'
import { countedStart, isReady, runBytes } from './run-statements.ts'

// Delays, expiry and lost leases

/** When each kind of maintenance is next due; `null` if it is not. */
export interface DueTimes {
  delay: number | null
  /** A sleep or the time for an answer ends. */
  wait: number | null
  /** A throttle permits a start. */
  permit: number | null
  expiry: number | null
  lease: number | null
  idempotencyKey: number | null
  worker: number | null
  schedule: number | null
  /** A check whether a browser context is signed in. */
  sessionCheck: number | null
  /** A run has waited for a session for too long. */
  sessionWait: number | null
  bulkAction: number | null
  delivery: number | null
  /** Whether runs are ready, or wait for a concurrency group or a browser context, or schedules for a run. */
  hasReady: 1 | null
  waitsForGroup: 1 | null
  waitsForContext: 1 | null
  scheduleWaits: 1 | null
  /** Whether rules have events of which no message was made. */
  hasNotifications: 1 | null
}

/** The endpoint of emails to users who follow a run. */
export const followersEndpoint = 'run-followers'

/** Runs that sign in expire between their attempts, too: other runs wait for them. */
const mayExpire = '(attempts = continuations OR signs_in IS NOT NULL)'

/** The members that are times. The others say that something waits for an event. */
export type DueTimeName = { [Name in keyof DueTimes]: number extends DueTimes[Name] ? Name : never }[keyof DueTimes]

/** An index look-up for each, except that of leases, which reads an entry for each running run. */
export const findDueTimes = statement<DueTimes, []>(`SELECT
  (SELECT MIN(available_at) FROM runs WHERE status = 'queued' AND delayed = 1) AS delay,
  (SELECT MIN(deadline) FROM run_waits WHERE status = 'open' AND deadline IS NOT NULL) AS wait,
  (SELECT MIN(permits_at) FROM throttles) AS permit,
  (SELECT MIN(expires_at) FROM runs WHERE status = 'queued' AND expires_at IS NOT NULL AND ${mayExpire}) AS expiry,
  (SELECT MIN(lease_expires_at) FROM runs WHERE status = 'running') AS lease,
  (SELECT MIN(expires_at) FROM idempotency_keys) AS "idempotencyKey",
  (SELECT MIN(alive_until) FROM workers) AS worker,
  (SELECT MIN(next_at) FROM schedules WHERE paused_reason IS NULL AND waits_for_run = 0) AS schedule,
  (SELECT MIN(next_check_at) FROM context_sign_ins WHERE next_check_at IS NOT NULL) AS "sessionCheck",
  (SELECT MIN(available_at) FROM runs WHERE status = 'waiting' AND waiting_for = 'signIn') AS "sessionWait",
  (SELECT MIN(next_at) FROM bulk_actions WHERE finished_at IS NULL) AS "bulkAction",
  (SELECT MIN(due) FROM (SELECT (SELECT MIN(next_attempt_at) FROM webhook_deliveries
      WHERE endpoint_id = e.id AND status = 'pending') AS due
    FROM webhook_endpoints AS e WHERE disabled_reason IS NULL
    UNION ALL SELECT (SELECT MIN(next_attempt_at) FROM webhook_deliveries
      WHERE endpoint_id = r.id AND status = 'pending') FROM notification_rules AS r
    UNION ALL SELECT MIN(next_attempt_at) FROM webhook_deliveries
      WHERE endpoint_id = '${followersEndpoint}' AND status = 'pending') AS of_endpoints) AS delivery,
  (SELECT 1 FROM runs WHERE ${isReady} LIMIT 1) AS "hasReady",
  (SELECT 1 FROM runs WHERE status = 'queued' AND waiting_for = 'concurrencyGroup' LIMIT 1) AS "waitsForGroup",
  (SELECT 1 FROM runs WHERE status = 'queued' AND waiting_for = 'browserContext' LIMIT 1) AS "waitsForContext",
  (SELECT 1 FROM schedules WHERE waits_for_run = 1 LIMIT 1) AS "scheduleWaits",
  (SELECT 1 FROM notification_events LIMIT 1) AS "hasNotifications"`)

export const findDelayed = statement<{ id: string }, [now: number]>(`SELECT id FROM runs
  WHERE status = 'queued' AND delayed = 1 AND available_at <= ? ORDER BY available_at LIMIT 500`)

/** @param ids of locked runs. */
export async function endDelays(tx: Transaction, ids: readonly string[], now: number): Promise<void> {
  const { marks, values } = inList(ids)
  await tx.all(
    `UPDATE runs SET delayed = 0 WHERE id IN (${marks}) AND CASE WHEN status = 'queued' AND available_at <= ? THEN 1 ELSE 0 END = 1`,
    [...values, now],
  )
}

export const findExpiringRuns = statement<{ id: string }, [now: number]>(`SELECT id FROM runs
  WHERE status = 'queued' AND expires_at IS NOT NULL AND expires_at <= ? AND ${mayExpire} LIMIT 500`)

/** Returns no row when the run has started or was cancelled. */
export const expireRun = statement<
  Pick<
    RunsTable,
    | 'workflow_id'
    | 'concurrency_group'
    | 'attempts'
    | 'continuations'
    | 'signs_in'
    | 'browser_context_id'
    | 'deployment_problem'
  >,
  [finishedAt: number, id: string]
>(
  `UPDATE runs SET status = 'expired', reason = 'notStartedInTime', finished_at = ?
    WHERE id = ? AND status = 'queued' AND ${mayExpire} RETURNING workflow_id, concurrency_group, attempts,
      continuations, signs_in, browser_context_id, deployment_problem`,
)

/**
 * By the primary key: no index of runs begins with the deployment, which every enqueue would have to write. A pinned run
 * was queued before the end of the deployment, and nearly all runs that old are purged.
 */
export const findPinnedRun = statement<{ id: string }, [before: string, deploymentId: string]>(
  `SELECT id FROM runs WHERE id < ? AND CASE WHEN status IN ('queued', 'waiting', 'running') THEN 1 ELSE 0 END = 1
    AND deployment_id = ? LIMIT 1`,
)

// Finished runs, for statistics

/** The columns of a finished run that statistics need. */
export type FinishedRow = Pick<RunsTable, 'account_id' | 'workflow_id' | 'status' | 'created_at' | 'started_at'> & {
  finished_at: number
}

const finishedColumns = `account_id, workflow_id, status, created_at, finished_at, ${countedStart} AS started_at`

export const findBatchEnd = statement<{ finished_at: number }, [after: number, upTo: number, offset: number]>(
  'SELECT finished_at FROM runs WHERE finished_at > ? AND finished_at <= ? ORDER BY finished_at LIMIT 1 OFFSET ?',
)

/** A finished run, with what it used. */
export type UsedRow = FinishedRow &
  Pick<RunsTable, 'deployment_id' | 'browser_context_id' | 'total_executed_ms'> & {
    /** Without continuations. */
    attempts: number
    artifact_bytes: number
  }

const usedColumns = `${finishedColumns}, deployment_id, browser_context_id, total_executed_ms,
  attempts - continuations AS attempts,
  (SELECT CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) FROM artifacts WHERE run_id = runs.id) AS artifact_bytes`

export const findUsed = statement<UsedRow, [after: number, upTo: number]>(
  `SELECT ${usedColumns} FROM runs WHERE finished_at > ? AND finished_at <= ? ORDER BY finished_at`,
)

export const findUsedById = statement<UsedRow, [id: string]>(`SELECT ${usedColumns} FROM runs WHERE id = ?`)

/** Concatenation hides the account, so that PostgreSQL cannot pick an index of all of its runs. */
export const findFinishedOfAccount = statement<FinishedRow, [after: number, upTo: number, accountId: string]>(
  `SELECT ${finishedColumns} FROM runs WHERE finished_at > ? AND finished_at <= ? AND account_id || '' = ?`,
)

// Notifications

/** Queued runs of an account that were never delayed or claimed, by a range of ids, which have the times of their creation. */
export const findQueued = statement<
  { id: string; workflow_id: string },
  [accountId: string, from: string, before: string, limit: number]
>(
  `SELECT id, workflow_id FROM runs WHERE account_id = ? AND status = 'queued' AND id >= ? AND id < ?
    AND delayed = 0 AND available_at IS NULL AND attempts = 0 ORDER BY id LIMIT ?`,
)

/** The others that may start, from an index of their own, with the time of their last status. */
export const findQueuedAgain = statement<
  { id: string; workflow_id: string; available_at: number; queued_at: number | null },
  [accountId: string, afterId: string, limit: number]
>(
  `SELECT id, workflow_id, COALESCE(available_at, created_at) AS available_at,
      (SELECT at FROM run_events WHERE run_id = runs.id AND type = 'status' ORDER BY sequence DESC LIMIT 1) AS queued_at
    FROM runs WHERE account_id = ? AND id > ? AND status = 'queued'
      AND (delayed = 0 AND (available_at IS NOT NULL OR attempts > 0)) ORDER BY id LIMIT ?`,
)

export interface FollowedEnd {
  run_id: string
  user_id: string
  account_id: string
  /** `null` when the run has been erased. */
  workflow_id: string | null
  status: string | null
  finished_at: number | null
}

/** Reads the run of each follower until it has found enough. */
export const findFollowedEnds = statement<FollowedEnd, [limit: number]>(
  `SELECT f.run_id, f.user_id, f.account_id, r.workflow_id, r.status, r.finished_at
    FROM run_followers AS f LEFT JOIN runs AS r ON r.id = f.run_id
    WHERE r.id IS NULL OR r.finished_at IS NOT NULL LIMIT ?`,
)

// Storage usage

/** Counted for each run, and for each browser context and version: its row and indexes. */
export const rowBytes = 1024
const eventRowBytes = 128

/** Runs that a statement measures at most. */
const measuredMax = 500

export const nextRuns = statement<{ id: string; size_bytes: number }, [afterId: string]>(
  `SELECT id, COALESCE((SELECT MAX(sequence) FROM run_events WHERE run_id = runs.id)
      - (SELECT MIN(sequence) FROM run_events WHERE run_id = runs.id) + 1, 0) AS size_bytes
    FROM runs WHERE id > ? ORDER BY id LIMIT ${measuredMax}`,
)

const bytesOfWaits = `(SELECT COALESCE(SUM(${eventRowBytes} + COALESCE(octet_length(value), 0)
    + COALESCE(octet_length(shown), 0) + COALESCE(octet_length(title), 0)), 0) FROM run_waits WHERE run_id = runs.id)`
const bytesOfSteps = '(SELECT COALESCE(SUM(octet_length(value)), 0) FROM run_steps WHERE run_id = runs.id)'

/**
 * The LIMIT keeps SQLite from flattening the subquery: it would sort whole rows to group them, with all their large columns
 * (11 s for 1,585 runs of 927 MB; 4 ms with the LIMIT).
 */
export const sumRuns = statement<{ account_id: string; bytes: number }, [afterId: string, upToId: string]>(
  `SELECT account_id, CAST(SUM(bytes) AS BIGINT) AS bytes FROM (SELECT account_id, ${rowBytes}
      + ${runBytes} + COALESCE(octet_length(secrets), 0)
      + (SELECT COALESCE(SUM(size_bytes), 0) FROM artifacts WHERE run_id = runs.id) + ${bytesOfSteps} + ${bytesOfWaits}
      + (SELECT COALESCE(SUM(octet_length(data) + ${eventRowBytes}), 0) FROM run_events WHERE run_id = runs.id) AS bytes
    FROM runs WHERE id > ? AND id <= ? LIMIT ${measuredMax}) AS sizes GROUP BY account_id`,
)

// Erasure

export interface ErasableRun {
  id: string
  bytes: number
  first_event: number | null
  last_event: number | null
  steps: number
  artifacts: number
}

/** Sequence numbers have no gaps, so that the first and the last one are enough to count events. */
const selectErasable = `SELECT id, ${runBytes} + ${bytesOfSteps} AS bytes,
    (SELECT MIN(sequence) FROM run_events WHERE run_id = runs.id) AS first_event,
    (SELECT MAX(sequence) FROM run_events WHERE run_id = runs.id) AS last_event,
    (SELECT COUNT(*) FROM run_steps WHERE run_id = runs.id) AS steps,
    (SELECT COUNT(*) FROM artifacts WHERE run_id = runs.id) AS artifacts
  FROM runs`

export const findExpiredRuns = statement<ErasableRun, [finishedUpTo: number, limit: number]>(
  `${selectErasable} WHERE finished_at <= ? ORDER BY finished_at LIMIT ?`,
)

/**
 * Hides the run and overwrites its data. The finish time 0 makes it the first run that the purge of expired runs finds,
 * so maintenance erases its events and artifacts if this process dies.
 */
export const hideRun = statement<object, [id: string]>(
  `UPDATE runs SET status = 'deleted', finished_at = 0, variables = '{}', secrets = NULL, output = NULL,
    error = NULL, progress = NULL, tags = NULL, concurrency_group = NULL WHERE id = ?`,
)

export const findHidden = statement<ErasableRun, [id: string]>(`${selectErasable} WHERE id = ? AND status = 'deleted'`)

/** Deletes the runs with their events, steps, terms and references to files. */
export async function deleteRuns(tx: Transaction, ids: readonly string[]): Promise<void> {
  const { all } = tx
  const { marks, values } = inList(ids)
  await tx.statements.lockRuns(tx, ids)
  await all(`DELETE FROM run_events WHERE run_id IN (${marks})`, values)
  await all(`DELETE FROM run_steps WHERE run_id IN (${marks})`, values)
  await all(`DELETE FROM run_files WHERE run_id IN (${marks})`, values)
  await all(`DELETE FROM attempt_reports WHERE run_id IN (${marks})`, values)
  await all(`DELETE FROM wait_links WHERE run_id IN (${marks})`, values)
  await all(`DELETE FROM run_waits WHERE run_id IN (${marks})`, values)
  await all(`DELETE FROM run_terms WHERE run_id || '' IN (${marks})`, values)
  await all(`DELETE FROM runs WHERE id IN (${marks})`, values)
}

// Deletion of an account

/** Of the account, in the order of ids. Reads past the runs of other accounts, so it is no part of a transaction. */
export const findRunsToHide = statement<{ id: string }, [accountId: string, afterId: string]>(
  `SELECT id FROM runs WHERE account_id = ? AND status <> 'deleted' AND id > ? ORDER BY id LIMIT 500`,
)

/** Hides those that no worker executes, so that none starts any more, and lets the workers of the others stop them. */
export async function hideOrStopRuns(tx: Transaction, ids: readonly string[], now: number): Promise<void> {
  const { all } = tx
  const { marks, values } = inList(ids)
  await tx.statements.lockEnding(tx, ids)
  await all(
    `UPDATE runs SET status = 'deleted', finished_at = 0, variables = '{}', secrets = NULL, output = NULL,
        error = NULL, progress = NULL, tags = NULL, concurrency_group = NULL, worker_id = NULL, lease_expires_at = NULL
      WHERE id IN (${marks}) AND status <> 'deleted' AND (status <> 'running' OR lease_expires_at <= ?)`,
    [...values, now],
  )
  await all(
    `UPDATE runs SET cancel_requested = 1 WHERE id IN (${marks}) AND status = 'running' AND cancel_requested = 0`,
    values,
  )
}

/** From the index of runs that are no longer queued or running. */
export const findHiddenOfAccount = statement<ErasableRun, [accountId: string, limit: number]>(
  `${selectErasable} WHERE account_id = ? AND status = 'deleted' ORDER BY id LIMIT ?`,
)
