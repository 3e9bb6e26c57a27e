/** Cancels runs within a transaction. */
import { type CancelledRun, cancelUnfinished } from '../../storage/runs/run-statements.ts'
import { findAttachedChildren } from '../../storage/runs/wait-statements.ts'
import { parseId } from '../../storage/statement-values.ts'
import type { Transaction } from '../../storage/store.ts'
import { attemptsOf } from '../runs/run.ts'
import { type FinishedRun, toFinishedRun } from '../runs/run-state.ts'
import { resumeNextOfGroups } from './limits.ts'
import { statusReport, toNewEvent } from './runs.sql.ts'

/** The API key or the user that cancels a run. */
export interface Canceller {
  apiKeyId?: string | null
  userId?: string | null
}

/**
 * Cancels the queued and waiting runs, requests the running ones to stop, and starts the next runs of their concurrency groups. The
 * runs that they have called end with them, unless they are detached.
 * Returns the runs that it has changed: neither finished runs nor those that were cancelled before.
 */
export async function cancelRuns(
  tx: Transaction,
  accountId: string,
  ids: readonly string[],
  { apiKeyId = null, userId = null }: Canceller,
  at: number,
): Promise<CancelledRun[]> {
  const runIds = ids.flatMap((id) => parseId(id) ?? [])
  if (runIds.length === 0) return []
  await tx.statements.lockCancelled(tx, runIds)
  const cancelled = await cancelUnfinished(tx, accountId, runIds, { apiKeyId, userId }, at)
  if (cancelled.length === 0) return []
  const events = cancelled.map(({ id, status, ...row }) =>
    toNewEvent(id, statusReport(attemptsOf(row), status, 'cancelRequested', at)),
  )
  await tx.statements.appendEvents(tx, events)
  await resumeNextOfGroups(tx, cancelled.filter(isCancelled))
  const callers = cancelled.filter(({ has_waits }) => has_waits === 1)
  if (callers.length === 0) return cancelled
  const called = await findAttachedChildren(
    tx,
    callers.map(({ id }) => id),
  )
  return [...cancelled, ...(await cancelRuns(tx, accountId, called, { apiKeyId, userId }, at))]
}

const isCancelled = ({ status }: CancelledRun) => status === 'cancelled'

/** Keeps the runs that were cancelled at once: a running one ends later. */
export function toFinishedRuns(cancelled: readonly CancelledRun[], at: number): FinishedRun[] {
  const state = { status: 'cancelled', reason: 'cancelRequested' } as const
  return cancelled.filter(isCancelled).map((row) => toFinishedRun(row, state, at))
}
