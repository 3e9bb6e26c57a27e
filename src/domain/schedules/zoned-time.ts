/**
 * Local times of IANA time zones. A local time is written as the milliseconds of the same date and time in UTC, so that
 * calculations with it know no time zone.
 */

const dayMilliseconds = 24 * 60 * 60 * 1000

/** Creating a format takes as long as using it twenty times. */
const formats = new Map<string, Intl.DateTimeFormat>()

/** Names are accepted in any case, so a caller can write one in many ways. */
const formatsMax = 1000

/** @throws {RangeError} for a name that is not a time zone. */
function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone)
  if (known) return known
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  if (formats.size >= formatsMax) formats.clear()
  formats.set(timeZone, format)
  return format
}

export function isTimeZone(name: string): boolean {
  try {
    formatOf(name)
    return true
  } catch {
    return false
  }
}

/** The local time at an instant. */
export function toLocal(timeZone: string, at: number): number {
  const fields: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {}
  for (const { type, value } of formatOf(timeZone).formatToParts(at)) fields[type] = Number(value)
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = fields
  const milliseconds = ((at % 1000) + 1000) % 1000
  return Date.UTC(year, month - 1, day, hour, minute, second, milliseconds)
}

/**
 * The instant of a local time. Of a time that occurs twice, because clocks are set back, the first one. For a time that
 * does not occur, because clocks are set forward, the first instant after the gap.
 */
export function toInstant(timeZone: string, local: number): number {
  const offsetAt = (at: number) => toLocal(timeZone, at) - at
  // Two days are more than any offset, and less than the time between two changes of it.
  const before = offsetAt(local - 2 * dayMilliseconds)
  const after = offsetAt(local + 2 * dayMilliseconds)
  if (before === after) return local - before
  // Of two valid offsets, the one before the change gives the earlier instant.
  for (const offset of [before, after]) {
    if (offsetAt(local - offset) === offset) return local - offset
  }
  return findChange(local - after, local - before, (at) => offsetAt(at) !== before)
}

/** The first millisecond in `(from, to]` for which `hasChanged` is true. */
function findChange(from: number, to: number, hasChanged: (at: number) => boolean): number {
  let [low, high] = [from, to]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (hasChanged(middle)) high = middle
    else low = middle
  }
  return high
}
