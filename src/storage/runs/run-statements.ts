/**
 * The SQL statements of the queue, by name. Statements that both stores share are here. The others are declared in
 * `RunStatements` and written in `sqlite/` and `postgres/` for each query planner.
 */
import { inList } from '../statement-values.ts'
import { type Statement, statement, type Transaction, type Value } from '../store.ts'
import type { RunEventsTable, RunsTable, WaitKind } from '../tables/run-tables.ts'
import { addExecuted } from './run-lookups.ts'
import { tagTerm, termRows } from './run-terms.ts'
import { throttleStatements } from './throttle-statements.ts'
import type { CallingRun } from './wait-statements.ts'

// The SQL statements that count runs, for metrics, concurrency limits and the dashboard. All read indexes alone.

/** The condition of the index of ready runs. Their expiry is not in it. */
export const isReady = "status = 'queued' AND delayed = 0 AND waiting_for = ''"

/** The conditions of the indexes of runs that wait, which the queue skips. */
const waitsForContext = "status = 'queued' AND waiting_for = 'browserContext'"
const waitsForGroup = "status = 'queued' AND waiting_for = 'concurrencyGroup'"

/** The condition of the indexes of finished and waiting runs: redundant, but SQLite compares conditions literally. */
export const finished = "status <> 'queued' AND status <> 'running'"

/** Maximum position that is counted, so that a count takes at most a millisecond. */
export const positionMax = 1000

type CountByWorkflow = { workflow_id: string; count: number }

type CountByWorkflowAndAccount = CountByWorkflow & { account_id: string }

const runCountStatements = {
  // Over all accounts: SQLite counts 100,000 ready runs in 10 ms, whatever the number of finished ones.

  countReady: statement<CountByWorkflowAndAccount & { first_id: string }, []>(
    `SELECT account_id, workflow_id, COUNT(*) AS count, MIN(id) AS first_id FROM runs
      WHERE ${isReady} GROUP BY account_id, workflow_id`,
  ),

  countRunning: statement<CountByWorkflowAndAccount, []>(
    `SELECT account_id, workflow_id, COUNT(*) AS count FROM runs
      WHERE status = 'running' GROUP BY workflow_id, account_id`,
  ),

  countDelayed: statement<CountByWorkflow, []>(
    "SELECT workflow_id, COUNT(*) AS count FROM runs WHERE status = 'queued' AND delayed = 1 GROUP BY workflow_id",
  ),

  countWaitingForContext: statement<CountByWorkflow, []>(
    `SELECT workflow_id, COUNT(*) AS count FROM runs
      WHERE ${waitsForContext} GROUP BY workflow_id`,
  ),

  countWaitingForGroup: statement<CountByWorkflow, []>(
    `SELECT workflow_id, COUNT(*) AS count FROM runs
      WHERE ${waitsForGroup} GROUP BY workflow_id`,
  ),

  /** Runs that have left their workers, from an index of their own. */
  countWaiting: statement<CountByWorkflow & { waiting_for: WaitKind }, []>(
    "SELECT workflow_id, waiting_for, COUNT(*) AS count FROM runs WHERE status = 'waiting' GROUP BY workflow_id, waiting_for",
  ),

  /** When the run could first start, and when it was last queued: later than the former for a retried run. */
  availability: statement<{ available_at: number; queued_at: number | null }, [id: string]>(
    `SELECT COALESCE(available_at, created_at) AS available_at,
      (SELECT at FROM run_events WHERE run_id = runs.id AND type = 'status' ORDER BY sequence DESC LIMIT 1) AS queued_at
      FROM runs WHERE id = ?`,
  ),

  // Runs before one

  countAheadOfReady: countAhead<[accountId: string, workflowId: string]>(
    `${isReady} AND account_id = ? AND workflow_id = ?`,
  ),

  countAheadInGroup: countAhead<[group: string]>(`${waitsForGroup} AND concurrency_group = ?`),

  // Of one account

  countOfAccount: statement<
    { queued: number; delayed: number; running: number; waiting: number },
    [string, string, string, string]
  >(
    `SELECT ${count('queued')} AS queued, ${count('queued', 'AND delayed = 1')} AS delayed,
      ${count('running')} AS running, ${count('waiting')} AS waiting`,
  ),

  /** The oldest run that is not delayed. For `delayed = 0`, SQLite would read the rows of every status. */
  oldestReady: statement<{ id: string; workflow_id: string; created_at: number }, [accountId: string, string]>(
    `SELECT id, workflow_id, created_at FROM runs WHERE id = (SELECT MIN(id) FROM runs
      WHERE account_id = ? AND status = 'queued'
      AND id NOT IN (SELECT id FROM runs WHERE account_id = ? AND status = 'queued' AND delayed = 1))`,
  ),
}

