/** The SQL statements of runs that wait for a session, and of those that sign their browser context in. */
import { statement, type Transaction } from '../store.ts'
import type { RunsTable } from '../tables/run-tables.ts'
import { addExecuted } from './run-lookups.ts'

export const unsetSignsIn = statement<object, [id: string]>('UPDATE runs SET signs_in = NULL WHERE id = ?')

/** A run that signs in expires unless it has started by then. */
export const expireAt = statement<object, [at: number, id: string]>('UPDATE runs SET expires_at = ? WHERE id = ?')

export const deleteWaits = statement<object, [runId: string]>('DELETE FROM run_waits WHERE run_id = ?')

/** Until then at the latest. Runs that wait are in no index by this time but their own. */
export const suspendForSignIn = statement<
  object,
  [until: number, executedMilliseconds: number, attemptEnds: string, totalExecutedMilliseconds: number, id: string]
>(
  `UPDATE runs SET status = 'waiting', reason = 'waiting', waiting_for = 'signIn', worker_id = NULL,
      lease_expires_at = NULL, has_waits = 1, continues = 1, losses = 0, available_at = ?, delayed = 0,
      executed_ms = CASE continues WHEN 1 THEN executed_ms ELSE 0 END + CAST(? AS BIGINT), attempt_ends = ?,
      ${addExecuted()} WHERE id = ?`,
)

const ofSession = "browser_context_id = ? AND status = 'waiting' AND waiting_for = 'signIn'"
const findRunsOfSession = statement<{ id: string }, [browserContextId: string]>(
  `SELECT id FROM runs WHERE ${ofSession}`,
)
const resumeRunsOfSession = statement<object, [at: number, browserContextId: string]>(
  `UPDATE runs SET status = 'queued', waiting_for = '', available_at = ? WHERE ${ofSession}`,
)

/** Queues all runs again that wait for a session of the browser context. */
export async function resumeForSession(tx: Transaction, contextId: string, at: number): Promise<void> {
  const waiting = (await tx.all(findRunsOfSession, [contextId])).map(({ id }) => id)
  if (waiting.length === 0) return
  await tx.statements.lockRuns(tx, waiting)
  await tx.all(resumeRunsOfSession, [at, contextId])
}

/** Whether an attempt that started since then has succeeded, among the latest runs of the workflow. */
export const findUseOfSession = statement<
  { id: string },
  [browserContextId: string, workflowId: string, signedInAt: number]
>(
  `SELECT id FROM (SELECT id, attempt_started_at FROM runs WHERE browser_context_id = ? AND workflow_id = ?
      AND status = 'succeeded' ORDER BY (workflow_id || id) DESC LIMIT 200) AS latest
    WHERE attempt_started_at >= ? LIMIT 1`,
)

/** Waiting runs are counted up to this number. */
export const waitingForSessionMax = 1000

export const countWaitingForSession = statement<{ count: number }, [browserContextId: string]>(
  `SELECT COUNT(*) AS count FROM (SELECT 1 FROM runs WHERE browser_context_id = ? AND status = 'waiting'
    AND waiting_for = 'signIn' LIMIT ${waitingForSessionMax}) AS waiting`,
)

/** The browser contexts of an account that need a person, longest first, and how many runs wait for each. */
export const findNeeded = statement<{ id: string; name: string; since: number; count: number }, [accountId: string]>(
  `SELECT id, name, since, (SELECT COUNT(*) FROM (SELECT 1 FROM runs WHERE browser_context_id = needed.id
      AND status = 'waiting' AND waiting_for = 'signIn' LIMIT ${waitingForSessionMax}) AS waiting) AS count
    FROM (SELECT browser_contexts.id, name, COALESCE(needs_sign_in_since, 0) AS since FROM context_sign_ins
      JOIN browser_contexts ON browser_contexts.id = browser_context_id
      WHERE context_sign_ins.account_id = ? AND context_sign_ins.status = 'needsSignIn'
      ORDER BY needs_sign_in_since LIMIT 100) AS needed ORDER BY since`,
)

export const findOverdueForSession = statement<{ id: string }, [now: number]>(
  `SELECT id FROM runs WHERE status = 'waiting' AND waiting_for = 'signIn' AND available_at <= ?
    ORDER BY available_at LIMIT 500`,
)

/** Returns no row when the run has gone on or was cancelled. */
export const expireForSession = statement<
  Pick<RunsTable, 'id' | 'workflow_id' | 'attempts' | 'continuations' | 'concurrency_group'>,
  [finishedAt: number, id: string]
>(
  `UPDATE runs SET status = 'expired', reason = 'needsSignIn', finished_at = ?
    WHERE id = ? AND CASE WHEN status = 'waiting' AND waiting_for = 'signIn' THEN 1 ELSE 0 END = 1
    RETURNING id, workflow_id, attempts, continuations, concurrency_group`,
)
