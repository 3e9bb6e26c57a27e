/** Lists of values in statements. */
import type { Value } from './store.ts'

/**
 * What stands in `IN (…)` for the values: as many marks as the next power of two, the last value repeated, so that few
 * statements are prepared for lists of every length. Not for empty lists.
 */
export function inList<Item extends Value>(values: readonly Item[]): { marks: string; values: Item[] } {
  const last = values.at(-1)
  if (last === undefined) throw new Error('A list in a statement has at least one value.')
  const length = 2 ** Math.ceil(Math.log2(values.length))
  const padded = [...values, ...Array<Item>(length - values.length).fill(last)]
  return { marks: padded.map(() => '?').join(', '), values: padded }
}