/** Counts the runs before one in a queue. Two ranges of an index, since no range has both conditions. */
function countAhead<Queue extends string[]>(condition: string) {
  return statement<{ count: number }, [...Queue, priority: number, ...Queue, priority: number, id: string]>(
    `SELECT COUNT(*) AS count FROM (
      SELECT * FROM (SELECT 1 FROM runs WHERE ${condition} AND priority > ? LIMIT ${positionMax}) AS higher
      UNION ALL
      SELECT * FROM (SELECT 1 FROM runs WHERE ${condition} AND priority = ? AND id < ? LIMIT ${positionMax}) AS earlier)
      AS ahead`,
  )
}

/** A scalar subquery: the number of an account's unfinished runs of a status. */
function count(status: 'queued' | 'running' | 'waiting', condition = ''): string {
  return `(SELECT COUNT(*) FROM runs WHERE account_id = ? AND status = '${status}' ${condition})`
}

// SQL statements of queued runs that the queue skips: they wait for their concurrency group or browser context.

const waitingRunStatements = {
  // Runs that wait for their concurrency group

  countRunningOfGroup: statement<{ count: number }, [group: string]>(
    "SELECT COUNT(*) AS count FROM runs WHERE status = 'running' AND concurrency_group = ?",
  ),

  waitForGroup: statement<object, [id: string]>("UPDATE runs SET waiting_for = 'concurrencyGroup' WHERE id = ?"),

  /**
   * Groups with waiting runs after a group, in the order of their ids, by a few index look-ups for each. The rate is
   * `null` unless the group is at it.
   */
  waitingGroups: statement<
    { id: string; running: number; limit_count: number | null; period_seconds: number | null },
    [after: string, countMax: number]
  >(`WITH RECURSIVE page AS (SELECT CAST(? AS TEXT) AS after, CAST(? AS INTEGER) AS count_max),
    waited (id, number) AS (
      SELECT (SELECT MIN(concurrency_group) FROM runs
        WHERE ${waitsForGroup} AND concurrency_group > page.after), 1 FROM page
      UNION ALL
      SELECT (SELECT MIN(concurrency_group) FROM runs
        WHERE ${waitsForGroup} AND concurrency_group > waited.id), number + 1
      FROM waited CROSS JOIN page WHERE id IS NOT NULL AND number < count_max)
    SELECT waited.id, (SELECT COUNT(*) FROM runs
        WHERE status = 'running' AND concurrency_group = waited.id) AS running, limit_count, period_seconds
      FROM waited LEFT JOIN throttles ON throttles.id = waited.id WHERE waited.id IS NOT NULL ORDER BY waited.id`),

  // Runs that wait for a browser context

  waitForContext: statement<object, [id: string]>("UPDATE runs SET waiting_for = 'browserContext' WHERE id = ?"),

  /**
   * Contexts that runs wait for although no run leases them: they were deleted, or the next run has not started yet.
   * One index look-up for each context: for SELECT DISTINCT, SQLite reads every run that waits.
   */
  freeContexts: statement<{ id: string; deleted: number }, []>(`WITH RECURSIVE waited (id) AS (
      SELECT MIN(browser_context_id) FROM runs WHERE ${waitsForContext}
      UNION ALL
      SELECT (SELECT MIN(browser_context_id) FROM runs
        WHERE ${waitsForContext} AND browser_context_id > waited.id)
      FROM waited WHERE id IS NOT NULL)
    SELECT waited.id, browser_contexts.id IS NULL AS deleted FROM waited
    LEFT JOIN browser_contexts ON browser_contexts.id = waited.id AND deleted_at IS NULL
    WHERE waited.id IS NOT NULL AND held_by_run_id IS NULL LIMIT 100`),
}

