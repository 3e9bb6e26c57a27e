/**
 * Runs that change the same browser context take turns. One that finds it held waits outside the queue's index, so that
 * workers do not look at it again and again, and comes back when it is let go.
 */

import type { Transaction } from '../../storage/store.ts'
import {
  acquireContextLease,
  type ContextLease,
  isContextLeased,
  recordContextUse,
  releaseContextLease,
} from '../browser-contexts/context-lease.ts'
import { type Dispatcher, type ReadyRun, readyColumns } from './dispatcher.ts'

const waitSql = 'UPDATE runs SET waits_for_context = 1 WHERE id = ?'

/** The first of those that wait for a context. */
const nextSql = `UPDATE runs SET waits_for_context = 0 WHERE id = (
  SELECT id FROM runs WHERE status = 'queued' AND waits_for_context = 1 AND browser_context_id = ?
  ORDER BY priority DESC, id LIMIT 1) AND waits_for_context = 1 RETURNING ${readyColumns}`

/** All of those that wait for a context. */
const everySql = `UPDATE runs SET waits_for_context = 0
  WHERE status = 'queued' AND waits_for_context = 1 AND browser_context_id = ?
  RETURNING ${readyColumns}`

/** One look into the index for each context: with SELECT DISTINCT, SQLite read past every run that waits. */
const waitedForSql = `WITH RECURSIVE waited (id) AS (
    SELECT MIN(browser_context_id) FROM runs WHERE status = 'queued' AND waits_for_context = 1
    UNION ALL
    SELECT (SELECT MIN(browser_context_id) FROM runs
      WHERE status = 'queued' AND waits_for_context = 1 AND browser_context_id > waited.id)
    FROM waited WHERE id IS NOT NULL)
  SELECT waited.id, browser_contexts.id IS NULL AS deleted FROM waited
  LEFT JOIN browser_contexts ON browser_contexts.id = waited.id AND deleted_at IS NULL
  WHERE waited.id IS NOT NULL AND held_by_run_id IS NULL LIMIT 100`

export interface WaitingRun {
  id: string
  browser_context_id: string | null
  persist_context: string | null
}

/**
 * What the run that is about to start may change its browser context under: a hold, or `null` when it only reads it or
 * has none. `wait` when another run holds it; the run is out of the queue's way then.
 */
export async function leaseContextFor(
  tx: Transaction,
  run: WaitingRun,
  at: number,
): Promise<ContextLease | null | 'wait'> {
  if (run.browser_context_id === null) return null
  if (run.persist_context === 'never') {
    await recordContextUse(tx, run.browser_context_id, at)
    return null
  }
  const hold = await acquireContextLease(tx, run.browser_context_id, run.id, at)
  if (hold) return hold
  // One that was deleted cannot be waited for: the run is told so when it asks for its browser.
  if (!(await isContextLeased(tx, run.browser_context_id))) return null
  await tx.all(waitSql, [run.id])
  return 'wait'
}

/** Lets go of the run's browser context, for the next one that waits for it. */
export async function passOnContext(
  tx: Transaction,
  handout: Dispatcher,
  contextId: string,
  runId: string,
): Promise<void> {
  if (await releaseContextLease(tx, contextId, runId)) {
    await handout.unpark(tx, await tx.all<ReadyRun>(nextSql, [contextId]))
  }
}

/** Whether there are contexts that runs wait for and none holds: deleted ones, or the next run has not started. */
export async function anyFreeContextWaitedFor(tx: Transaction): Promise<boolean> {
  return (await freeContextsWaitedFor(tx)).length > 0
}

/** Gives the next run of each such context its turn; what waits for a deleted one has nothing to wait for. */
export async function passOnFreeContexts(tx: Transaction, handout: Dispatcher): Promise<void> {
  for (const { id, deleted } of await freeContextsWaitedFor(tx)) {
    await handout.unpark(tx, await tx.all<ReadyRun>(deleted ? everySql : nextSql, [id]))
  }
}

async function freeContextsWaitedFor(tx: Transaction): Promise<{ id: string; deleted: number }[]> {
  return tx.all(waitedForSql, [])
}
