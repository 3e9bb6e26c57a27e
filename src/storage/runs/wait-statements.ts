/** The SQL statements of waits: runs reach them, are suspended, and go on. Triggers of the schema resume a run. */
import { sql } from 'kysely'
import { inList } from '../statement-values.ts'
import { type Statement, statement, type Transaction } from '../store.ts'
import type { RunsTable, RunWaitsTable, WaitKind } from '../tables/run-tables.ts'
import { addExecuted, isVisible } from './run-lookups.ts'

/** Leaves out waits of runs that are being erased. No join, so that the planner reads the waits in the order of their index. */
export const ofVisibleRun = sql<boolean>`(SELECT ${sql.raw(isVisible)} FROM runs WHERE id = run_waits.run_id)`

/** A chain of runs that call each other has at most this many runs above the last. */
export const callDepthMax = 100

export const insertWait = statement(
  `INSERT INTO run_waits (run_id, name, id, account_id, workflow_id, kind, status, reached_at, deadline, completed_at,
      child_run_id, is_detached, title, shown)
    VALUES (?, ?, ?, ?, ?, ?, 'open', ?, ?, NULL, ?, ?, ?, ?)`,
)

/** An answer may have come before. */
export const reachAnswered = statement<object, [number, number, string | null, string | null, string, string]>(
  'UPDATE run_waits SET reached_at = ?, deadline = ?, title = ?, shown = ? WHERE run_id = ? AND name = ?',
)

export const setHasWaits = statement<object, [id: string]>('UPDATE runs SET has_waits = 1 WHERE id = ?')

/** A run that reuses the results of another one repeats them in their order, if there are waits among them. */
export const repeatHasWaits = statement<object, [id: string]>(
  'UPDATE runs SET has_waits = COALESCE((SELECT has_waits FROM runs AS earlier WHERE id = runs.rerun_of), 0) WHERE id = ?',
)

export const openKinds = statement<{ kind: WaitKind }, [runId: string]>(
  "SELECT DISTINCT kind FROM run_waits WHERE run_id = ? AND status = 'open'",
)

export const sizeOfSteps = statement<{ last: number; count: number; bytes: number }, [runId: string]>(
  `SELECT COALESCE(MAX(position), 0) AS last, COUNT(*) AS count, COALESCE(SUM(octet_length(value)), 0) AS bytes
    FROM run_steps WHERE run_id = ?`,
)

export const countWaits = statement<{ count: number }, [runId: string]>(
  'SELECT COUNT(*) AS count FROM run_waits WHERE run_id = ?',
)

export const suspend = statement<
  object,
  [
    waitingFor: WaitKind,
    executedMilliseconds: number,
    attemptEnds: string,
    totalExecutedMilliseconds: number,
    id: string,
  ]
>(
  `UPDATE runs SET status = 'waiting', reason = 'waiting', waiting_for = ?, worker_id = NULL,
      lease_expires_at = NULL, has_waits = 1, continues = 1, losses = 0, available_at = NULL, delayed = 0,
      executed_ms = CASE continues WHEN 1 THEN executed_ms ELSE 0 END + CAST(? AS BIGINT), attempt_ends = ?,
      ${addExecuted()} WHERE id = ?`,
)

export const countWaiting = statement<{ count: number }, [accountId: string, limit: number]>(
  `SELECT COUNT(*) AS count FROM (SELECT id FROM runs WHERE account_id = ? AND status = 'waiting' LIMIT ?) AS waiting`,
)

export const depthOf = statement<{ depth: number }, [id: string]>(
  `WITH RECURSIVE caller (id, depth) AS (SELECT parent_run_id, 0 FROM runs WHERE id = ?
      UNION ALL SELECT runs.parent_run_id, depth + 1 FROM caller JOIN runs ON runs.id = caller.id
        WHERE depth < ${callDepthMax})
    SELECT MAX(depth) AS depth FROM caller`,
)

