/** Removes entries of the audit log after their time, a portion in each transaction. */

import { dayMilliseconds, type PurgeTarget } from '../storage/purge-target.ts'
import { inList } from '../storage/statement-values.ts'
import type { Transaction } from '../storage/store.ts'

/** Bounds how long the write lock is held. */
const rowsMax = 500

const oldestSql = 'SELECT id FROM audit_log WHERE at <= ? ORDER BY at, id LIMIT ?'

export function oldEntries(retentionDays: number, now: () => number): PurgeTarget {
  const oldest = (tx: Transaction, limit: number) =>
    tx.all<{ id: string }>(oldestSql, [now() - retentionDays * dayMilliseconds, limit])
  return {
    concurrent: true,
    next: async (tx) => (await oldest(tx, 1))[0]?.id,
    remove: async (tx) => {
      const ids = (await oldest(tx, rowsMax)).map(({ id }) => id)
      if (ids.length === 0) return
      const { marks, values } = inList(ids)
      await tx.all(`DELETE FROM audit_log WHERE id IN (${marks})`, values)
    },
  }
}