/**
 * Make runs ready that wait for their concurrency group or browser context: the first one, or all of them.
 *
 * @param lock leaves out runs that another transaction has locked: it ends them, or makes them ready itself.
 */
export function resumeStatements(lock = '') {
  const ofGroup = `${waitsForGroup} AND concurrency_group = ?`
  const ofContext = `${waitsForContext} AND browser_context_id = ?`
  const first = (queue: string) => `(SELECT id FROM runs WHERE ${queue} ORDER BY priority DESC, id LIMIT 1 ${lock})`
  return {
    resumeNextOfGroup: statement<object, [group: string]>(
      `UPDATE runs SET waiting_for = '' WHERE id = ${first(ofGroup)} AND waiting_for = 'concurrencyGroup'`,
    ),
    resumeNextForContext: statement<object, [contextId: string]>(
      `UPDATE runs SET waiting_for = '' WHERE id = ${first(ofContext)} AND waiting_for = 'browserContext'`,
    ),
    resumeAllForContext: statement<object, [contextId: string]>(
      `UPDATE runs SET waiting_for = '' WHERE id IN (SELECT id FROM runs WHERE ${ofContext} ${lock})`,
    ),
  }
}

// The statement that reads queue heads for fair scheduling, and the condition of a ready run.

/** The first ready run of an account and a workflow. */
export type QueueHead = Pick<RunsTable, 'id' | 'account_id' | 'workflow_id' | 'priority'> & {
  has_context: 0 | 1
  /** Whether it goes on after a wait. */
  continues: 0 | 1
  /** The account's running runs, to compare accounts; 0 if there is only one. Accurate below some hundreds. */
  running: number
}

/** A run that has not started in time must not start, even before maintenance marks it as expired. */
export const ready = (now = '?') => `${isReady}
  AND (expires_at IS NULL OR expires_at > ${now} OR attempts > continuations)`

/** At most this many queue heads are read for one decision. */
export const queueHeadsMax = 500

/** At most this many running runs are counted to compare accounts. */
const countedMax = 1000

/** Sorts after every account's id. */
const lastAccount = "'~'"

/**
 * A queue head as one text, because a scalar subquery, which finds it by one index look-up, has one column: whether its
 * account is a further one (1 character), id and account (36 each), priority (3 digits), whether it has a browser context
 * (1), whether it goes on after a wait (1), and the workflow (the rest).
 */
const findHead = (isNew: 0 | 1, condition: string) => `(SELECT '${isNew}' || id || account_id
    || (priority + ${priorityOffset}) || CASE WHEN browser_context_id IS NULL THEN '0' ELSE '1' END
    || continues || workflow_id
  FROM runs WHERE ${ready('moment')} AND ${condition} ORDER BY account_id, workflow_id, priority DESC, id LIMIT 1)`
/** Makes each priority, which may be negative, a number of three digits. */
const priorityOffset = 500
const headIsNew = 'CAST(substr(head, 1, 1) AS INTEGER)'
const headId = 'substr(head, 2, 36)'
const headAccount = 'substr(head, 38, 36)'
const headPriority = `CAST(substr(head, 74, 3) AS INTEGER) - ${priorityOffset}`
const headHasContext = 'CAST(substr(head, 77, 1) AS INTEGER)'
const headContinues = 'CAST(substr(head, 78, 1) AS INTEGER)'
const headWorkflow = 'substr(head, 79)'

