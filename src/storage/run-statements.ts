/**
 * The SQL statements of the queue, by name. Statements that both stores share are here. The others are declared in
 * `RunStatements` and written in `sqlite/` and `postgres/` for each query planner.
 */
import { runCountStatements } from './run-count-statements.ts'
import { type Statement, statement } from './store.ts'
import type { RunsTable } from './tables.ts'

/** The columns of a run that the dispatcher reads. */
export type RunJob = Pick<RunsTable, 'id' | 'account_id' | 'workflow_id' | 'priority' | 'job_id' | 'job_retry_count'>

export const jobColumns = 'id, account_id, workflow_id, priority, job_id, job_retry_count'

/** The first ready run of an account and a workflow. */
export type QueueHead = Omit<RunJob, 'job_retry_count'> & Pick<RunsTable, 'browser_context_id'>

/** The values of an INSERT into `runs`, in this order. */
export const insertedRunColumns = [
  'id',
  'account_id',
  'api_key_id',
  'user_id',
  'workflow_id',
  'workflow_version',
  'status',
  'priority',
  'variables',
  'secrets',
  'created_at',
  'delayed',
  'available_at',
  'expires_at',
  'browser_context_id',
  'persist_context',
  'waits_for_context',
  'job_id',
  'trace_context',
] as const satisfies (keyof RunsTable)[]

/** Statements by number of rows, largest first: a few prepared statements insert any number. */
function insert(table: string, columns: readonly string[]): ReadonlyMap<number, Statement> {
  const row = `(${columns.map(() => '?').join(', ')})`
  const insertRows = (rows: number) =>
    statement(`INSERT INTO ${table} (${columns.join(', ')}) VALUES ${Array(rows).fill(row).join(', ')}`)
  return new Map([64, 32, 16, 8, 4, 2, 1].map((rows) => [rows, insertRows(rows)]))
}

/** A run that has not started in time must not start, even before maintenance marks it as expired. */
const readyCondition = `status = 'queued' AND delayed = 0 AND waits_for_context = 0
  AND (expires_at IS NULL OR expires_at > ? OR attempts > 0)`

/** At most this many queue heads are compared in one decision. */
export const queueHeadsMax = 500

const headOrder = 'ORDER BY account_id, workflow_id, priority DESC, id LIMIT 1'
const uuidLength = 36
/** Id, account and workflow in one value, so that one index look-up finds all three. */
const findHead = `SELECT id || account_id || workflow_id FROM runs WHERE ${readyCondition}`
const headId = `substr(head, 1, ${uuidLength})`
const headAccount = `substr(head, ${uuidLength + 1}, ${uuidLength})`
const headWorkflow = `substr(head, ${2 * uuidLength + 1})`
const headColumn = (name: string) => `(SELECT ${name} FROM runs WHERE id = ${headId}) AS ${name}`

