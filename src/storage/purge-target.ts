/** How much of what is large or much is removed in one transaction. */
import type { Transaction } from './store.ts'

/**
 * Overwriting what is deleted took 12 to 20 ms for a megabyte, in which no process writes anything else. A single row
 * may be larger.
 */
export const purgeBytesMax = 5 * 1024 * 1024

/** The first of the rows: as many as have that much together, and one at least. */
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

export const dayMilliseconds = 24 * 60 * 60 * 1000

/** What is no longer wanted and is removed by and by. */
export interface PurgeTarget {
  /** Whether others may write meanwhile: nobody changes any more what is removed. */
  concurrent?: boolean
  /** Names what is removed next; `undefined` when there is nothing. */
  next(tx: Transaction): Promise<string | undefined>
  /** Removes a portion, from what is next on. */
  remove(tx: Transaction): Promise<void>
}