const accountsLeft = `accounts_left - ${headIsNew}`
const findNextHead = `COALESCE(
  ${findHead(0, `account_id = ${headAccount} AND workflow_id > ${headWorkflow}`)},
  CASE WHEN ${accountsLeft} > 0 THEN ${findHead(
    1,
    `account_id > ${headAccount}
      AND account_id <= CASE WHEN ${headAccount} > start_after THEN ${lastAccount} ELSE start_after END`,
  )} END,
  CASE WHEN ${accountsLeft} > 0 AND ${headAccount} > start_after THEN ${findHead(1, 'account_id <= start_after')} END)`

/**
 * The queue heads of the next accounts: in order of their ids, starting after one account and wrapping around. Reads
 * the accounts' heads of all workflows, `queueHeadsMax` at most.
 *
 * The recursion costs a few index look-ups for each head, whatever waits. Both databases execute GROUP BY by reading
 * every ready run, and SQLite does so for `(account_id, workflow_id) > (…)` too.
 */
const queueHeads = statement<QueueHead, [startAfter: string, accountsMax: number, now: number]>(
  `WITH RECURSIVE start (start_after, accounts_left, moment) AS (
      SELECT CAST(? AS TEXT), CAST(? AS INTEGER), CAST(? AS BIGINT)),
    heads (number, start_after, accounts_left, moment, head) AS (
      SELECT 1, start_after, accounts_left, moment,
        COALESCE(${findHead(1, 'account_id > start_after')}, ${findHead(1, 'account_id <= start_after')}) FROM start
      UNION ALL
      SELECT number + 1, start_after, ${accountsLeft}, moment, ${findNextHead}
        FROM heads WHERE head IS NOT NULL AND number < ${queueHeadsMax}),
    running AS MATERIALIZED (SELECT account_id, COUNT(*) AS count FROM (
      SELECT account_id FROM runs WHERE status = 'running' LIMIT ${countedMax}) AS counted GROUP BY account_id)
    SELECT ${headId} AS id, ${headAccount} AS account_id, ${headWorkflow} AS workflow_id,
      ${headPriority} AS priority, ${headHasContext} AS has_context, ${headContinues} AS continues,
      CASE WHEN (SELECT MIN(${headAccount}) = MAX(${headAccount}) FROM heads) THEN 0
        ELSE COALESCE((SELECT count FROM running WHERE running.account_id = ${headAccount}), 0) END AS running
    FROM heads WHERE head IS NOT NULL`,
)

/**
 * The first ready run of the workflow that has none of these versions, or the first such run that goes on after a wait. Reads the
 * runs of these versions before it.
 */
export async function findHeadWithout(
  tx: Transaction,
  { account_id, workflow_id, running }: QueueHead,
  versions: readonly string[],
  { now, continues = false }: { now: number; continues?: boolean },
): Promise<QueueHead | undefined> {
  const { marks, values } = inList(versions)
  const sql = `SELECT id, account_id, workflow_id, priority, continues,
      CASE WHEN browser_context_id IS NULL THEN 0 ELSE 1 END AS has_context
    FROM runs WHERE ${ready()} AND account_id = ? AND workflow_id = ? AND workflow_version NOT IN (${marks})
      ${continues ? 'AND continues = 1' : ''}
    ORDER BY priority DESC, id LIMIT 1`
  const [head] = await tx.all<Omit<QueueHead, 'running'>>(sql, [now, account_id, workflow_id, ...values])
  return head && { ...head, running }
}

