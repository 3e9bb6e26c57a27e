/** Parsing a run's events, formatting durations, grouping events, and the filter of the list of runs. */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { RunEvent } from '../../src/domain/runs/run.ts'
import { formatDuration, formatLocalTime, parseLocalTime } from '../../src/surfaces/dashboard/format.ts'
import { lastOfBursts } from '../../src/surfaces/dashboard/runs/change-streams.ts'
import { parseAttempts, type Step } from '../../src/surfaces/dashboard/runs/run-attempts.ts'
import { parseRunFilter, toListRequest, toRunQuery } from '../../src/surfaces/dashboard/runs/run-filter.ts'
import { countSteps, groupSteps } from '../../src/surfaces/dashboard/runs/run-template.ts'

function createEvents(...entries: [type: RunEvent['type'], data: Record<string, unknown>][]): RunEvent[] {
  return entries.map(([type, data], index) => ({ sequence: index + 1, at: (index + 1) * 100, type, data }))
}

const status = (status: string, attempt: number, reason: string | null = null): [RunEvent['type'], object] => [
  'status',
  { status, attempt, reason },
]
const step = (name: string, state: string, attempt = 1): [RunEvent['type'], object] => [
  'step',
  { attempt, name, state },
]

function attempts(...entries: [RunEvent['type'], object][]) {
  return parseAttempts(createEvents(...(entries as [RunEvent['type'], Record<string, unknown>][])))
}

describe('steps', () => {
  const steps = (...names: string[]) =>
    names.map((name): Step => ({ name, state: 'finished', startedAt: 0, endedAt: 1 }))

  test('that differ in a number are a group, if there are five', () => {
    const pages = ['page 1', 'page 2', 'page 3', 'page 4', 'page 10']
    const grouped = groupSteps(steps('sign in', ...pages, 'a 1', 'a 2', 'a 3', 'a 4', 'b 1', 'sign out', 'sign out'))
    expect(grouped.map((group) => group.map(({ name }) => name))).toEqual([
      ...[['sign in'], pages, ['a 1'], ['a 2'], ['a 3'], ['a 4'], ['b 1'], ['sign out'], ['sign out']],
    ])
  })

  test('are counted by state', () => {
    expect(countSteps(steps('a'))).toBe('1 step: 1 finished')
    const running: Step = { name: 'c', state: 'running', startedAt: 0, endedAt: null }
    expect(countSteps([...steps('a', 'b'), running])).toBe('3 steps: 1 running, 2 finished')
  })
})

describe('parsing attempts', () => {
  test('leaves out a claim that was handed back, whose number the next one has', () => {
    const [first, second, ...others] = attempts(
      status('running', 1),
      status('queued', 0),
      status('running', 1),
      status('queued', 1, 'attemptFailed'),
      status('running', 2),
      status('queued', 1),
    )
    expect([second, ...others]).toEqual([undefined])
    expect(first).toMatchObject({ startedAt: 300, endedAt: 400, next: 'queued' })
  })

  test('assigns steps to the attempt between its statuses', () => {
    const [first, second, ...others] = attempts(
      status('queued', 0),
      status('running', 1),
      step('read', 'started'),
      ['log', { attempt: 1, level: 'info', message: 'x' }],
      step('read', 'finished'),
      step('write', 'started'),
      step('write', 'failed'),
      status('queued', 1, 'attemptFailed'),
      status('running', 2),
      step('read', 'reused', 2),
      step('write', 'started', 2),
    )
    expect(others).toEqual([])
    expect(first).toEqual({
      number: 1,
      startedAt: 200,
      endedAt: 800,
      next: 'queued',
      reason: 'attemptFailed',
      error: null,
      steps: [
        { name: 'read', state: 'finished', startedAt: 300, endedAt: 500 },
        { name: 'write', state: 'failed', startedAt: 600, endedAt: 700 },
      ],
      isWaiting: false,
    })
    expect(second).toMatchObject({ number: 2, endedAt: null, next: 'running', reason: null })
    expect(second?.steps).toEqual([
      { name: 'read', state: 'reused', startedAt: 1000, endedAt: 1000 },
      { name: 'write', state: 'running', startedAt: 1100, endedAt: null },
    ])
  })

  test('keeps the error of each attempt', () => {
    const error = { name: 'TypeError', message: 'No.', stack: 'at run (a.ts:1:2)', step: 'read' }
    const failed = (number: number): [RunEvent['type'], object] => [
      'status',
      { status: 'queued', attempt: number, reason: 'attemptFailed', error: { ...error, message: `No ${number}.` } },
    ]
    const parsed = attempts(status('running', 1), failed(1), status('running', 2), failed(2), status('running', 3))
    expect(parsed.map((attempt) => attempt.error?.message)).toEqual(['No 1.', 'No 2.', undefined])
  })

  test('returns none for a run that never started', () => {
    expect(attempts(status('queued', 0), status('cancelled', 0, 'cancelRequested'))).toEqual([])
    expect(attempts(status('queued', 0), status('expired', 0, 'notStartedInTime'))).toEqual([])
  })

  test('keeps an attempt running after a cancellation request, and interrupts its steps at the end', () => {
    const events = [status('running', 1), step('read', 'started'), status('running', 1, 'cancelRequested')] as const
    expect(attempts(...events)).toMatchObject([{ endedAt: null, next: 'running', steps: [{ state: 'running' }] }])
    expect(attempts(...events, status('cancelled', 1, 'cancelRequested'))).toMatchObject([
      { endedAt: 400, next: 'cancelled', steps: [{ state: 'interrupted', endedAt: 400 }] },
    ])
  })

  test('does not change a finished attempt when the waiting run is cancelled', () => {
    const entries = [
      status('running', 1),
      status('queued', 1, 'attemptFailed'),
      status('cancelled', 1, 'cancelRequested'),
    ]
    expect(attempts(...(entries as [RunEvent['type'], object][]))).toMatchObject([{ endedAt: 200, next: 'queued' }])
  })

  test('accepts a history whose first events are missing', () => {
    expect(attempts(step('old', 'finished', 3), status('succeeded', 3))).toMatchObject([
      { number: 3, startedAt: 100, endedAt: 200, steps: [{ name: 'old', state: 'finished', startedAt: 100 }] },
    ])
  })
})

