/**
 * A run's hold on its browser context: while it lasts, no other run or caller gives the context a new version. Taken in
 * the transaction that claims the run, let go in the one that ends its attempt.
 */
import type { Transaction } from '../../storage/store.ts'

export interface ContextLease {
  contextId: string
  runId: string
  /** Grows with every hold on the context: a version counts only under the latest one. */
  fence: number
}

const holdSql = `UPDATE browser_contexts SET held_by_run_id = ?, fence = fence + 1, last_used_at = ?
  WHERE id = ? AND held_by_run_id IS NULL AND deleted_at IS NULL RETURNING fence`
const useSql = 'UPDATE browser_contexts SET last_used_at = ? WHERE id = ?'
const holderSql = 'SELECT held_by_run_id FROM browser_contexts WHERE id = ?'
const letGoSql = `UPDATE browser_contexts SET held_by_run_id = NULL WHERE id = ? AND held_by_run_id = ? RETURNING id`

/** Takes hold of the context for the run; `undefined` when another run has it, or it was deleted. */
export async function acquireContextLease(
  tx: Transaction,
  contextId: string,
  runId: string,
  at: number,
): Promise<ContextLease | undefined> {
  const [row] = await tx.all<{ fence: number }>(holdSql, [runId, at, contextId])
  return row && { contextId, runId, fence: row.fence }
}

/** Notes that a run was started with the context, which only reads it. */
export async function recordContextUse(tx: Transaction, contextId: string, at: number): Promise<void> {
  await tx.all(useSql, [at, contextId])
}

/** Whether a run holds the context. */
export async function isContextLeased(tx: Transaction, contextId: string): Promise<boolean> {
  const [row] = await tx.all<{ held_by_run_id: string | null }>(holderSql, [contextId])
  return (row?.held_by_run_id ?? null) !== null
}

/** Lets go of the context; returns whether the run held it. */
export async function releaseContextLease(tx: Transaction, contextId: string, runId: string): Promise<boolean> {
  const [row] = await tx.all<{ id: string }>(letGoSql, [contextId, runId])
  return row !== undefined
}
