/** Finishes attempts that succeeded, any number in one transaction. */
import type { NewEvent } from '../../storage/run-statements.ts'
import type { Transaction } from '../../storage/store.ts'
import { type Lease, lastProgress } from './attempts.ts'
import type { Report } from './run.ts'
import { type FinishedRun, toFinishedRun } from './run-state.ts'
import { statusReport, toNewEvent } from './runs.sql.ts'

/** A successful attempt to finish, and its last events. */
export interface Success {
  lease: Lease
  output: unknown
  reports: readonly Report[]
}

/**
 * Finishes runs whose attempts succeeded and that nothing else depends on: most runs. Returns `undefined` for others,
 * and for lost leases.
 */
export async function finishSuccesses(
  tx: Transaction,
  successes: readonly Success[],
  at: number,
): Promise<(FinishedRun | undefined)[]> {
  // Two attempts of a run may arrive together when the worker lost the lease of the first: only the last may count.
  const last = new Map<string, Success>()
  for (const success of successes) {
    const other = last.get(success.lease.runId)
    if (!other || other.lease.attempt < success.lease.attempt) last.set(success.lease.runId, success)
  }
  // In order, as all transactions lock runs, which prevents deadlocks.
  const sorted = [...last.values()].sort((a, b) => (a.lease.runId < b.lease.runId ? -1 : 1))
  const attempts = sorted.map(({ lease, output, reports }) => {
    const { runId: id, attempt, workerId } = lease
    return { id, attempt, workerId, finishedAt: at, output: JSON.stringify(output), progress: lastProgress(reports) }
  })
  const events = sorted.flatMap(({ lease, reports }): NewEvent[] =>
    [...reports, statusReport(lease.attempt, 'succeeded', null, at)].map((each) => toNewEvent(lease.runId, each)),
  )
  const rows = await tx.statements.finishRuns(tx, attempts, events)
  const byId = new Map(rows.map((row) => [row.id, toFinishedRun(row, { status: 'succeeded', reason: null }, at)]))
  return successes.map((each) => (last.get(each.lease.runId) === each ? byId.get(each.lease.runId) : undefined))
}
