/** Times of schedules: daylight-saving gaps and repeats in several zones, and which due times get a run. */
import { describe, expect, test } from 'vitest'
import {
  type DueTimes,
  divideDueTimes,
  findTimingError,
  latestTimes,
  missedMax,
  nextTimeOf,
  nextTimes,
} from '../../../src/domain/schedules/schedule-times.ts'

const at = (text: string) => Date.parse(text)
const toText = (time: number) => new Date(time).toISOString().replace(':00.000Z', 'Z')

function timesOf(cron: string, timeZone: string, after: string, count = 3): string[] {
  return nextTimes(nextTimeOf({ cron, timeZone }), at(after), count).map(toText)
}

describe('a local time that clocks skip runs at the first instant after the gap', () => {
  test.each([
    ['Europe/Berlin', '30 2 * * *', '2026-03-28T12:00Z', ['2026-03-29T01:00Z', '2026-03-30T00:30Z']],
    ['America/New_York', '15 2 * * *', '2026-03-07T12:00Z', ['2026-03-08T07:00Z', '2026-03-09T06:15Z']],
    // Half an hour is skipped, at 02:00 local time.
    ['Australia/Lord_Howe', '10 2 * * *', '2026-10-03T00:00Z', ['2026-10-03T15:30Z', '2026-10-04T15:10Z']],
    // Midnight is skipped.
    ['America/Santiago', '0 0 * * *', '2026-09-05T12:00Z', ['2026-09-06T04:00Z', '2026-09-07T03:00Z']],
    // A whole day is skipped: 30 December 2011.
    [
      'Pacific/Apia',
      '0 12 * * *',
      '2011-12-29T12:00Z',
      ['2011-12-29T22:00Z', '2011-12-30T10:00Z', '2011-12-30T22:00Z'],
    ],
  ])('%s, %s', (timeZone, cron, after, expected) => {
    expect(timesOf(cron, timeZone, after, expected.length)).toEqual(expected)
  })

  test('several skipped times, and the time at the end of the gap, run once', () => {
    const expected = ['2026-03-29T00:40Z', '2026-03-29T01:00Z', '2026-03-29T01:20Z']
    expect(timesOf('*/20 * * * *', 'Europe/Berlin', '2026-03-29T00:30Z')).toEqual(expected)
  })
})

describe('a local time that occurs twice runs once, at the first', () => {
  test.each([
    ['Europe/Berlin', '30 2 * * *', '2026-10-24T12:00Z', ['2026-10-25T00:30Z', '2026-10-26T01:30Z']],
    ['America/New_York', '30 1 * * *', '2026-10-31T12:00Z', ['2026-11-01T05:30Z', '2026-11-02T06:30Z']],
    ['Australia/Lord_Howe', '45 1 * * *', '2026-04-03T20:00Z', ['2026-04-04T14:45Z', '2026-04-05T15:15Z']],
  ])('%s, %s', (timeZone, cron, after, expected) => {
    expect(timesOf(cron, timeZone, after, expected.length)).toEqual(expected)
  })

  test('a schedule that is read during the second occurrence does not repeat the first', () => {
    expect(timesOf('*/30 * * * *', 'Europe/Berlin', '2026-10-25T01:10Z')).toEqual([
      '2026-10-25T02:00Z',
      '2026-10-25T02:30Z',
      '2026-10-25T03:00Z',
    ])
  })
})

test('times of every zone increase strictly, through all changes of clocks of a year', () => {
  for (const timeZone of ['America/St_Johns', 'Africa/Casablanca', 'Pacific/Chatham']) {
    const times = nextTimes(nextTimeOf({ cron: '30 0,2 * * *', timeZone }), at('2026-01-01T00:00Z'), 365 * 2)
    expect(times).toHaveLength(365 * 2)
    expect(times.every((time, index) => index === 0 || time > (times[index - 1] ?? 0))).toBe(true)
  }
})

test('times of an interval count from its start, whatever the clocks do', () => {
  const next = nextTimeOf({ intervalSeconds: 90, startsAt: 1000 })
  expect(nextTimes(next, 1000, 3)).toEqual([91_000, 181_000, 271_000])
  expect(next(-500_000)).toBe(91_000)
  expect(next(181_000)).toBe(271_000)
})

test.each([
  ['60 * * * *', 'UTC', 'cron'],
  ['* * * * * *', 'UTC', 'cron'],
  ['a b c d e', 'UTC', 'cron'],
  ['0 0 30 2 *', 'UTC', 'cron'],
  ['0 0 * * *', 'Europe/Atlantis', 'timeZone'],
])('refuses %s in %s, naming the member %s', (cron, timeZone, member) => {
  expect(findTimingError({ cron, timeZone }, Date.now())?.member).toBe(member)
})

test('finds the latest times of a long period without reading all of it', () => {
  let calls = 0
  const everyMinute = nextTimeOf({ cron: '* * * * *', timeZone: 'UTC' })
  const counted = (after: number) => {
    calls += 1
    return everyMinute(after)
  }
  const times = latestTimes(counted, at('2016-01-01T00:00Z'), at('2026-01-01T00:00Z'), 100)
  expect([times.length, times.at(-1)]).toEqual([100, at('2026-01-01T00:00Z')])
  expect(calls).toBeLessThan(2000)
})

describe('of the times that are due', () => {
  const minute = 60_000
  const next = nextTimeOf({ intervalSeconds: 60, startsAt: 0 })
  const divide = (missed: 'skip' | 'runOnce' | 'runAll', minutes: number, isWaiting = false): DueTimes =>
    divideDueTimes(next, { nextAt: minute, missed, isWaiting }, minutes * minute + 30_000)

  test('one that is less than a minute late is on time, by every policy', () => {
    for (const missed of ['skip', 'runOnce', 'runAll'] as const) {
      expect(divide(missed, 1)).toEqual({ times: [minute], skipped: undefined })
    }
  })

  test('each has a run or was skipped, also exactly a minute late', () => {
    const late = (missed: 'skip' | 'runOnce', milliseconds: number) =>
      divideDueTimes(
        nextTimeOf({ intervalSeconds: 600, startsAt: 0 }),
        { nextAt: 600_000, missed, isWaiting: false },
        600_000 + milliseconds,
      )
    for (const milliseconds of [0, 59_999]) expect(late('skip', milliseconds).times).toEqual([600_000])
    for (const milliseconds of [60_000, 60_001]) {
      expect(late('skip', milliseconds)).toEqual({ times: [], skipped: 600_000 })
      expect(late('runOnce', milliseconds)).toEqual({ times: [600_000], skipped: undefined })
    }
  })

  test('skip leaves out those that were missed', () => {
    expect(divide('skip', 10)).toEqual({ times: [10 * minute], skipped: 9 * minute })
  })

  test('runOnce keeps the latest that was missed', () => {
    expect(divide('runOnce', 10)).toEqual({ times: [9 * minute, 10 * minute], skipped: 8 * minute })
  })

  test('runAll keeps the latest 100 that were missed', () => {
    expect(divide('runAll', 3).times).toEqual([minute, 2 * minute, 3 * minute])
    const { times, skipped } = divide('runAll', 1000)
    expect([times.length, times[0], skipped]).toEqual([missedMax + 1, 900 * minute, 899 * minute])
  })

  test('those that waited for an earlier run were not missed, up to 100', () => {
    expect(divide('skip', 3, true).times).toEqual([minute, 2 * minute, 3 * minute])
    expect(divide('skip', 1000, true).times).toHaveLength(missedMax)
  })
})
