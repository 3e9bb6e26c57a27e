/** The SQL of runs and their events that the API uses; the queue's is in queue.ts. */
import { parseId } from '../../storage/statement-values.ts'
import type { Transaction, Value } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables.ts'
import type { PersistContext, RunEvent } from './run.ts'
import { isFinal, type RunStatus } from './run-state.ts'

/** A run to be queued; everything else of a new row follows from it. */
export interface NewRun {
  id: string
  accountId: string
  apiKeyId: string | null
  userId?: string | null
  workflowId: string
  workflowVersion: string
  priority: number
  variables: string
  /** Seals them; called each time they are written, which may be long after a key was changed. */
  secrets: (() => Uint8Array) | null
  createdAt: number
  availableAt: number | null
  expiresAt: number | null
  browserContextId: string | null
  persistContext: PersistContext | null
  traceContext?: string | undefined
}

const runColumns = [
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
]

/** A run as it is written, and what was found out about it in the transaction that writes it. */
export interface EnqueuedRun extends NewRun {
  /** Whether another run holds the browser context that this one is to change. */
  waitsForContext: boolean
  /** `null` where it is handed out without a job, and while it is not ready. */
  jobId: string | null
}

/** So many are written by one statement: each number of rows is a statement of its own, which is prepared once. */
const rowsPerStatement = [64, 32, 16, 8, 4, 2, 1]

const queuedEvent = JSON.stringify({ status: 'queued', attempt: 0, reason: null })

/**
 * Writes the runs with their first events, in as few statements as there can be: of what arrives together, a statement
 * for each would be most of the work, above all where the store is at the other end of a network.
 */
export async function insertRuns(tx: Transaction, runs: readonly EnqueuedRun[]): Promise<void> {
  await insertRows(tx, 'runs', runColumns, runs.map(rowOf))
  const events = runs.map(({ id, createdAt }) => [id, 1, createdAt, 'status', queuedEvent])
  await insertRows(tx, 'run_events', ['run_id', 'sequence', 'at', 'type', 'data'], events)
}

function rowOf(run: EnqueuedRun): Value[] {
  return [
    run.id,
    run.accountId,
    run.apiKeyId,
    run.userId ?? null,
    run.workflowId,
    run.workflowVersion,
    'queued',
    run.priority,
    run.variables,
    run.secrets?.() ?? null,
    run.createdAt,
    run.availableAt === null ? 0 : 1,
    run.availableAt,
    run.expiresAt,
    run.browserContextId,
    run.persistContext,
    run.waitsForContext ? 1 : 0,
    run.jobId,
    run.traceContext ?? null,
  ]
}

const insertSqls = new Map<string, string>()

function insertSql(table: string, columns: readonly string[], rows: number): string {
  const key = `${table} ${rows}`
  let sql = insertSqls.get(key)
  if (sql === undefined) {
    const row = `(${columns.map(() => '?').join(', ')})`
    sql = `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${Array(rows).fill(row).join(', ')}`
    insertSqls.set(key, sql)
  }
  return sql
}

async function insertRows(tx: Transaction, table: string, columns: readonly string[], rows: readonly Value[][]) {
  for (let done = 0; done < rows.length; ) {
    const count = rowsPerStatement.find((each) => each <= rows.length - done) ?? 1
    await tx.all(insertSql(table, columns, count), rows.slice(done, done + count).flat())
    done += count
  }
}

const appendEventSql = `INSERT INTO run_events (run_id, sequence, at, type, data)
  SELECT CAST(? AS TEXT), COALESCE(MAX(sequence), 0) + 1, CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT)
  FROM run_events WHERE run_id = ?`

/** Adds an event after the run's last one. */
export async function appendEvent(
  tx: Transaction,
  runId: string,
  { at, type, data }: Omit<RunEvent, 'sequence'>,
): Promise<void> {
  await tx.all(appendEventSql, [runId, at, type, JSON.stringify(data), runId])
}

const forgetStepsSql = 'DELETE FROM run_steps WHERE run_id = ?'

