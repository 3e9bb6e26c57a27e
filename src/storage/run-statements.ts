/**
 * The SQL statements of the queue, by name. Statements that both stores share are here. The others are declared in
 * `RunStatements` and written in `sqlite/` and `postgres/` for each query planner.
 */
import { queueHeads } from './queue-heads.ts'
import { runCountStatements } from './run-count-statements.ts'
import { type Statement, statement, type Transaction, type Value } from './store.ts'
import type { RunEventsTable, RunsTable } from './tables/run-tables.ts'
import { throttleStatements } from './throttle-statements.ts'
import { waitingRunStatements } from './waiting-run-statements.ts'

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
  'trace_context',
  'deployment_id',
  'tags',
  'concurrency_group',
  'schedule_id',
  'scheduled_for',
  'rerun_of',
] as const satisfies (keyof RunsTable)[]

export const startedAttempt = "status = 'running', reason = NULL, attempts = attempts + 1"

/**
 * Does not find a run that is being erased. Concatenation hides the account, so that PostgreSQL cannot pick one of the
 * indexes that begin with it.
 */
export const findRunSql = "SELECT * FROM runs WHERE id = ? AND account_id || '' = ? AND status <> 'deleted'"

/** A run, and whether it has artifacts (1) or not (0), so that those of most runs need no query. */
export interface RunToRead extends RunsTable {
  has_artifacts: 0 | 1
}

/** The bytes of the columns that may be large. Neither store reads the columns to measure them. */
export const runBytes =
  "octet_length(variables) + octet_length(COALESCE(output, '')) + octet_length(COALESCE(error, ''))"

export const hasArtifacts = (runId = 'runs.id') =>
  `(CASE WHEN EXISTS (SELECT 1 FROM artifacts WHERE run_id = ${runId}) THEN 1 ELSE 0 END) AS has_artifacts`

