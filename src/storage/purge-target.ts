/** Rows that are purged in batches, and the size of a batch. */
import { setTimeout as delay } from 'node:timers/promises'
import { inList } from './statement-values.ts'
import { ignoreUnavailable, type Store, type Transaction } from './store.ts'

export interface PurgeTarget {
  /** Whether other writes may run concurrently: safe where the rows no longer change. */
  concurrent?: boolean
  /** Returns the id of the next row to delete; `undefined` when there is none. */
  next(tx: Transaction): Promise<string | undefined>
  /** Deletes a batch that begins with the next row. */
  remove(tx: Transaction): Promise<void>
}

export const dayMilliseconds = 24 * 60 * 60 * 1000

const purgedRowsMax = 500

/** Small rows on which no others depend. @param find returns the next ones, at most `limit`. */
export function purgeById(
  table: 'audit_log' | 'bulk_actions' | 'webhook_deliveries',
  find: (tx: Transaction, limit: number) => Promise<{ id: string }[]>,
): PurgeTarget {
  return {
    concurrent: true,
    next: async (tx) => (await find(tx, 1))[0]?.id,
    remove: async (tx) => {
      const ids = (await find(tx, purgedRowsMax)).map(({ id }) => id)
      if (ids.length === 0) return
      const { marks, values } = inList(ids)
      await tx.all(`DELETE FROM ${table} WHERE id IN (${marks})`, values)
    },
  }
}

/** With `secure_delete`, deleting 1 MB blocks other writers for 12 to 20 ms. A single row may be larger. */
const purgeBytesMax = 5 * 1024 * 1024

/** Bytes of the items of a page, which has at least one item. */
const pageBytesMax = 1024 * 1024

/** Returns the leading rows that fit into `bytesMax` together, and at least one. */
export function takeBatch<Row extends { size_bytes: number }>(
  rows: readonly Row[],
  bytesMax: number = purgeBytesMax,
): Row[] {
  let bytes = 0
  return rows.filter(({ size_bytes }, index) => {
    bytes += size_bytes
    return index === 0 || bytes <= bytesMax
  })
}

/** The leading rows that a page may have together. */
export function boundPage<Row extends { size_bytes: number }>(rows: readonly Row[]): Row[] {
  return takeBatch(rows, pageBytesMax)
}

/** Lets other processes write between batches. */
const eraseBreakMilliseconds = 10

/**
 * Erases batch after batch while there are more, then scrubs the files. If the store becomes unavailable, maintenance
 * erases the rest, and the next deletion scrubs the files.
 */
export async function eraseRest(store: Store, hasMore: boolean, eraseBatch: (tx: Transaction) => Promise<boolean>) {
  const erase = async () => {
    for (let isLeft = hasMore; isLeft; ) {
      await delay(eraseBreakMilliseconds)
      isLeft = await store.write(eraseBatch)
    }
    await store.scrub()
  }
  await erase().catch(ignoreUnavailable)
}
