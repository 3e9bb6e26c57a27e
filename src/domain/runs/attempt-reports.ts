/** What an attempt tells of itself while it runs: the events that it adds to its run. */
import type { Transaction } from '../../storage/store.ts'
import type { Lease } from './claim.ts'
import type { RunEvent } from './run.ts'
import { appendEvent } from './runs.sql.ts'

export type Report = Omit<RunEvent, 'sequence'>

/** Adds the events; the last progress among them becomes the run's. */
export async function record(tx: Transaction, { runId }: Lease, reports: readonly Report[]): Promise<void> {
  for (const report of reports) await appendEvent(tx, runId, report)
  const progress = reports.findLast((report) => report.type === 'progress')
  if (!progress) return
  const { percent, message } = progress.data
  const update = tx.query.updateTable('runs').set({ progress: JSON.stringify({ percent, message }) })
  await update.where('id', '=', runId).execute()
}
