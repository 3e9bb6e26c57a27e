/** Removes entries of the audit log after their time, a portion in each transaction. */
import { inList } from '../storage/lists.ts'
import { dayMilliseconds, type Unwanted } from '../storage/portion.ts'
import type { Session } from '../storage/store.ts'

/** Bounds how long the write lock is held. */
const rowsMax = 500

const oldestSql = 'SELECT id FROM audit_log WHERE at <= ? ORDER BY at, id LIMIT ?'

export function oldEntries(retentionDays: number, now: () => number): Unwanted {
  const oldest = (session: Session, limit: number) =>
    session.all<{ id: string }>(oldestSql, [now() - retentionDays * dayMilliseconds, limit])
  return {
    overlapping: true,
    next: async (session) => (await oldest(session, 1))[0]?.id,
    remove: async (session) => {
      const ids = (await oldest(session, rowsMax)).map(({ id }) => id)
      if (ids.length === 0) return
      const { marks, values } = inList(ids)
      await session.all(`DELETE FROM audit_log WHERE id IN (${marks})`, values)
    },
  }
}
