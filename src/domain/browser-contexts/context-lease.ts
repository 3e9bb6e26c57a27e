/**
 * A run's lease on its browser context, during which no other run or caller can change the context. Acquired in the
 * transaction that claims the run, and released in the transaction that ends its attempt.
 */
import type { Transaction } from '../../storage/store.ts'

export interface ContextLease {
  contextId: string
  runId: string
  /** Fencing token: grows with each lease of the context, and only the latest lease may commit a version. */
  fence: number
}

const acquireSql = `UPDATE browser_contexts SET held_by_run_id = ?, fence = fence + 1, last_used_at = ?
  WHERE id = ? AND held_by_run_id IS NULL AND deleted_at IS NULL RETURNING fence`
const releaseSql = `UPDATE browser_contexts SET held_by_run_id = NULL WHERE id = ? AND held_by_run_id = ? RETURNING id`
const useSql = 'UPDATE browser_contexts SET last_used_at = ? WHERE id = ?'
const holderSql = 'SELECT held_by_run_id FROM browser_contexts WHERE id = ?'

/** Returns `undefined` if another run has the lease, or the context was deleted. */
export async function acquireContextLease(
  tx: Transaction,
  contextId: string,
  runId: string,
  at: number,
): Promise<ContextLease | undefined> {
  const [row] = await tx.all<{ fence: number }>(acquireSql, [runId, at, contextId])
  return row && { contextId, runId, fence: row.fence }
}

/** Returns whether the run had the lease. */
export async function releaseContextLease(tx: Transaction, contextId: string, runId: string): Promise<boolean> {
  const [row] = await tx.all<{ id: string }>(releaseSql, [contextId, runId])
  return row !== undefined
}

/** Records the start of a run that only reads the context. */
export async function recordContextUse(tx: Transaction, contextId: string, at: number): Promise<void> {
  await tx.all(useSql, [at, contextId])
}

export async function isContextLeased(tx: Transaction, contextId: string): Promise<boolean> {
  const [row] = await tx.all<{ held_by_run_id: string | null }>(holderSql, [contextId])
  return (row?.held_by_run_id ?? null) !== null
}
