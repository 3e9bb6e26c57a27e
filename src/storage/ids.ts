/** Ids of runs and browser contexts: UUIDs of version 7 (RFC 9562, section 5.7). */

const version7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/**
 * The id as the store has it; `undefined` for one that nothing here ever had. The store is not asked for such: it may be
 * an API key in the wrong place, and a database's log may keep what it is asked for.
 */
export function knownId(text: string): string | undefined {
  const id = text.toLowerCase()
  return version7.test(id) ? id : undefined
}
