/**
 * Erasing what browser contexts held, a portion in each transaction. A context that is not erased at once is marked: from
 * then on nobody sees it. Should the process that erases it die, upkeep does the rest.
 */
import { type PurgeTarget, takeBatch } from '../../storage/purge-target.ts'
import type { Transaction } from '../../storage/store.ts'

const versionsSql = `SELECT id, size_bytes FROM browser_context_versions WHERE browser_context_id = ?
  ORDER BY version DESC LIMIT 100`
const eraseVersionSql = 'DELETE FROM browser_context_versions WHERE id = ?'
const moreSql = 'SELECT 1 AS one FROM browser_context_versions WHERE browser_context_id = ? LIMIT 1'
/** No context that anyone makes has a control character in its name. */
const markSql = `UPDATE browser_contexts SET deleted_at = COALESCE(deleted_at, ?), name = ?,
  version_id = NULL, held_by_run_id = NULL WHERE id = ?`
const forgetSql = 'DELETE FROM browser_contexts WHERE id = ?'

const leftSql = `SELECT id FROM browser_contexts WHERE deleted_at <= ? ORDER BY deleted_at LIMIT 1`
const unfinishedSql = `SELECT id, size_bytes FROM browser_context_versions
  WHERE version IS NULL AND created_at <= ? ORDER BY created_at LIMIT 100`

/** Whoever erases a context has made a step by then, or is dead. */
const leftMilliseconds = 60 * 1000

/** A writer that has not finished by then is dead. */
const unfinishedMilliseconds = 60 * 60 * 1000

interface Erased {
  id: string
  size_bytes: number
}

/** Erases the newest versions of the context, and the context with the last of them. Returns whether there are more. */
export async function eraseBatch(tx: Transaction, contextId: string, at: number): Promise<boolean> {
  await erase(tx, await tx.all<Erased>(versionsSql, [contextId]))
  const more = (await tx.all(moreSql, [contextId])).length > 0
  await tx.all(more ? markSql : forgetSql, more ? [at, `\n${contextId}`, contextId] : [contextId])
  return more
}

/** What was written of versions by writers that have died. */
export function unfinishedVersions(now: () => number): PurgeTarget {
  const oldest = (tx: Transaction) => tx.all<Erased>(unfinishedSql, [now() - unfinishedMilliseconds])
  return {
    next: async (tx) => (await oldest(tx))[0]?.id,
    remove: async (tx) => erase(tx, await oldest(tx)),
  }
}

/** Contexts whose erasure was begun by a process that has died. */
export function unfinishedErasures(now: () => number): PurgeTarget {
  const first = async (tx: Transaction) => (await tx.all<{ id: string }>(leftSql, [now() - leftMilliseconds]))[0]?.id
  return {
    next: async (tx) => {
      const contextId = await first(tx)
      const [version] = contextId === undefined ? [] : await tx.all<Erased>(versionsSql, [contextId])
      return version?.id ?? contextId
    },
    remove: async (tx) => {
      const contextId = await first(tx)
      if (contextId !== undefined) await eraseBatch(tx, contextId, now())
    },
  }
}

async function erase(tx: Transaction, versions: readonly Erased[]): Promise<void> {
  for (const { id } of takeBatch(versions)) await tx.all(eraseVersionSql, [id])
}
