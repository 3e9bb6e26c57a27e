/** Converts times that users enter in their time zone, as `<input type="datetime-local">` submits them. */

/** Such as `2026-01-31T09:30`. Some browsers add seconds. From 1900: earlier years have other forms in `toLocal`. */
const localPattern = /^((?:19|[2-9]\d)\d\d-\d\d-\d\dT\d\d:\d\d)(:\d\d)?$/

/** Returns the zone, such as `Europe/Berlin`, or `UTC` when it is unknown. */
export function parseZone(zone: string): string {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone || 'UTC' })
    return zone || 'UTC'
  } catch {
    return 'UTC'
  }
}

/**
 * Milliseconds since 1970; `undefined` for anything else than a valid time from 1900 to 9999. A time that a clock change skips is taken as
 * if the clock had not changed; of two that a clock change repeats, this is the first.
 */
export function parseLocalTime(text: string, zone: string): number | undefined {
  const [, minute] = localPattern.exec(text) ?? []
  const asUtc = minute === undefined ? Number.NaN : Date.parse(`${minute}Z`)
  // `Date.parse` turns 30 February into 2 March.
  if (Number.isNaN(asUtc) || !new Date(asUtc).toISOString().startsWith(minute ?? '')) return undefined
  const offset = (at: number) => toLocal(at, zone) - at
  const [before, after] = [offset(asUtc - dayMilliseconds), offset(asUtc + dayMilliseconds)]
  return [before, after].map((each) => asUtc - each).find((at) => toLocal(at, zone) === asUtc) ?? asUtc - before
}

/** The opposite of `parseLocalTime`. */
export function formatLocalTime(at: number, zone: string): string {
  return new Date(toLocal(at, zone)).toISOString().slice(0, 16)
}

const dayMilliseconds = 24 * 60 * 60 * 1000

/** What the clock of the zone shows, as if it were UTC. */
function toLocal(at: number, zone: string): number {
  // The format of Sweden is that of ISO 8601.
  const text = new Intl.DateTimeFormat('sv', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' }).format(at)
  return Date.parse(`${text.replace(' ', 'T')}Z`) + (((at % 1000) + 1000) % 1000)
}