/** The first ready run of an account and a workflow that goes on after a wait. */
export const firstContinuing = statement<QueueHead, [now: number, accountId: string, workflowId: string]>(
  `SELECT id, account_id, workflow_id, priority, CASE WHEN browser_context_id IS NULL THEN 0 ELSE 1 END AS has_context,
      continues, 0 AS running
    FROM runs WHERE ${ready()} AND account_id = ? AND workflow_id = ? AND continues = 1
    ORDER BY account_id, workflow_id, priority DESC, id LIMIT 1`,
)

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
  'waiting_for',
  'trace_context',
  'deployment_id',
  'tags',
  'concurrency_group',
  'schedule_id',
  'scheduled_for',
  'rerun_of',
  'parent_run_id',
] as const satisfies (keyof RunsTable)[]

/** Counts the queued runs of each account, up to the limit. From runs_queued: 10,000 rows take 0.5 to 1 ms. */
export function countQueuedRuns(tx: Transaction, accountIds: readonly string[], limit: number) {
  const { marks, values } = inList(accountIds)
  const sql = `SELECT id AS account_id, (SELECT COUNT(*) FROM (SELECT id FROM runs
      WHERE account_id = accounts.id AND status = 'queued' ORDER BY account_id, id LIMIT ?) AS queued_runs) AS count
    FROM accounts WHERE id IN (${marks})`
  return tx.all<{ account_id: string; count: number }>(sql, [limit, ...values])
}

/** When an attempt ends, keeps the execution time of its earlier parts, for statistics. */
export const endedParts = 'executed_ms = CASE continues WHEN 1 THEN executed_ms ELSE 0 END'

/**
 * From when the duration of a finished run counts. One that has waited counts as started when its last attempt would have,
 * without a wait: at the last part, and earlier by the execution time of the parts before. A run that was cancelled between
 * two parts has no last one.
 */
export const countedStart = `CASE WHEN has_waits = 0 OR started_at IS NULL THEN started_at
    WHEN continues = 1 AND status <> 'succeeded' THEN finished_at - executed_ms
    ELSE attempt_started_at - executed_ms END`

/** A column of claimed runs. */
export const valuesVersion = (runs = 'runs') =>
  `(SELECT values_version FROM accounts WHERE id = ${runs}.account_id) AS values_version`

export const startedAttempt =
  "status = 'running', reason = NULL, attempts = attempts + 1, continuations = continuations + continues"

/**
 * Does not find a run that is being erased. Concatenation hides the account, so that PostgreSQL cannot pick one of the
 * indexes that begin with it.
 */
export const findRunSql = "SELECT * FROM runs WHERE id = ? AND account_id || '' = ? AND status <> 'deleted'"

/** A run, and whether it has artifacts (1) or not (0), so that those of most runs need no query. */
export interface RunToRead extends RunsTable {
  has_artifacts: 0 | 1
}

/**
 * The bytes of the columns that may be large. Neither store reads the columns to measure them, unless they are in an
 * expression, such as `octet_length(COALESCE(output, ''))`.
 */
export const runBytes = 'octet_length(variables) + COALESCE(octet_length(output), 0) + COALESCE(octet_length(error), 0)'

export const hasArtifacts = (runId = 'runs.id') =>
  `(CASE WHEN EXISTS (SELECT 1 FROM artifacts WHERE run_id = ${runId}) THEN 1 ELSE 0 END) AS has_artifacts`

