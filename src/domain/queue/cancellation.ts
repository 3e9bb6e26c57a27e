/** Cancels a run within a transaction. */
import type { Transaction } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables/run-tables.ts'
import { isFinal, type RunStatus } from '../runs/run-state.ts'
import { appendStatus, lockRun } from './runs.sql.ts'

/** The API key or the user that cancels a run. */
export interface Canceller {
  apiKeyId?: string | null
  userId?: string | null
}

/**
 * Cancels a queued run, and requests a running one to stop. Returns the row as it was before, or `undefined` if there is
 * nothing to cancel. The caller starts the next runs of a queued run's concurrency group.
 */
export async function cancelRow(
  tx: Transaction,
  accountId: string,
  id: string,
  { apiKeyId = null, userId = null }: Canceller,
  at: number,
): Promise<RunsTable | undefined> {
  const row = await lockRun(tx, accountId, id)
  if (!row || isFinal(row.status as RunStatus) || row.cancel_requested === 1) return undefined
  const isQueued = row.status === 'queued'
  if (isQueued) await tx.all(tx.statements.cancelQueued, [apiKeyId, userId, at, row.id])
  else await tx.all(tx.statements.requestCancellation, [apiKeyId, userId, row.id])
  await appendStatus(tx, row, isQueued ? 'cancelled' : row.status, 'cancelRequested', at)
  return row
}
