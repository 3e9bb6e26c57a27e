/**
 * Erases browser contexts with all their versions, one batch per transaction. The first transaction makes the context
 * invisible. If the process dies, maintenance erases the rest.
 */
import { type PurgeTarget, takeBatch } from '../../storage/purge-target.ts'
import type { Transaction } from '../../storage/store.ts'
import { lockSignIn } from './sign-ins.sql.ts'
import { eraseSignIn } from './sign-ins.ts'

const versionsSql = `SELECT id, size_bytes FROM browser_context_versions WHERE browser_context_id = ?
  ORDER BY version DESC LIMIT 100`
const deleteVersionSql = 'DELETE FROM browser_context_versions WHERE id = ?'
const hasVersionsSql = 'SELECT 1 AS one FROM browser_context_versions WHERE browser_context_id = ? LIMIT 1'
/** The new name frees the old one. It cannot be in use, because names have no control characters. */
const markSql = `UPDATE browser_contexts SET deleted_at = COALESCE(deleted_at, ?), name = ?,
  version_id = NULL, held_by_run_id = NULL WHERE id = ?`
const deleteSql = 'DELETE FROM browser_contexts WHERE id = ?'

const abandonedSql = `SELECT id FROM browser_contexts WHERE deleted_at <= ? ORDER BY deleted_at LIMIT 1`
const uncommittedSql = `SELECT id, size_bytes FROM browser_context_versions
  WHERE version IS NULL AND created_at <= ? ORDER BY created_at LIMIT 100`

/** After this time without progress, the process that erases a context has died. */
const abandonedMilliseconds = 60 * 1000
/** After this time, the process that staged a version has died. */
const uncommittedMilliseconds = 60 * 60 * 1000

type VersionSize = { id: string; size_bytes: number }

/** Erases the newest versions, and the context with its last version. Returns whether versions remain. */
export async function eraseBatch(tx: Transaction, contextId: string, at: number): Promise<boolean> {
  const signIn = await lockSignIn(tx, contextId)
  if (signIn) await eraseSignIn(tx, signIn, at)
  await deleteVersions(tx, await tx.all<VersionSize>(versionsSql, [contextId]))
  const hasMore = (await tx.all(hasVersionsSql, [contextId])).length > 0
  await tx.all(hasMore ? markSql : deleteSql, hasMore ? [at, `\n${contextId}`, contextId] : [contextId])
  return hasMore
}

/** Staged versions whose writers have died. */
export function unfinishedVersions(now: () => number): PurgeTarget {
  const oldest = (tx: Transaction) => tx.all<VersionSize>(uncommittedSql, [now() - uncommittedMilliseconds])
  return {
    next: async (tx) => (await oldest(tx))[0]?.id,
    remove: async (tx) => deleteVersions(tx, await oldest(tx)),
  }
}

/** Contexts whose erasing processes have died. */
export function unfinishedErasures(now: () => number): PurgeTarget {
  const findFirst = async (tx: Transaction) => {
    const [context] = await tx.all<{ id: string }>(abandonedSql, [now() - abandonedMilliseconds])
    return context?.id
  }
  return {
    next: async (tx) => {
      const contextId = await findFirst(tx)
      const [version] = contextId === undefined ? [] : await tx.all<VersionSize>(versionsSql, [contextId])
      return version?.id ?? contextId
    },
    remove: async (tx) => {
      const contextId = await findFirst(tx)
      if (contextId !== undefined) await eraseBatch(tx, contextId, now())
    },
  }
}

async function deleteVersions(tx: Transaction, versions: readonly VersionSize[]): Promise<void> {
  for (const { id } of takeBatch(versions)) await tx.all(deleteVersionSql, [id])
}