export const sharedRunStatements = {
  ...runCountStatements,
  ...waitingRunStatements,
  ...throttleStatements,

  // Enqueueing

  /** Counts the account's queued runs, up to the limit. From runs_queued: 10,000 rows take 0.5 to 1 ms. */
  countQueuedRuns: statement<{ count: number }, [accountId: string, limit: number]>(
    `SELECT COUNT(*) AS count FROM (SELECT id FROM runs WHERE account_id = ? AND status = 'queued'
      ORDER BY account_id, id LIMIT ?) AS queued_runs`,
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
    run_ids = NULL, expires_at = excluded.expires_at WHERE idempotency_keys.expires_at <= ? RETURNING run_id`),

  /** Stores the ids of all runs of a batch, a JSON array, with its key. */
  nameRunsOfKey: statement<object, [runIds: string, accountId: string, key: string]>(
    'UPDATE idempotency_keys SET run_ids = ? WHERE account_id = ? AND key = ?',
  ),

  findIdempotencyKey: statement<
    { fingerprint: Uint8Array; run_id: string; run_ids: string | null },
    [accountId: string, key: string]
  >('SELECT fingerprint, run_id, run_ids FROM idempotency_keys WHERE account_id = ? AND key = ?'),

  releaseIdempotencyKey: statement<object, [accountId: string, key: string, runId: string]>(
    'DELETE FROM idempotency_keys WHERE account_id = ? AND key = ? AND run_id = ?',
  ),

  findRun: statement<RunToRead, [id: string, accountId: string]>(findRunSql.replace('*', `*, ${hasArtifacts()}`)),

  // Claiming

  queueHeads,

  // Attempts

  /** Starts an attempt of a locked run under a lease. */
  claimRun: statement<
    RunsTable,
    [startedAt: number, attemptStartedAt: number, workerId: string, leaseExpiresAt: number, id: string]
  >(`UPDATE runs SET ${startedAttempt}, started_at = COALESCE(started_at, ?), attempt_started_at = ?, worker_id = ?,
    lease_expires_at = ? WHERE id = ? RETURNING *`),

  findSteps: statement<{ name: string; value: Uint8Array }, [runId: string]>(
    'SELECT name, value FROM run_steps WHERE run_id = ? ORDER BY position, name',
  ),

  insertStep: statement<object, [runId: string, name: string, value: Uint8Array, position: number]>(
    'INSERT INTO run_steps (run_id, name, value, position) VALUES (?, ?, ?, ?)',
  ),

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
      attemptEnds: string | null,
      id: string,
    ]
  >(`UPDATE runs SET status = ?, reason = ?, worker_id = NULL, lease_expires_at = NULL, failures = ?, losses = ?,
    delayed = ?, finished_at = ?, available_at = ?, output = ?, error = ?, attempt_ends = ? WHERE id = ?`),

  /** The sequence number of the run's last event. */
  lastSequence: statement<{ sequence: number }, [runId: string]>(
    'SELECT COALESCE(MAX(sequence), 1) AS sequence FROM run_events WHERE run_id = ?',
  ),

  deleteSteps: statement<object, [runId: string]>('DELETE FROM run_steps WHERE run_id = ?'),
}

/** A run to insert. Every other column has its default. */
export type InsertedRun = Pick<RunsTable, (typeof insertedRunColumns)[number]>

/** Ready runs of one account and workflow to claim: the first ones that have no browser context. */
export interface ClaimedQueue {
  accountId: string
  workflowId: string
  countMax: number
}

export interface ClaimTerms {
  workerId: string
  at: number
  leaseExpiresAt: number
}

export type ClaimedRun = RunsTable & {
  /** Results of the steps that earlier attempts finished, encrypted. */
  steps: { name: string; value: Uint8Array }[]
}

/** An event without its sequence number, which is the run's next one. */
export type NewEvent = Omit<RunEventsTable, 'id' | 'sequence'>

/** An attempt that succeeded. */
export interface SucceededAttempt {
  id: string
  attempt: number
  workerId: string
  finishedAt: number
  output: string
  /** `null` to keep the run's. */
  progress: string | null
}

/**
 * All statements of runs. Locks last until the transaction ends; SQLite needs none, since its writes never overlap.
 * Functions execute one statement in PostgreSQL, whatever the number of runs, and need no other lock.
 */
export interface RunStatements extends Readonly<typeof sharedRunStatements> {
  insertRuns(tx: Transaction, runs: readonly InsertedRun[]): Promise<void>
  /** Inserts rows of `run_terms` (`termRows`). */
  insertTerms(tx: Transaction, rows: readonly (readonly Value[])[]): Promise<void>
  /** Starts attempts under leases, with their events. Skips runs that another transaction has locked. */
  claimRuns(tx: Transaction, queues: readonly ClaimedQueue[], terms: ClaimTerms): Promise<ClaimedRun[]>
  /**
   * Finishes attempts and writes their events, the last of which is the change of status. Leaves out attempts whose
   * lease was lost, which are cancelled, or which have a browser context or a concurrency group. Returns the others' runs.
   */
  finishRuns(
    tx: Transaction,
    attempts: readonly SucceededAttempt[],
    events: readonly NewEvent[],
  ): Promise<Pick<RunsTable, 'id' | 'workflow_id' | 'started_at'>[]>
  /** Extends the leases that the worker still has; returns their runs. */
  extendLeases(
    tx: Transaction,
    workerId: string,
    runIds: readonly string[],
    leaseExpiresAt: number,
  ): Promise<Pick<RunsTable, 'id' | 'attempts'>[]>
  /** Appends events to runs that the transaction has locked. */
  appendEvents(tx: Transaction, events: readonly NewEvent[]): Promise<void>
  /** Locks the account, so that no other transaction enqueues runs for it. */
  lockAccount: Statement<{ id: string }, [id: string]>
  /** Locks and returns the run. */
  lockRun: Statement<RunsTable, [id: string, accountId: string]>
  /** Locks the run and returns whether it can be claimed now. Waits for a transaction that changes it. */
  findClaimable: Statement<
    Pick<RunsTable, 'id' | 'browser_context_id' | 'persist_context' | 'concurrency_group'> & { claimable: 0 | 1 },
    [now: number, id: string]
  >
  /** Locks and returns the run of a lease; no row when the lease was lost. */
  lockLeasedRun: Statement<RunsTable, [id: string, attempt: number, workerId: string]>
  /** Locks and returns running runs whose leases have expired, 500 at most. */
  lockLostRuns: Statement<RunsTable, [now: number]>
  /** Joins each run of `page` that is small with its row. Has one value: the most bytes. */
  joinSmallRuns: string
  /** The run's events after a sequence number, oldest first. */
  eventsAfter: Statement<
    { sequence: number; at: number; type: string; data: string },
    [runId: string, sequence: number, limit: number]
  >
}