export const sharedRunStatements = {
  ...runCountStatements,
  ...waitingRunStatements,
  ...throttleStatements,

  // Enqueueing

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
    ClaimedRow,
    [startedAt: number, attemptStartedAt: number, workerId: string, leaseExpiresAt: number, id: string]
  >(`UPDATE runs SET ${startedAttempt}, started_at = COALESCE(started_at, ?), attempt_started_at = ?, worker_id = ?,
    lease_expires_at = ? WHERE id = ? RETURNING *, ${valuesVersion()}`),

  /** Inserts a run whose first attempt begins at once. */
  insertStarted: statement<Pick<ClaimedRow, 'values_version'>>(`INSERT INTO runs (${insertedRunColumns}, attempts,
    started_at, attempt_started_at, worker_id, lease_expires_at)
    VALUES (${insertedRunColumns.map(() => '?')}, 1, ?, ?, ?, ?) RETURNING ${valuesVersion()}`),

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
    Pick<RunsTable, 'workflow_id' | 'started_at'>,
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
      executedMilliseconds: number,
      id: string,
    ]
  >(`UPDATE runs SET status = ?, reason = ?, worker_id = NULL, lease_expires_at = NULL, failures = ?, losses = ?,
    delayed = ?, finished_at = ?, available_at = ?, output = ?, error = ?, attempt_ends = ?, ${addExecuted()}, ${endedParts},
    continues = 0 WHERE id = ? RETURNING workflow_id, ${countedStart} AS started_at`),

  findLostRuns: statement<{ id: string }, [now: number]>(
    "SELECT id FROM runs WHERE status = 'running' AND lease_expires_at <= ? LIMIT 500",
  ),

  /** The run, if its lease has expired. */
  findLostRun: statement<RunsTable, [id: string, now: number]>(
    "SELECT * FROM runs WHERE id = ? AND CASE WHEN status = 'running' AND lease_expires_at <= ? THEN 1 ELSE 0 END = 1",
  ),

  /** The sequence number of the run's last event. */
  lastSequence: statement<{ sequence: number }, [runId: string]>(
    'SELECT COALESCE(MAX(sequence), 1) AS sequence FROM run_events WHERE run_id = ?',
  ),

  setProgress: statement<object, [progress: string, id: string]>('UPDATE runs SET progress = ? WHERE id = ?'),

  /**
   * The attempt does not count: its workflow has not run. The next claim has a higher fencing token and the same number
   * for callers, so that a repeated or late report of this attempt does not reach the next one.
   */
  returnToQueue: statement<object, [reason: string, delayed: 0 | 1, availableAt: number, problem: string, id: string]>(
    `UPDATE runs SET status = 'queued', reason = ?, worker_id = NULL, lease_expires_at = NULL,
      started_at = CASE WHEN attempts - continuations > 1 OR continues = 1 THEN started_at END,
      continuations = continuations + 1 - continues, delayed = ?, available_at = ?,
      deployment_problem = ? WHERE id = ?`,
  ),

  deleteSteps: statement<object, [runId: string]>('DELETE FROM run_steps WHERE run_id = ?'),
}

/** A run that was queued or waiting and is `cancelled` now, or one that is `running` and has been requested to stop. */
export type CancelledRun = Pick<
  RunsTable,
  'id' | 'workflow_id' | 'status' | 'attempts' | 'continuations' | 'started_at' | 'concurrency_group' | 'has_waits'
>

/** Cancels the queued and waiting runs, and requests the running ones to stop, unless they were requested before. */
export function cancelUnfinished(
  tx: Transaction,
  accountId: string,
  ids: readonly string[],
  by: { apiKeyId: string | null; userId: string | null },
  at: number,
): Promise<CancelledRun[]> {
  const { marks, values } = inList(ids)
  const ifQueued = (value: string, column: string) => `CASE status WHEN 'running' THEN ${column} ELSE ${value} END`
  // Concatenation hides the account from PostgreSQL's planner, which would otherwise read all of its runs.
  return tx.all(
    `UPDATE runs SET status = ${ifQueued("'cancelled'", 'status')}, reason = ${ifQueued("'cancelRequested'", 'reason')},
      finished_at = ${ifQueued('CAST(? AS BIGINT)', 'finished_at')}, cancel_requested = 1, cancelled_by_key_id = ?,
      cancelled_by_user_id = ?
    WHERE id IN (${marks}) AND account_id || '' = ? AND status IN ('queued', 'waiting', 'running') AND cancel_requested = 0
    RETURNING id, workflow_id, status, attempts, continuations, ${countedStart} AS started_at, concurrency_group,
      has_waits`,
    [at, by.apiKeyId, by.userId, ...values, accountId],
  )
}

/** A run to insert. Every other column has its default. */
export type InsertedRun = Pick<RunsTable, (typeof insertedRunColumns)[number]>

