/** Ids of runs and browser contexts: UUIDs of version 7 (RFC 9562, section 5.7). */
import type { Value } from './store.ts'

const version7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/**
 * The id as the store has it; `undefined` for one that nothing here ever had. The store is not asked for such: it may be
 * an API key in the wrong place, and a database's log may keep what it is asked for.
 */
export function parseId(text: string): string | undefined {
  const id = text.toLowerCase()
  return version7.test(id) ? id : undefined
}

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
