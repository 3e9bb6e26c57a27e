/** Formats times, durations and sizes. */
import { type Html, html, nothing } from './html.ts'

/**
 * A time in the browser's time zone; in UTC without JavaScript. `relative` shows the distance from now, `short` leaves
 * out the year.
 */
export function time(at: number | null, style: 'relative' | 'exact' | 'short' = 'relative', none = 'never'): Html {
  if (at === null) return html`<span class="muted">${none}</span>`
  const iso = new Date(at).toISOString()
  const inUtc = `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`
  if (style === 'relative') {
    return html`<relative-time datetime="${iso}" threshold="P30D" prefix="" title="${inUtc}">${inUtc}</relative-time>`
  }
  const year = style === 'short' ? nothing : html`year="numeric"`
  return html`<relative-time datetime="${iso}" format="datetime" weekday="" ${year} month="short" day="numeric"
    hour="2-digit" minute="2-digit" second="2-digit" title="${inUtc}">${inUtc}</relative-time>`
}

/** A time of the last days in the browser's time zone, for charts; in UTC without JavaScript. */
export function recentTime(at: number, style: 'time' | 'day' | 'both'): Html {
  const iso = new Date(at).toISOString()
  const texts = { time: iso.slice(11, 16), day: iso.slice(5, 10), both: `${iso.slice(5, 10)} ${iso.slice(11, 16)}` }
  const day = style === 'time' ? html`weekday="" day=""` : html`weekday="short" day="numeric"`
  const hour = style === 'day' ? nothing : html`hour="2-digit" minute="2-digit"`
  return html`<relative-time datetime="${iso}" format="datetime" month="" ${day} ${hour} no-title>${texts[style]}</relative-time>`
}

/** The time since `at`, which the browser keeps counting. */
export function elapsedSince(at: number): Html {
  const iso = new Date(at).toISOString()
  const now = formatDuration(Date.now() - at)
  return html`<relative-time datetime="${iso}" format="duration" format-style="narrow" tense="past" no-title>${now}</relative-time>`
}

const units: [name: string, milliseconds: number][] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
]

/** For example `85ms`, `2.4s`, `3m 20s` and `2d 4h`. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.max(0, Math.round(milliseconds))}ms`
  if (milliseconds < 60_000) return `${Math.floor(milliseconds / 100) / 10}s`
  const first = units.findIndex(([, each]) => milliseconds >= each)
  let rest = milliseconds
  const parts = units.slice(first, first + 2).map(([name, each]) => {
    const count = Math.floor(rest / each)
    rest -= count * each
    return count === 0 ? '' : `${count}${name}`
  })
  return parts.filter(Boolean).join(' ')
}

/** For example `812 B`, `4.9 KiB` and `5 MiB`, with a no-break space. */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes}\u00a0B`
  // Rounded before the unit is chosen, so that one byte less than 1 MiB is not formatted as 1024 KiB.
  const kibibytes = Math.round(bytes / 102.4) / 10
  if (kibibytes < 1024) return `${kibibytes}\u00a0KiB`
  const mebibytes = Math.round(bytes / 104857.6) / 10
  return mebibytes < 1024 ? `${mebibytes}\u00a0MiB` : `${Math.round(mebibytes / 102.4) / 10}\u00a0GiB`
}

// Converts times that users enter in their time zone, as `<input type="datetime-local">` submits them.

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
  // The charts have it for each bar, and a format takes 60 µs to create.
  if (zone === 'UTC') return at
  // The format of Sweden is that of ISO 8601.
  const text = new Intl.DateTimeFormat('sv', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' }).format(at)
  return Date.parse(`${text.replace(' ', 'T')}Z`) + (((at % 1000) + 1000) % 1000)
}
