/** What a worker claims: which run is started next, and what its worker is given of it. */
import type { Hold } from '../browser-contexts/hold.ts'
import type { Session } from '../storage/store.ts'
import type { RunsTable } from '../storage/tables.ts'
import type { PersistContext } from './run.ts'
import { appendEvent, countRunning } from './store.ts'

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
}

/** One that has not started in time is not started any more, even before it is marked as expired. */
const headSql = `SELECT id, priority, browser_context_id, persist_context FROM runs
  WHERE status = 'queued' AND delayed = 0 AND waits_for_context = 0 AND workflow_id = ?
  AND (expires_at IS NULL OR expires_at > ? OR attempts > 0) ORDER BY priority DESC, id LIMIT 1`

const claimSql = `UPDATE runs SET status = 'running', reason = NULL, attempts = attempts + 1, workflow_version = ?,
  started_at = COALESCE(started_at, ?), worker_id = ?, lease_expires_at = ?
  WHERE id = ? RETURNING *`

interface Head {
  id: string
  priority: number
  browser_context_id: string | null
  persist_context: string | null
}

/**
 * The run to start next. One look-up in the index of ready runs for each workflow below its limit: a single query
 * over all of them would read past every run of a workflow that is at its limit.
 */
export async function bestOf(session: Session, workflows: readonly Claimable[], now: number) {
  const limited = workflows.some((workflow) => workflow.concurrencyLimit !== null)
  const running = limited ? await countRunning(session) : undefined
  let best: (Head & { workflow: Claimable }) | undefined
  for (const workflow of workflows) {
    if (workflow.concurrencyLimit !== null && (running?.get(workflow.id) ?? 0) >= workflow.concurrencyLimit) continue
    const [head] = await session.all<Head>(headSql, [workflow.id, now])
    if (!head) continue
    const before = !best || head.priority > best.priority || (head.priority === best.priority && head.id < best.id)
    if (before) best = { ...head, workflow }
  }
  return best
}

/** Starts an attempt of the run under a lease, in the transaction that chose it. */
export async function take(
  session: Session,
  { id, workflow, hold }: { id: string; workflow: Claimable; hold: Hold | null },
  { workerId, at, until }: { workerId: string; at: number; until: number },
): Promise<Claim> {
  const [row] = await session.all<RunsTable>(claimSql, [workflow.version, at, workerId, until, id])
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
  }
}

async function stepsOf({ query }: Session, runId: string) {
  return query.selectFrom('run_steps').select(['name', 'value']).where('run_id', '=', runId).execute()
}