export const sharedRunStatements = {
  ...runCountStatements,

  // Enqueueing

  insertRuns: insert('runs', insertedRunColumns),
  insertEvents: insert('run_events', ['run_id', 'sequence', 'at', 'type', 'data']),

  /** Counts the account's queued runs, up to the limit. From runs_by_status: 10,000 rows take 0.5 to 1 ms. */
  countQueuedRuns: statement<{ count: number }, [accountId: string, limit: number]>(
    `SELECT COUNT(*) AS count FROM (SELECT id FROM runs WHERE account_id = ? AND status = 'queued' LIMIT ?) AS queued_runs`,
  ),

  /**
   * Stores the key, in place of one that has expired. Returns no row when the key is in use. Waits for a transaction
   * that writes the same key.
   */
  claimIdempotencyKey: statement<
    { run_id: string },
    [accountId: string, key: string, fingerprint: Uint8Array, runId: string, expiresAt: number, now: number]
  >(`INSERT INTO idempotency_keys (account_id, key, fingerprint, run_id, expires_at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (account_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, run_id = excluded.run_id,
    expires_at = excluded.expires_at WHERE idempotency_keys.expires_at <= ? RETURNING run_id`),

  findIdempotencyKey: statement<{ fingerprint: Uint8Array; run_id: string }, [accountId: string, key: string]>(
    'SELECT fingerprint, run_id FROM idempotency_keys WHERE account_id = ? AND key = ?',
  ),

  releaseIdempotencyKey: statement<object, [accountId: string, key: string, runId: string]>(
    'DELETE FROM idempotency_keys WHERE account_id = ? AND key = ? AND run_id = ?',
  ),

  findRun: statement<RunsTable, [id: string, accountId: string]>('SELECT * FROM runs WHERE id = ? AND account_id = ?'),

  // Claiming

  /**
   * The queue heads of the accounts after one account, by account and workflow, `queueHeadsMax` at most.
   *
   * The recursion costs one or two index look-ups for each head. Both databases execute GROUP BY by reading every ready
   * run, and SQLite does so for `(account_id, workflow_id) > (…)` too. Subqueries instead of a join: when many runs
   * were inserted since the last ANALYZE, PostgreSQL considers the table small and scans it for a join.
   */
  queueHeads: statement<QueueHead, [now: number, afterAccount: string, now: number, now: number]>(
    `WITH RECURSIVE heads (number, head) AS (
      SELECT 1, (${findHead} AND account_id > ? ${headOrder})
      UNION ALL
      SELECT number + 1, COALESCE(
          (${findHead} AND account_id = ${headAccount} AND workflow_id > ${headWorkflow} ${headOrder}),
          (${findHead} AND account_id > ${headAccount} ${headOrder}))
        FROM heads WHERE head IS NOT NULL AND number < ${queueHeadsMax})
      SELECT ${headId} AS id, ${headAccount} AS account_id, ${headWorkflow} AS workflow_id,
          ${headColumn('priority')}, ${headColumn('job_id')}, ${headColumn('browser_context_id')}
        FROM heads WHERE head IS NOT NULL`,
  ),

  queueHead: statement<QueueHead, [now: number, accountId: string, workflowId: string]>(
    `SELECT id, account_id, workflow_id, priority, job_id, browser_context_id FROM runs
      WHERE ${readyCondition} AND account_id = ? AND workflow_id = ? ORDER BY priority DESC, id LIMIT 1`,
  ),

  // Attempts

  /** Extends the leases that the worker still has; returns their runs. @param marks one `?` for each id. */
  extendLeases: (marks: string) =>
    statement<RunJob & { attempts: number }>(`UPDATE runs SET lease_expires_at = ?
      WHERE status = 'running' AND worker_id = ? AND id IN (${marks}) RETURNING attempts, ${jobColumns}`),

  /** The worker's leases on runs that a caller has cancelled. */
  cancelledLeases: statement<{ id: string; attempts: number }, [workerId: string]>(
    "SELECT id, attempts FROM runs WHERE status = 'running' AND cancel_requested = 1 AND worker_id = ?",
  ),

  completeAttempt: statement<
    object,
    [
      status: string,
      reason: string | null,
      failures: number,
      losses: number,
      delayed: 0 | 1,
      finishedAt: number | null,
      availableAt: number | null,
      output: string | null,
      error: string | null,
      id: string,
    ]
  >(`UPDATE runs SET status = ?, reason = ?, worker_id = NULL, lease_expires_at = NULL, failures = ?, losses = ?,
    delayed = ?, finished_at = ?, available_at = ?, output = ?, error = ? WHERE id = ?`),

  deleteSteps: statement<object, [runId: string]>('DELETE FROM run_steps WHERE run_id = ?'),

  // Runs that wait for a browser context

  waitForContext: statement<object, [id: string]>('UPDATE runs SET waits_for_context = 1 WHERE id = ?'),

  /** Makes the first run that waits for the context ready. */
  resumeNextForContext: statement<RunJob, [contextId: string]>(
    `UPDATE runs SET waits_for_context = 0 WHERE id = (SELECT id FROM runs
      WHERE status = 'queued' AND waits_for_context = 1 AND browser_context_id = ?
      ORDER BY priority DESC, id LIMIT 1) AND waits_for_context = 1 RETURNING ${jobColumns}`,
  ),

  /** Makes all runs that wait for the context ready. */
  resumeAllForContext: statement<RunJob, [contextId: string]>(
    `UPDATE runs SET waits_for_context = 0 WHERE status = 'queued' AND waits_for_context = 1
      AND browser_context_id = ? RETURNING ${jobColumns}`,
  ),

  /**
   * Contexts that runs wait for although no run leases them: they were deleted, or the next run has not started yet.
   * One index look-up for each context: for SELECT DISTINCT, SQLite reads every run that waits.
   */
  freeContexts: statement<{ id: string; deleted: number }, []>(`WITH RECURSIVE waited (id) AS (
      SELECT MIN(browser_context_id) FROM runs WHERE status = 'queued' AND waits_for_context = 1
      UNION ALL
      SELECT (SELECT MIN(browser_context_id) FROM runs
        WHERE status = 'queued' AND waits_for_context = 1 AND browser_context_id > waited.id)
      FROM waited WHERE id IS NOT NULL)
    SELECT waited.id, browser_contexts.id IS NULL AS deleted FROM waited
    LEFT JOIN browser_contexts ON browser_contexts.id = waited.id AND deleted_at IS NULL
    WHERE waited.id IS NOT NULL AND held_by_run_id IS NULL LIMIT 100`),
}

