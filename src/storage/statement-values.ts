/** Values for SQL statements. */
import type { Value } from './store.ts'

/**
 * Placeholders and values for `IN (…)`. The list is padded to the next power of two with its last value, which bounds
 * the number of distinct prepared statements. Throws for an empty list.
 */
export function inList<Item extends Value>(values: readonly Item[]): { marks: string; values: Item[] } {
  const last = values.at(-1)
  if (last === undefined) throw new Error('IN (…) needs at least one value.')
  const length = 2 ** Math.ceil(Math.log2(values.length))
  const padded = [...values, ...Array<Item>(length - values.length).fill(last)]
  return { marks: padded.map(() => '?').join(', '), values: padded }
}

const version7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/**
 * Returns a UUID of version 7 (RFC 9562, section 5.7) in lower case, as it is stored; `undefined` for any other text.
 * Other text must not reach a query: it may be a misplaced API key, which the database could log.
 */
export function parseId(text: string): string | undefined {
  const id = text.toLowerCase()
  return version7.test(id) ? id : undefined
}
