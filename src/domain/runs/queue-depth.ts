/** How many runs wait and run over all accounts, and how long: from indexes that hold unfinished runs alone. */
import type { Transaction } from '../../storage/store.ts'
import type { WaitingFor } from './run.ts'

export interface QueueDepth {
  waiting: { workflowId: string; waitingFor: WaitingFor; count: number }[]
  running: { workflowId: string; count: number }[]
  /** For each workflow with runs that wait for a worker or a limit, when the one that was queued first became available. */
  oldest: { workflowId: string; since: number }[]
}

/** How many runs may run at the same time. */
export interface ConcurrencyLimits {
  ofWorkflow(workflowId: string): number
  ofAccount: number
}

interface Counted {
  account_id: string
  workflow_id: string
  count: number
}

const readySql = `SELECT account_id, workflow_id, COUNT(*) AS count, MIN(id) AS first_id FROM runs
  WHERE status = 'queued' AND delayed = 0 AND waits_for_context = 0 GROUP BY account_id, workflow_id`
const runningSql = `SELECT account_id, workflow_id, COUNT(*) AS count FROM runs
  WHERE status = 'running' GROUP BY account_id, workflow_id`
const delayedSql = `SELECT workflow_id, COUNT(*) AS count FROM runs
  WHERE status = 'queued' AND delayed = 1 GROUP BY workflow_id`
const waitsForContextSql = `SELECT workflow_id, COUNT(*) AS count FROM runs
  WHERE status = 'queued' AND waits_for_context = 1 GROUP BY workflow_id`

/** A run that was handed back is available since its last event of status. */
const sinceSql = `SELECT COALESCE(available_at, created_at) AS available_at,
  (SELECT at FROM run_events WHERE run_id = runs.id AND type = 'status' ORDER BY sequence DESC LIMIT 1) AS queued_at
  FROM runs WHERE id = ?`

/**
 * What SQLite counts, the whole process waits for: a hundred thousand ready runs take 10 ms. Finished ones, of which
 * there were two million beside them, take nothing.
 *
 * Runs go on meanwhile: one that changes its status between two counts may be in both or in none.
 */
export async function queueDepth(tx: Transaction, limits: ConcurrencyLimits): Promise<QueueDepth> {
  const ready = await tx.all<Counted & { first_id: string }>(readySql, [])
  const running = await tx.all<Counted>(runningSql, [])
  const delayed = await tx.all<Omit<Counted, 'account_id'>>(delayedSql, [])
  const waitsForContext = await tx.all<Omit<Counted, 'account_id'>>(waitsForContextSql, [])
  const byWorkflow = summed(running, ({ workflow_id }) => workflow_id)
  const byAccount = summed(running, ({ account_id }) => account_id)
  const isAtLimit = ({ workflow_id, account_id }: Counted) =>
    (byWorkflow.get(workflow_id) ?? 0) >= limits.ofWorkflow(workflow_id) ||
    (byAccount.get(account_id) ?? 0) >= limits.ofAccount
  const waiting = [
    ...told('concurrencyLimit', ready.filter(isAtLimit)),
    ...told(
      'worker',
      ready.filter((each) => !isAtLimit(each)),
    ),
    ...told('delay', delayed),
    ...told('browserContext', waitsForContext),
  ]
  return {
    waiting,
    running: [...byWorkflow].map(([workflowId, count]) => ({ workflowId, count })),
    oldest: await oldestOf(tx, ready),
  }
}

/** One look-up for each workflow: what all ready runs are available since stands in no index. */
async function oldestOf(tx: Transaction, ready: readonly { workflow_id: string; first_id: string }[]) {
  const first = new Map<string, string>()
  for (const { workflow_id, first_id } of ready) {
    const earlier = first.get(workflow_id)
    if (earlier === undefined || first_id < earlier) first.set(workflow_id, first_id)
  }
  const oldest: QueueDepth['oldest'] = []
  for (const [workflowId, id] of first) {
    const [row] = await tx.all<{ available_at: number; queued_at: number | null }>(sinceSql, [id])
    if (row) oldest.push({ workflowId, since: Math.max(row.available_at, row.queued_at ?? 0) })
  }
  return oldest
}

function told(waitingFor: WaitingFor, counted: readonly { workflow_id: string; count: number }[]) {
  const counts = summed(counted, ({ workflow_id }) => workflow_id)
  return [...counts].map(([workflowId, count]) => ({ workflowId, waitingFor, count }))
}

function summed<Row extends { count: number }>(rows: readonly Row[], keyOf: (row: Row) => string): Map<string, number> {
  const sums = new Map<string, number>()
  for (const row of rows) sums.set(keyOf(row), (sums.get(keyOf(row)) ?? 0) + row.count)
  return sums
}