/** Ready runs of one account and workflow to claim: the first ones that have no browser context. */
export interface ClaimedQueue {
  accountId: string
  workflowId: string
  countMax: number
  /** Versions whose runs are left. */
  otherVersions?: readonly string[] | undefined
}

export interface NewLease {
  workerId: string
  at: number
  leaseExpiresAt: number
}

/** A run that was claimed, with the version of its account's secrets and settings. */
export type ClaimedRow = RunsTable & { values_version: number }

export type ClaimedRun = RunsTable &
  Partial<ClaimedRow> & {
    /** Results of the steps that earlier attempts finished, encrypted. */
    steps: { name: string; value: Uint8Array }[]
  }

/** An event without its sequence number, which is the run's next one. */
export type NewEvent = Omit<RunEventsTable, 'id' | 'sequence'>

interface SucceededAttempt {
  id: string
  attempt: number
  workerId: string
  finishedAt: number
  output: string
  /** `null` to keep the run's. */
  progress: string | null
  parentRunId?: string | null | undefined
}

/**
 * All statements of runs. Locks last until the transaction ends; SQLite needs none, since its writes never overlap.
 * Functions execute one statement in PostgreSQL, whatever the number of runs, and need no other lock.
 */
export interface RunStatements
  extends Readonly<typeof sharedRunStatements>,
    Readonly<ReturnType<typeof resumeStatements>> {
  insertRuns(tx: Transaction, runs: readonly InsertedRun[]): Promise<void>
  insertTerms(tx: Transaction, rows: readonly (readonly Value[])[]): Promise<void>
  /** Starts attempts under leases, with their events. Skips runs that another transaction has locked. */
  claimRuns(tx: Transaction, queues: readonly ClaimedQueue[], newLease: NewLease): Promise<ClaimedRun[]>
  /**
   * Finishes attempts and writes their events; the last event is the change of status. Leaves out attempts whose
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
  lockRun: Statement<RunsTable, [id: string, accountId: string]>
  /** Locks runs in the order of their ids, as all transactions do, which prevents deadlocks. */
  lockRuns(tx: Transaction, ids: readonly string[]): Promise<void>
  /** Locks runs that may end, and those that their end makes ready: callers, and the runs that wait for their sign-in. */
  lockEnding(tx: Transaction, ids: readonly string[]): Promise<void>
  /** Locks runs to cancel, the runs that they have called, and those that the ends of all of them make ready. */
  lockCancelled(tx: Transaction, ids: readonly string[]): Promise<void>
  /** Locks the run and returns whether it can be claimed now. Waits for a transaction that changes it. */
  findClaimable: Statement<
    Pick<RunsTable, 'id' | 'browser_context_id' | 'persist_context' | 'concurrency_group' | 'continues'> & {
      claimable: 0 | 1
    },
    [now: number, id: string]
  >
  /** Locks and returns the run of a lease; no row when the lease was lost. */
  lockLeasedRun: Statement<RunsTable, [id: string, attempt: number, workerId: string]>
  /** Joins each run of `page` that is small with its row. Has one value: the most bytes. */
  joinSmallRuns: string
  /** The run and those below it, level by level. */
  findCalled: Statement<CallingRun, [id: string, limit: number]>
  /** The run's events after a sequence number, oldest first. */
  eventsAfter: Statement<
    { sequence: number; at: number; type: string; data: string },
    [runId: string, sequence: number, limit: number]
  >
}

/** Values of `insertTerm`: two rows for each tag of each run. */
export function tagRows(runs: readonly InsertedRun[]): Value[][] {
  return runs.flatMap((run) => {
    const tags: string[] = run.tags === null ? [] : JSON.parse(run.tags)
    return tags.flatMap((tag) => termRows(run, tagTerm(tag)))
  })
}

/** Of a run that was just queued: it goes before the runs that need its session. */
export const setSignsIn = statement('UPDATE runs SET signs_in = ?, priority = 10 WHERE id = ?')
