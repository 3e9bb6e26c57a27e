/** What becomes of a run whose attempt has ended, whoever noticed: its row, its event, its job and its browser context. */
import type { Transaction } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables.ts'
import type { Claimable } from './claim.ts'
import { passOnContext } from './context-waiting.ts'
import type { Dispatcher } from './dispatcher.ts'
import { type FinishedRun, finishedRun } from './run-observer.ts'
import { type Next, nextAfter, type Outcome } from './run-state.ts'
import { appendEvent, forgetSteps } from './runs.sql.ts'

const settleSql = `UPDATE runs SET status = ?, reason = ?, worker_id = NULL, lease_expires_at = NULL, failures = ?,
  losses = ?, delayed = ?, finished_at = ?, available_at = ?, output = ?, error = ? WHERE id = ?`

export function nextOf(
  { cancel_requested, failures, losses }: RunsTable,
  outcome: Outcome,
  retry: Claimable['retry'],
): Next {
  return nextAfter(outcome, { cancelRequested: cancel_requested === 1, failures, losses, retry })
}

/** Writes what becomes of a running run, and the event that tells it; returns it when it has finished. */
export async function completeAttempt(
  tx: Transaction,
  handout: Dispatcher,
  row: RunsTable,
  outcome: Outcome,
  retry: Claimable['retry'],
  at: number,
): Promise<FinishedRun | undefined> {
  const next = nextOf(row, outcome, retry)
  const again = next.status === 'queued'
  const delayed = again && next.delaySeconds > 0
  const succeeded = next.status === 'succeeded' && outcome.kind === 'succeeded'
  await tx.all(settleSql, [
    next.status,
    next.reason,
    row.failures + (outcome.kind === 'failed' ? 1 : 0),
    row.losses + (outcome.kind === 'workerLost' ? 1 : 0),
    delayed ? 1 : 0,
    again ? null : at,
    delayed ? at + Math.round(next.delaySeconds * 1000) : row.available_at,
    succeeded ? JSON.stringify(outcome.output) : row.output,
    outcome.kind === 'failed' ? JSON.stringify(outcome.error) : succeeded ? null : row.error,
    row.id,
  ])
  const data = { status: next.status, attempt: row.attempts, reason: next.reason }
  await appendEvent(tx, row.id, { at, type: 'status', data })
  if (!again) await forgetSteps(tx, row.id)
  if (outcome.kind === 'workerLost' && next.reason === 'workerLost') await handout.lose(tx, row, !again)
  else if (!again) await handout.end(tx, row)
  else {
    await handout.park(tx, row)
    if (!delayed) await handout.unpark(tx, [row])
  }
  if (row.browser_context_id !== null) await passOnContext(tx, handout, row.browser_context_id, row.id)
  return again ? undefined : finishedRun(row, next, at)
}
