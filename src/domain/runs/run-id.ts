/** What a run's id tells: it is a UUID of version 7, whose first 48 bits are milliseconds (RFC 9562, section 5.7). */

/** The least id of a moment; no run has it, since its version is 0. */
export function firstIdAt(milliseconds: number): string {
  const time = Math.min(Math.max(0, milliseconds), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`
}

/** When an id was made, so that `createdAfter` and `createdBefore` agree with it to the millisecond. */
export function momentOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}