test.each([
  [-5, '0ms'],
  [0, '0ms'],
  [999.4, '999ms'],
  [1000, '1s'],
  [2449, '2.4s'],
  [59_999, '59.9s'],
  [60_000, '1m'],
  [200_000, '3m 20s'],
  [3_600_000, '1h'],
  [7_261_000, '2h 1m'],
  [86_400_000 * 2 + 3_600_000 * 4, '2d 4h'],
])('formats %d ms as %s', (milliseconds, words) => {
  expect(formatDuration(milliseconds)).toBe(words)
})

describe('grouping events into bursts', () => {
  /** Yields the values, and then the one that `late` resolves to. */
  async function* source(items: (string | null)[], late?: Promise<string | null>) {
    yield* items
    if (late) yield await late
  }

  async function all(generator: AsyncGenerator<string | null>) {
    const items = []
    for await (const thing of generator) items.push(thing)
    return items
  }

  test('yields the last of several values that arrive together', async () => {
    expect(await all(lastOfBursts(source(['a', 'b', 'c']), 1000))).toEqual(['c'])
  })

  test('yields a later value separately', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const { promise, resolve } = Promise.withResolvers<string>()
    const bursts = lastOfBursts(source(['a', 'b'], promise), 1000)
    const first = bursts.next()
    await vi.advanceTimersByTimeAsync(1000)
    expect((await first).value).toBe('b')
    resolve('c')
    expect((await bursts.next()).value).toBe('c')
    expect((await bursts.next()).done).toBe(true)
  })

  test('yields null only when it arrives alone', async () => {
    expect(await all(lastOfBursts(source([null, 'a', null]), 1000))).toEqual([null, 'a'])
  })

  test('closes its source, and passes on its error', async () => {
    let ended = false
    async function* endless() {
      try {
        for (;;) yield 'a'
      } finally {
        ended = true
      }
    }
    const bursts = lastOfBursts(endless(), 1)
    await bursts.next()
    await bursts.return(undefined)
    expect(ended).toBe(true)
    // biome-ignore lint/correctness/useYield: it throws before it yields
    const broken = (async function* (): AsyncGenerator<string> {
      throw new Error('the store is gone')
    })()
    await expect(all(lastOfBursts(broken, 1))).rejects.toThrow('the store is gone')
  })
})

describe('the filter of the list of runs', () => {
  const filterIn = (search: string) => parseRunFilter(new URLSearchParams(search))

  test('has times of the time zone, also on days when the clock changes', () => {
    const times = (zone: string, from: string, until: string) => {
      const { createdAfter, createdBefore } = toListRequest(filterIn(`from=${from}&until=${until}&zone=${zone}`))
      return [createdAfter, createdBefore].map((at) => new Date(at ?? 0).toISOString().slice(0, 16))
    }
    const day = ['2026-03-29T00:00', '2026-03-30T00:00'] as const
    expect(times('', ...day)).toEqual(day)
    expect(times('nowhere', ...day)).toEqual(day)
    expect(times('Europe/Berlin', ...day)).toEqual(['2026-03-28T23:00', '2026-03-29T22:00'])
    // The first is skipped, the second is repeated.
    const changes = ['2026-03-29T02:30', '2026-10-25T02:30'] as const
    expect(times('Europe/Berlin', ...changes)).toEqual(['2026-03-29T01:30', '2026-10-25T00:30'])
    const at = Date.parse('2026-03-29T12:34Z')
    expect(parseLocalTime(formatLocalTime(at, 'America/New_York'), 'America/New_York')).toBe(at)
  })

  test('ignores unknown statuses and invalid times', () => {
    const none = { parent: '', search: '', workflow: '', statuses: [], from: '', until: '', zone: 'UTC' }
    for (const search of [
      'status=toString',
      'from=2026-13-01T00:00',
      'until=2026-02-30T00:00&from=x',
      'from=0000-01-01T00:00&until=0001-01-02T00:00',
      'from=0999-12-31T00:00&until=1899-12-31T23:59',
      'status=&from=',
    ]) {
      expect(filterIn(search)).toEqual(none)
    }
    expect(toRunQuery(none)).toBe('')
  })

  test('is restored from its own query', () => {
    const filter = filterIn(
      'search=x+y&workflow=a%26b&status=running&status=queued&from=2026-01-01T00:00&until=2026-01-02T00:00&zone=Asia/Tokyo',
    )
    expect(filterIn(toRunQuery(filter, 'x'))).toEqual(filter)
    expect(toListRequest(filter)).toMatchObject({ workflowId: 'a&b', status: ['queued', 'running'] })
    const parent = '01a21574-9c1f-773e-8bea-009589bd9362'
    const called = filterIn(`parent=${parent}&search=x&workflow=a&status=failed`)
    expect(filterIn(toRunQuery(called))).toEqual(called)
    expect(toListRequest(called)).toEqual({ parentRunId: parent, status: ['failed'] })
    expect(filterIn('parent=nothing').parent).toBe('')
  })
})
