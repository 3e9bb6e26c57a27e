/** What a worker claims: which run is started next, and what its worker is given of it. */
import type { Hold } from '../browser-contexts/hold.ts'
import type { Session } from '../storage/store.ts'
import type { RunsTable } from '../storage/tables.ts'
import type { WaitingRun } from './context-turns.ts'
import type { Ticket } from './handout.ts'
import type { PersistContext } from './run.ts'
import { appendEvent } from './store.ts'

/** A workflow as a worker has it; the queue gives out no run of any other. */
export interface Claimable {
  id: string
  version: string
  concurrencyLimit: number | null
  retry: { maxAttempts: number; backoffSeconds: number; backoffFactor: number }
}

/** A worker's hold on one attempt of a run. */
export interface Lease {
  runId: string
  workerId: string
  /** The attempt's number, and the fencing token. */
  attempt: number
}

export interface Claim extends Lease {
  accountId: string
  workflowId: string
  variables: Record<string, unknown>
  secrets: Uint8Array | null
  /** Values of the steps that earlier attempts finished, encrypted. */
  steps: { name: string; value: Uint8Array }[]
  browserContextId: string | null
  persistContext: PersistContext
  /** What the run may change its browser context under; `null` when it may not. */
  hold: Hold | null
  /** When it could have started first. */
  availableAt: number
  /** The `traceparent` of whoever queued it. */
  traceContext: string | null
}

const claimSql = `UPDATE runs SET status = 'running', reason = NULL, attempts = attempts + 1, workflow_version = ?,
  started_at = COALESCE(started_at, ?), worker_id = ?, lease_expires_at = ?, job_id = ?, job_retry_count = ?
  WHERE id = ? AND status = 'queued' RETURNING *`

const claimableSql = `SELECT id, browser_context_id, persist_context FROM runs WHERE id = ? AND status = 'queued'
  AND (job_id IS NULL OR job_id = ?) AND (expires_at IS NULL OR expires_at > ? OR attempts > 0)`

/** The run of the ticket, if it can be started still: it may have been cancelled or have expired since it was offered. */
export async function findClaimable(session: Session, { runId, jobId }: Ticket, now: number) {
  const [run] = await session.all<WaitingRun>(`${claimableSql} ${session.forUpdate}`, [runId, jobId, now])
  return run
}

/** Starts an attempt of the run under a lease, in the transaction that chose it. */
export async function take(
  session: Session,
  { ticket, workflow, hold }: { ticket: Ticket; workflow: Claimable; hold: Hold | null },
  { workerId, at, until }: { workerId: string; at: number; until: number },
): Promise<Claim> {
  const { runId: id, jobId, jobRetryCount } = ticket
  const values = [workflow.version, at, workerId, until, jobId, jobRetryCount, id]
  const [row] = await session.all<RunsTable>(claimSql, values)
  if (!row) throw new Error(`Run ${id} vanished while it was claimed.`)
  await appendEvent(session, id, {
    at,
    type: 'status',
    data: { status: 'running', attempt: row.attempts, reason: null },
  })
  const steps = row.attempts === 1 ? [] : await stepsOf(session, id)
  return {
    runId: id,
    workerId,
    attempt: row.attempts,
    accountId: row.account_id,
    workflowId: row.workflow_id,
    variables: JSON.parse(row.variables),
    secrets: row.secrets,
    steps,
    browserContextId: row.browser_context_id,
    persistContext: (row.persist_context as PersistContext | null) ?? 'never',
    hold,
    availableAt: row.available_at ?? row.created_at,
    traceContext: row.trace_context,
  }
}

async function stepsOf({ query }: Session, runId: string) {
  return query.selectFrom('run_steps').select(['name', 'value']).where('run_id', '=', runId).execute()
}