export type CallingRun = Pick<
  RunsTable,
  'id' | 'parent_run_id' | 'workflow_id' | 'status' | 'waiting_for' | 'cancel_requested' | 'started_at' | 'finished_at'
>

const callingColumns = `runs.id, runs.parent_run_id, runs.workflow_id, runs.status, runs.waiting_for,
  runs.cancel_requested, runs.started_at, runs.finished_at`

/** The run and those above it, the run first. */
export const findCallers = statement<CallingRun, [id: string]>(
  `WITH RECURSIVE caller (id, parent_run_id, depth) AS (SELECT id, parent_run_id, 0 FROM runs WHERE id = ?
      UNION ALL SELECT runs.id, runs.parent_run_id, depth + 1 FROM caller JOIN runs ON runs.id = caller.parent_run_id
        WHERE depth < ${callDepthMax} AND runs.status <> 'deleted')
    SELECT ${callingColumns} FROM caller JOIN runs ON runs.id = caller.id ORDER BY depth`,
)

/**
 * The run and those below it, level by level. The limit also ends the recursion, since both stores return each row when they
 * have found it. `CROSS JOIN` keeps SQLite from reading all runs first.
 *
 * @param below joins `runs` that the run `called.id` has called. A run may have 10,000 of them.
 */
export function findCalledSql(below: string): Statement<CallingRun, [id: string, limit: number]> {
  return statement(
    `WITH RECURSIVE called (id) AS (SELECT id FROM runs WHERE id = ? UNION ALL SELECT runs.id FROM called ${below})
      SELECT ${callingColumns} FROM called CROSS JOIN runs WHERE runs.id = called.id LIMIT ? + 0`,
  )
}

/** Runs below a run that are shown at most. */
export const calledMax = 100

export const resume = statement<object, [at: number, id: string]>(
  "UPDATE runs SET status = 'queued', waiting_for = '', available_at = ? WHERE id = ?",
)

export const endedWaits = statement<RunWaitsTable, [runId: string]>(
  `SELECT * FROM run_waits WHERE run_id = ? AND status <> 'open' AND delivered = 0 ORDER BY completed_at, id`,
)

export const setDelivered = statement<object, [runId: string, name: string]>(
  'UPDATE run_waits SET delivered = 1 WHERE run_id = ? AND name = ?',
)

export const findCalledRun = statement<CalledRun, [id: string]>(
  'SELECT status, output, error, finished_at FROM runs WHERE id = ?',
)

/** Of one transaction. */
const dueWaitsMax = 500

export const dueTimers = statement<Pick<RunWaitsTable, 'run_id' | 'name'>, [now: number]>(
  `SELECT run_id, name FROM run_waits WHERE status = 'open' AND deadline IS NOT NULL AND deadline <= ?
    ORDER BY deadline LIMIT ${dueWaitsMax}`,
)

export const endAnswered = statement<object, [number, string, Uint8Array, string, string]>(
  `UPDATE run_waits SET status = 'completed', completed_at = ?, completed_by = ?, value = ?
    WHERE run_id = ? AND name = ?`,
)

/** Before the run has reached it. */
export const insertAnswer = statement(
  `INSERT INTO run_waits (run_id, name, id, account_id, workflow_id, kind, status, completed_at, completed_by, value)
    VALUES (?, ?, ?, ?, ?, 'answer', 'completed', ?, ?, ?)`,
)

export type CalledRun = Pick<RunsTable, 'status' | 'output' | 'error' | 'finished_at'>

export async function findWaits(
  tx: Transaction,
  runId: string,
  names: readonly string[],
): Promise<Map<string, RunWaitsTable>> {
  const found = new Map<string, RunWaitsTable>()
  for (let start = 0; start < names.length; start += 500) {
    const { marks, values } = inList(names.slice(start, start + 500))
    const rows = await tx.all<RunWaitsTable>(`SELECT * FROM run_waits WHERE run_id = ? AND name IN (${marks})`, [
      runId,
      ...values,
    ])
    for (const row of rows) found.set(row.name, row)
  }
  return found
}

