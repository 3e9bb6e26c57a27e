/** The SQL of runs and their events that the API uses; the queue's is in queue.ts. */
import type { Session } from '../storage/store.ts'
import type { RunsTable } from '../storage/tables.ts'
import type { PersistContext, RunEvent } from './run.ts'

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
  secrets: Uint8Array | null
  createdAt: number
  availableAt: number | null
  expiresAt: number | null
  browserContextId: string | null
  persistContext: PersistContext | null
}

const insertRunSql = `INSERT INTO runs
  (id, account_id, api_key_id, user_id, workflow_id, workflow_version, status, priority, variables, secrets, created_at,
   delayed, available_at, expires_at, browser_context_id, persist_context, waits_for_context)
  VALUES (?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const insertFirstEventSql = `INSERT INTO run_events (run_id, sequence, at, type, data) VALUES (?, 1, ?, 'status', ?)`

const queuedEvent = JSON.stringify({ status: 'queued', attempt: 0, reason: null })

/**
 * Two prepared statements: with Kysely's builder the same inserts took three times the CPU.
 *
 * @param waitsForContext whether another run holds the browser context that this one is to change.
 */
export async function insertRun(session: Session, run: NewRun, waitsForContext = false): Promise<void> {
  await session.all(insertRunSql, [
    run.id,
    run.accountId,
    run.apiKeyId,
    run.userId ?? null,
    run.workflowId,
    run.workflowVersion,
    run.priority,
    run.variables,
    run.secrets,
    run.createdAt,
    run.availableAt === null ? 0 : 1,
    run.availableAt,
    run.expiresAt,
    run.browserContextId,
    run.persistContext,
    waitsForContext ? 1 : 0,
  ])
  await session.all(insertFirstEventSql, [run.id, run.createdAt, queuedEvent])
}

const appendEventSql = `INSERT INTO run_events (run_id, sequence, at, type, data)
  SELECT ?, COALESCE(MAX(sequence), 0) + 1, ?, ?, ? FROM run_events WHERE run_id = ?`

/** Adds an event after the run's last one. */
export async function appendEvent(
  session: Session,
  runId: string,
  { at, type, data }: Omit<RunEvent, 'sequence'>,
): Promise<void> {
  await session.all(appendEventSql, [runId, at, type, JSON.stringify(data), runId])
}

/** What the steps of a finished run returned is needed by no attempt any more. */
export async function forgetSteps({ query }: Session, runId: string): Promise<void> {
  await query.deleteFrom('run_steps').where('run_id', '=', runId).execute()
}

const findRunSql = 'SELECT * FROM runs WHERE id = ? AND account_id = ?'

export async function findRun(session: Session, accountId: string, id: string): Promise<RunsTable | undefined> {
  const [row] = await session.all<RunsTable>(findRunSql, [id.toLowerCase(), accountId])
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
export async function listRuns(session: Session, accountId: string, filter: RunFilter, limit: number) {
  const { workflowId, statuses = [undefined], from, before } = filter
  const newest = (status: string | undefined) => {
    let rows = session.query.selectFrom('runs').selectAll().where('account_id', '=', accountId)
    if (workflowId !== undefined) rows = rows.where('workflow_id', '=', workflowId)
    if (status !== undefined) rows = rows.where('status', '=', status)
    if (from !== undefined && before !== undefined) {
      // Not `>=` and `<`: of these two SQLite made the account's index its choice, and read past runs of every status.
      rows = rows.where((it) => it.between('id', from, before)).where('id', '<>', before)
    } else if (from !== undefined) rows = rows.where('id', '>=', from)
    else if (before !== undefined) rows = rows.where('id', '<', before)
    return rows.orderBy('id', 'desc').limit(limit)
  }
  if (statuses.length === 1) return newest(statuses[0]).execute()
  const [first, ...others] = statuses.map((status) => session.query.selectFrom(newest(status).as('runs')).selectAll())
  const all = others.reduce((sum, each) => sum?.unionAll(each), first)
  return all?.orderBy('id', 'desc').limit(limit).execute() ?? []
}

const runningSql = `SELECT workflow_id, COUNT(*) AS running FROM runs WHERE status = 'running' GROUP BY workflow_id`

/** How many runs of each workflow are running, over all accounts. */
export async function countRunning(session: Session): Promise<Map<string, number>> {
  const rows = await session.all<{ workflow_id: string; running: number }>(runningSql, [])
  return new Map(rows.map((row) => [row.workflow_id, row.running]))
}

export interface IdempotencyKey {
  accountId: string
  key: string
  fingerprint: Uint8Array
  runId: string
  expiresAt: number
}

/** The key's earlier use, or `undefined` when this is the first one within its time; it is then written down. */
export async function claimIdempotencyKey(session: Session, key: IdempotencyKey, now: number) {
  const { query } = session
  const mine = query.selectFrom('idempotency_keys').selectAll().where('account_id', '=', key.accountId)
  const earlier = await mine.where('key', '=', key.key).executeTakeFirst()
  if (earlier && earlier.expires_at > now) return earlier
  const row = { fingerprint: key.fingerprint, run_id: key.runId, expires_at: key.expiresAt }
  await query
    .insertInto('idempotency_keys')
    .values({ ...row, account_id: key.accountId, key: key.key })
    .onConflict((it) => it.columns(['account_id', 'key']).doUpdateSet(row))
    .execute()
  return undefined
}

const eventsAfterSql = `SELECT sequence, at, type, data FROM run_events
  WHERE run_id = ? AND sequence > ? ORDER BY sequence LIMIT ?`

/** The run's events after a sequence number, oldest first. */
export async function eventsAfter(
  session: Session,
  runId: string,
  sequence: number,
  limit: number,
): Promise<RunEvent[]> {
  type Row = { sequence: number; at: number; type: RunEvent['type']; data: string }
  const rows = await session.all<Row>(eventsAfterSql, [runId, sequence, limit])
  return rows.map((row) => ({ ...row, data: JSON.parse(row.data) }))
}
