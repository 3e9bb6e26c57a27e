/** The times of a schedule: those that follow an instant, and which of those that are due get a run. */
import { Cron } from 'croner'

/** When a schedule's runs are queued. */
export type Timing =
  | { cron: string; timeZone: string }
  /** At `startsAt` plus multiples of the interval. */
  | { intervalSeconds: number; startsAt: number }

/** Returns the first time after an instant; `undefined` when there is none. */
type NextTime = (after: number) => number | undefined

const patterns = new Map<string, Cron>()
const patternsMax = 1000

/** @throws {TypeError | RangeError} for an invalid cron expression or an unknown time zone. */
export function nextTimeOf(timing: Timing): NextTime {
  if ('intervalSeconds' in timing) {
    const milliseconds = timing.intervalSeconds * 1000
    return (after) => {
      const passed = Math.floor((after - timing.startsAt) / milliseconds)
      return timing.startsAt + Math.max(1, passed + 1) * milliseconds
    }
  }
  const { cron, timeZone } = timing
  const pattern = parse(cron)
  const search: NextTime = (after) => {
    let local = toLocal(timeZone, after)
    for (;;) {
      const next = pattern.nextRun(new Date(local))
      if (!next) return undefined
      local = next.getTime()
      // Several local times of a gap have the same instant, and the first one of a repeated time may have passed.
      const at = toInstant(timeZone, local)
      if (at > after) return at
    }
  }
  const key = `${cron} ${timeZone}`
  return (after) => {
    // A decision about a schedule asks for the same time more than once.
    const known = searched.get(key)
    if (known && after >= known.after && after < known.at) return known.at
    const at = search(after)
    if (searched.size >= patternsMax) searched.clear()
    if (at !== undefined) searched.set(key, { after, at })
    return at
  }
}

/** The latest search by cron expression and time zone: its result is that of each instant from `after` to `at`. */
const searched = new Map<string, { after: number; at: number }>()

/** The expression in UTC: its times are local times. */
function parse(cron: string): Cron {
  const known = patterns.get(cron)
  if (known) return known
  const pattern = new Cron(cron, { mode: '5-part', timezone: 'UTC', paused: true })
  if (patterns.size >= patternsMax) patterns.clear()
  patterns.set(cron, pattern)
  return pattern
}

/** The expression as it is stored: one space between its fields. */
export function normalizeCron(cron: string): string {
  return cron
    .trim()
    .split(/[ \t]+/)
    .join(' ')
}

/** The fields of an expression, as people count their values. */
const fields = [
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of the month', min: 1, max: 31 },
  { name: 'month', min: 1, max: 12 },
  { name: 'day of the week', min: 0, max: 7 },
]

/** The first number out of its range. Croner counts days and months from 0 in its errors. */
function findRangeError(cron: string): string | undefined {
  for (const [index, text] of cron.split(' ').entries()) {
    const { name, min, max } = fields[index] ?? { name: '', min: 0, max: 0 }
    // Not the step after a slash, nor the ordinal after #.
    const numbers = text.split(',').flatMap((each) => each.replace(/[/#].*/, '').split('-'))
    const wrong = numbers.find((each) => /^\d+$/.test(each) && (Number(each) < min || Number(each) > max))
    if (wrong !== undefined) return `has ${wrong} as the ${name}, which is from ${min} to ${max}`
  }
  return undefined
}

/** What is wrong with the timing: the member's name and a detail. */
export function findTimingError(timing: Timing, now: number): { member: string; detail: string } | undefined {
  if ('intervalSeconds' in timing) return undefined
  if (!isTimeZone(timing.timeZone)) return { member: 'timeZone', detail: 'is not a time zone of the IANA database' }
  const rangeError = findRangeError(timing.cron)
  if (rangeError !== undefined) return { member: 'cron', detail: rangeError }
  try {
    parse(timing.cron)
  } catch (error) {
    const message = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : ''
    return { member: 'cron', detail: `is not a cron expression: ${message}` }
  }
  return nextTimeOf(timing)(now) === undefined ? { member: 'cron', detail: 'has no time in the future' } : undefined
}

/** The next times after an instant, at most `count`. */
export function nextTimes(next: NextTime, after: number, count: number): number[] {
  const times: number[] = []
  for (let at = next(after); at !== undefined && times.length < count; at = next(at)) times.push(at)
  return times
}

const [hour, day] = [60 * 60 * 1000, 24 * 60 * 60 * 1000]
/** Growing periods, so that a year of minutes is not read to find the last ones. */
const periods = [hour, day, 30 * day, 366 * day, Number.POSITIVE_INFINITY]

/** The latest times from `from` to `to`, at most `count`, oldest first. */
export function latestTimes(next: NextTime, from: number, to: number, count: number): number[] {
  for (const period of periods) {
    const start = Math.max(from, to - period)
    const times: number[] = []
    for (let at = next(start - 1); at !== undefined && at <= to; at = next(at)) times.push(at)
    if (times.length >= count || start === from) return times.slice(-count)
  }
  return []
}

/** `runOnce`: the latest one. `runAll`: the latest `missedMax`. */
export type MissedPolicy = 'skip' | 'runOnce' | 'runAll'

/** A time is missed if no process could queue its run for so long. */
const graceMilliseconds = 60_000

/** Maximum number of times that are made up for, and of times that wait with the overlap policy `queue`. */
export const missedMax = 100

interface DueSchedule {
  nextAt: number
  missed: MissedPolicy
  /** Whether its times wait for an earlier run. Such times are not missed. */
  isWaiting: boolean
}

/** Times that get a run, oldest first, and the latest time that gets none. */
export interface DueTimes {
  times: number[]
  skipped: number | undefined
}

/** Divides the times that are due. */
export function divideDueTimes(next: NextTime, { nextAt, missed, isWaiting }: DueSchedule, now: number): DueTimes {
  if (isWaiting) return keepLatest(latestTimes(next, nextAt, now, missedMax + 1), missedMax)
  const missedUntil = now - graceMilliseconds
  const missedTimes = nextAt <= missedUntil ? latestTimes(next, nextAt, missedUntil, missedMax + 1) : []
  const kept = keepLatest(missedTimes, { skip: 0, runOnce: 1, runAll: missedMax }[missed])
  const onTime = latestTimes(next, Math.max(nextAt, missedUntil + 1), now, missedMax)
  return { times: [...kept.times, ...onTime], skipped: kept.skipped }
}

function keepLatest(times: readonly number[], count: number): DueTimes {
  const first = Math.max(0, times.length - count)
  return { times: times.slice(first), skipped: times[first - 1] }
}

// Local times of IANA time zones. A local time is written as the milliseconds of the same date and time in UTC, so that
// calculations with it know no time zone.

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

function isTimeZone(name: string): boolean {
  try {
    formatOf(name)
    return true
  } catch {
    return false
  }
}

/** The local time at an instant. */
function toLocal(timeZone: string, at: number): number {
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
function toInstant(timeZone: string, local: number): number {
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