/** The stored outcomes of these waits, in the order in which the run got them. */
export async function findDelivered(
  tx: Transaction,
  runId: string,
  names: readonly string[],
): Promise<{ name: string; value: Uint8Array; position: number }[]> {
  const found: { name: string; value: Uint8Array; position: number }[] = []
  for (let start = 0; start < names.length; start += 500) {
    const { marks, values } = inList(names.slice(start, start + 500))
    const sql = `SELECT run_steps.name, run_steps.value, run_steps.position FROM run_waits
      JOIN run_steps ON run_steps.run_id = run_waits.run_id AND run_steps.name = run_waits.name
      WHERE run_waits.run_id = ? AND run_waits.delivered = 1 AND run_waits.name IN (${marks})`
    found.push(...(await tx.all<(typeof found)[number]>(sql, [runId, ...values])))
  }
  return found.sort((a, b) => a.position - b.position)
}

/** Ends the waits of these runs whose time has come. */
export async function endWaits(tx: Transaction, runIds: readonly string[], now: number): Promise<void> {
  const { marks, values } = inList(runIds)
  await tx.all(endDue(`run_id IN (${marks})`), [now, ...values, now])
}

/** Ends those of these waits of one run whose time has come. Sends all statements at once. */
export async function endWaitsOf(tx: Transaction, runId: string, names: readonly string[], now: number): Promise<void> {
  const starts = Array.from({ length: Math.ceil(names.length / 500) }, (_, index) => 500 * index)
  const lists = starts.map((start) => inList(names.slice(start, start + 500)))
  await Promise.all(
    lists.map(({ marks, values }) => tx.all(endDue(`run_id = ? AND name IN (${marks})`), [now, runId, ...values, now])),
  )
}

function endDue(which: string): string {
  return `UPDATE run_waits SET status = CASE kind WHEN 'sleep' THEN 'completed' ELSE 'timedOut' END, completed_at = ?
    WHERE ${which} AND status = 'open' AND deadline IS NOT NULL AND deadline <= ?`
}
/** Waits for called runs that end with their callers. */
export const attachedCalls =
  "kind = 'run' AND is_detached = 0 AND child_run_id IS NOT NULL AND run_waits.status IN ('open', 'cancelled')"

/** The unfinished runs that these have called, and that end with them. */
export async function findAttachedChildren(tx: Transaction, ids: readonly string[]): Promise<string[]> {
  const { marks, values } = inList(ids)
  const rows = await tx.all<{ id: string }>(
    `SELECT child_run_id AS id FROM run_waits WHERE run_id IN (${marks}) AND ${attachedCalls}`,
    values,
  )
  return rows.map(({ id }) => id)
}

// Runs that wait for a secret or a setting of their account.

/** Runs that one statement wakes. */
export const wokenMax = 500

/** From the index of reasons. */
const findRunsOfReason = statement<{ id: string }, [accountId: string, reason: string]>(
  `SELECT id FROM runs WHERE account_id = ? AND reason = ? AND status = 'queued' LIMIT ${wokenMax}`,
)

/** Makes runs ready that wait for the value. Returns how many. */
export async function wakeRuns(tx: Transaction, now: number, accountId: string, reason: string): Promise<number> {
  const ids = (await tx.all(findRunsOfReason, [accountId, reason])).map(({ id }) => id)
  if (ids.length === 0) return 0
  await tx.statements.lockRuns(tx, ids)
  const { marks, values } = inList(ids)
  const sql = `UPDATE runs SET delayed = 0, available_at = ?, reason = NULL WHERE id IN (${marks}) AND status = 'queued'
    RETURNING id`
  return (await tx.all(sql, [now, ...values])).length
}