export type ClaimValues = [
  workflowVersion: string,
  startedAt: number,
  workerId: string,
  leaseExpiresAt: number,
  jobId: string | null,
  jobRetryCount: number | null,
  id: string,
  now: number,
  sameJobId: string | null,
]

/** For `claimRun` and its variant. @param condition that the run must meet, in addition to its id. */
export function claimStatement(condition: string): Statement<RunsTable, ClaimValues> {
  return statement(`UPDATE runs SET status = 'running', reason = NULL, attempts = attempts + 1, workflow_version = ?,
    started_at = COALESCE(started_at, ?), worker_id = ?, lease_expires_at = ?, job_id = ?, job_retry_count = ?
    WHERE id = ? AND ${condition} RETURNING *`)
}

/** Whether the run is ready and its job, if it has one, is the given one. */
export const claimableCondition = `${readyCondition} AND (job_id IS NULL OR job_id = ?)`

/** All statements of runs. Locks last until the transaction ends; SQLite needs none, since its writes never overlap. */
export interface RunStatements extends Readonly<typeof sharedRunStatements> {
  /** Locks the account, so that no other transaction enqueues runs for it. */
  lockAccount: Statement<{ id: string }, [id: string]>
  /** Locks the run and returns whether it can be claimed now. Waits for a transaction that changes it. */
  findClaimable: Statement<
    Pick<RunsTable, 'id' | 'browser_context_id' | 'persist_context'> & { claimable: 0 | 1 },
    [now: number, jobId: string | null, id: string]
  >
  /** Starts an attempt of the run under a lease. Returns no row when the run cannot be claimed. */
  claimRun: Statement<RunsTable, ClaimValues>
  /** Like `claimRun`, but only for a run without a browser context. */
  claimRunWithoutContext: Statement<RunsTable, ClaimValues>
  /** Locks and returns the run of a lease; no row when the lease was lost. */
  lockLeasedRun: Statement<RunsTable, [id: string, attempt: number, workerId: string]>
  /** Locks and returns running runs whose leases have expired, 500 at most. */
  lockLostRuns: Statement<RunsTable, [now: number]>
  /** Appends an event with its run's next sequence number. */
  appendEvent: Statement<object, [runId: string, at: number, type: string, data: string, runId: string]>
  /** The run's events after a sequence number, oldest first. */
  eventsAfter: Statement<
    { sequence: number; at: number; type: string; data: string },
    [runId: string, sequence: number, limit: number]
  >
}