/** What the steps of a finished run returned is needed by no attempt any more. */
export async function forgetSteps(tx: Transaction, runId: string): Promise<void> {
  await tx.all(forgetStepsSql, [runId])
}

const findRunSql = 'SELECT * FROM runs WHERE id = ? AND account_id = ?'

export async function findRun(tx: Transaction, accountId: string, id: string): Promise<RunsTable | undefined> {
  const known = parseId(id)
  const [row] = known === undefined ? [] : await tx.all<RunsTable>(findRunSql, [known, accountId])
  return row
}

export interface RunFilter {
  workflowId?: string | undefined
  /** In any of these. */
  statuses?: readonly string[] | undefined
  /** Ids from this one on. */
  from?: string | undefined
  /** Ids before this one. */
  before?: string | undefined
}

/**
 * Runs of the account, newest first. Of several statuses each is read by itself, in one statement: no index has them in
 * one order, and SQLite would read past every run of the others.
 */
export async function listRuns(tx: Transaction, accountId: string, filter: RunFilter, limit: number) {
  const { workflowId, statuses = [undefined], from, before } = filter
  const newest = (status: string | undefined) => {
    let rows = tx.query.selectFrom('runs').selectAll().where('account_id', '=', accountId)
    if (workflowId !== undefined) rows = rows.where('workflow_id', '=', workflowId)
    if (status !== undefined) rows = rows.where('status', '=', status)
    // Says the same again, in the words of the index that has these runs by workflow and status.
    if (status !== undefined && isFinal(status as RunStatus)) rows = rows.where('finished_at', 'is not', null)
    if (from !== undefined && before !== undefined) {
      // Not `>=` and `<`: of these two SQLite made the account's index its choice, and read past runs of every status.
      rows = rows.where((it) => it.between('id', from, before)).where('id', '<>', before)
    } else if (from !== undefined) rows = rows.where('id', '>=', from)
    else if (before !== undefined) rows = rows.where('id', '<', before)
    return rows.orderBy('id', 'desc').limit(limit)
  }
  if (statuses.length === 1) return newest(statuses[0]).execute()
  const [first, ...others] = statuses.map((status) => tx.query.selectFrom(newest(status).as('runs')).selectAll())
  const all = others.reduce((sum, each) => sum?.unionAll(each), first)
  return all?.orderBy('id', 'desc').limit(limit).execute() ?? []
}

const runningSql = `SELECT workflow_id, account_id, COUNT(*) AS running FROM runs WHERE status = 'running'
  GROUP BY workflow_id, account_id`

/** How many runs are running, by workflow and account. */
export type Running = Map<string, Map<string, number>>

export async function countRunning(tx: Transaction): Promise<Running> {
  const rows = await tx.all<{ workflow_id: string; account_id: string; running: number }>(runningSql, [])
  const running: Running = new Map()
  for (const { workflow_id, account_id, running: count } of rows) {
    const ofWorkflow = running.get(workflow_id) ?? new Map<string, number>()
    running.set(workflow_id, ofWorkflow.set(account_id, count))
  }
  return running
}

/** Of a workflow, or of an account, in all. */
export function runningOf(running: Running, { workflowId, accountId }: { workflowId?: string; accountId?: string }) {
  const workflows = workflowId === undefined ? [...running.values()] : [running.get(workflowId) ?? new Map()]
  const counts = workflows.flatMap((accounts) =>
    accountId === undefined ? [...accounts.values()] : [accounts.get(accountId) ?? 0],
  )
  return counts.reduce((sum: number, count: number) => sum + count, 0)
}

const eventsAfterSql = `SELECT sequence, at, type, data FROM run_events
  WHERE run_id = ? AND sequence > CAST(? AS BIGINT) ORDER BY sequence LIMIT ?`

/** The run's events after a sequence number, oldest first. */
export async function eventsAfter(
  tx: Transaction,
  runId: string,
  sequence: number,
  limit: number,
): Promise<RunEvent[]> {
  type Row = { sequence: number; at: number; type: RunEvent['type']; data: string }
  const rows = await tx.all<Row>(eventsAfterSql, [runId, sequence, limit])
  return rows.map((row) => ({ ...row, data: JSON.parse(row.data) }))
}
