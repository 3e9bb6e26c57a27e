/** What a worker claims: which run is started next, and what its worker is given of it. */

import type { Transaction } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables.ts'
import type { ContextLease } from '../browser-contexts/context-lease.ts'
import type { WaitingRun } from './context-waiting.ts'
import type { Dispatch } from './dispatcher.ts'
import type { PersistContext } from './run.ts'
import { appendEvent } from './runs.sql.ts'

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
  hold: ContextLease | null
  /** When it could have started first. */
  availableAt: number
  /** The `traceparent` of whoever queued it. */
  traceContext: string | null
}

const isClaimable = `status = 'queued' AND delayed = 0 AND waits_for_context = 0 AND (job_id IS NULL OR job_id = ?)
  AND (expires_at IS NULL OR expires_at > ? OR attempts > 0)`

/** As a value: as a condition, PostgreSQL may look for the id among all that wait, in the index that has only those. */
const claimable = `CASE WHEN ${isClaimable} THEN 1 ELSE 0 END`

const claimSql = `UPDATE runs SET status = 'running', reason = NULL, attempts = attempts + 1, workflow_version = ?,
  started_at = COALESCE(started_at, ?), worker_id = ?, lease_expires_at = ?, job_id = ?, job_retry_count = ?
  WHERE id = ? AND ${claimable} = 1`

const claimableSql = `SELECT id, browser_context_id, persist_context, ${claimable} AS claimable
  FROM runs WHERE id = ?`

interface Taking {
  ticket: Dispatch
  workflow: Claimable
  workerId: string
  at: number
  /** When the lease ends. */
  until: number
}

/**
 * The run of the ticket, if it can be started still: it may have been cancelled or have expired since it was offered. One
 * that another transaction changes is waited for: it may be queued again in this moment, and needs its job then.
 */
export async function findClaimable(tx: Transaction, { ticket: { runId, jobId }, at }: Taking) {
  type Row = WaitingRun & { claimable: 0 | 1 }
  const [run] = await tx.all<Row>(`${claimableSql} ${tx.forUpdate}`, [jobId, at, runId])
  return run?.claimable ? run : undefined
}

/** Starts an attempt of a run that has no browser context, in the transaction that chose it. */
export async function takeWithoutContext(tx: Transaction, taking: Taking): Promise<Claim | undefined> {
  const row = await start(tx, taking, 'AND browser_context_id IS NULL')
  return row && claimOf(tx, taking, row, null)
}

/** Starts an attempt of the run under a lease, in the transaction that chose it. */
export async function startAttempt(tx: Transaction, taking: Taking, hold: ContextLease | null): Promise<Claim> {
  const row = await start(tx, taking, '')
  if (!row) throw new Error(`Run ${taking.ticket.runId} vanished while it was claimed.`)
  return claimOf(tx, taking, row, hold)
}

async function start(tx: Transaction, { ticket, workflow, workerId, at, until }: Taking, condition: string) {
  const { runId, jobId, jobRetryCount } = ticket
  const values = [workflow.version, at, workerId, until, jobId, jobRetryCount, runId, jobId, at]
  const [row] = await tx.all<RunsTable>(`${claimSql} ${condition} RETURNING *`, values)
  return row
}

async function claimOf(
  tx: Transaction,
  { workerId, at }: Taking,
  row: RunsTable,
  hold: ContextLease | null,
): Promise<Claim> {
  const { id, attempts } = row
  await appendEvent(tx, id, { at, type: 'status', data: { status: 'running', attempt: attempts, reason: null } })
  const steps = attempts === 1 ? [] : await stepsOf(tx, id)
  return {
    runId: id,
    workerId,
    attempt: attempts,
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

async function stepsOf({ query }: Transaction, runId: string) {
  return query.selectFrom('run_steps').select(['name', 'value']).where('run_id', '=', runId).execute()
}
