/**
 * A run's lease on its browser context, during which no other run or caller can change the context. Acquired in the
 * transaction that claims the run, and released in the transaction that ends its attempt.
 */
import type { Transaction } from '../../storage/store.ts'
import type { Flag } from '../../storage/tables/tables.ts'

export interface ContextLease {
  contextId: string
  runId: string
  /** Fencing token: grows with each lease of the context, and only the latest lease may commit a version. */
  fence: number
}

/** What the claim of a run learns of its browser context. */
export interface LeasedContext {
  /** `null` for a run that only reads the context. */
  lease: ContextLease | null
  /** The number of the current version. */
  version: number
  /** Whether the context has a sign-in. */
  hasSignIn: boolean
}

interface ContextState {
  fence: number
  version: number
  has_sign_in: Flag
}

/** A run that signs in has got the lease when it was queued. */
const acquireSql = `UPDATE browser_contexts SET held_by_run_id = ?, fence = fence + 1, last_used_at = ?
  WHERE id = ? AND (held_by_run_id IS NULL OR held_by_run_id = ?) AND deleted_at IS NULL
  RETURNING fence, version, has_sign_in`
const leaseForSignInSql = `UPDATE browser_contexts SET held_by_run_id = ?
  WHERE id = ? AND held_by_run_id IS NULL AND deleted_at IS NULL`
const releaseSql = `UPDATE browser_contexts SET held_by_run_id = NULL WHERE id = ? AND held_by_run_id = ? RETURNING id`
const useSql = 'UPDATE browser_contexts SET last_used_at = ? WHERE id = ? RETURNING fence, version, has_sign_in'
const holderSql = 'SELECT held_by_run_id FROM browser_contexts WHERE id = ?'

/** Returns `undefined` if another run has the lease, or the context was deleted. */
export async function acquireContextLease(
  tx: Transaction,
  contextId: string,
  runId: string,
  at: number,
): Promise<LeasedContext | undefined> {
  const [row] = await tx.all<ContextState>(acquireSql, [runId, at, contextId, runId])
  return row && toLeased(row, { contextId, runId, fence: row.fence })
}

function toLeased({ version, has_sign_in }: ContextState, lease: ContextLease | null): LeasedContext {
  return { lease, version, hasSignIn: has_sign_in === 1 }
}

/** Gives the lease to a run that signs in, before a worker has claimed it. Another run may have it: the claim then waits. */
export async function leaseForSignIn(tx: Transaction, contextId: string, runId: string): Promise<void> {
  await tx.all(leaseForSignInSql, [runId, contextId])
}

/** Returns whether the run had the lease. */
export async function releaseContextLease(tx: Transaction, contextId: string, runId: string): Promise<boolean> {
  const [row] = await tx.all<{ id: string }>(releaseSql, [contextId, runId])
  return row !== undefined
}

/** Records the start of a run that only reads the context. */
export async function recordContextUse(
  tx: Transaction,
  contextId: string,
  at: number,
): Promise<LeasedContext | undefined> {
  const [row] = await tx.all<ContextState>(useSql, [at, contextId])
  return row && toLeased(row, null)
}

export async function isContextLeased(tx: Transaction, contextId: string): Promise<boolean> {
  const [row] = await tx.all<{ held_by_run_id: string | null }>(holderSql, [contextId])
  return (row?.held_by_run_id ?? null) !== null
}
