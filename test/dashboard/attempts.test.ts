/** What a page makes of a run's events: its attempts and steps, durations in words, bursts of news. */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { RunEvent } from '../../src/domain/runs/run.ts'
import { formatDuration } from '../../src/surfaces/dashboard/format.ts'
import { lastOfBursts } from '../../src/surfaces/dashboard/runs/change-streams.ts'
import { parseAttempts } from '../../src/surfaces/dashboard/runs/run-attempts.ts'
import { parseRunFilter, toListRequest, toRunQuery } from '../../src/surfaces/dashboard/runs/run-filter.ts'

function eventsOf(...told: [type: RunEvent['type'], data: Record<string, unknown>][]): RunEvent[] {
  return told.map(([type, data], index) => ({ sequence: index + 1, at: (index + 1) * 100, type, data }))
}

const status = (status: string, attempt: number, reason: string | null = null): [RunEvent['type'], object] => [
  'status',
  { status, attempt, reason },
]
const step = (name: string, state: string, attempt = 1): [RunEvent['type'], object] => [
  'step',
  { attempt, name, state },
]

function attempts(...told: [RunEvent['type'], object][]) {
  return parseAttempts(eventsOf(...(told as [RunEvent['type'], Record<string, unknown>][])))
}

describe('attempts', () => {
  test('begin and end with the statuses that tell of them, with their steps between', () => {
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
      steps: [
        { name: 'read', state: 'finished', startedAt: 300, endedAt: 500 },
        { name: 'write', state: 'failed', startedAt: 600, endedAt: 700 },
      ],
    })
    expect(second).toMatchObject({ number: 2, endedAt: null, next: 'running', reason: null })
    expect(second?.steps).toEqual([
      { name: 'read', state: 'reused', startedAt: 1000, endedAt: 1000 },
      { name: 'write', state: 'running', startedAt: 1100, endedAt: null },
    ])
  })

  test('of a run that never started there are none', () => {
    expect(attempts(status('queued', 0), status('cancelled', 0, 'cancelRequested'))).toEqual([])
    expect(attempts(status('queued', 0), status('expired', 0, 'notStartedInTime'))).toEqual([])
  })

  test('go on when somebody asks to cancel them, and interrupt their steps when they end', () => {
    const asked = [status('running', 1), step('read', 'started'), status('running', 1, 'cancelRequested')] as const
    expect(attempts(...asked)).toMatchObject([{ endedAt: null, next: 'running', steps: [{ state: 'running' }] }])
    expect(attempts(...asked, status('cancelled', 1, 'cancelRequested'))).toMatchObject([
      { endedAt: 400, next: 'cancelled', steps: [{ state: 'interrupted', endedAt: 400 }] },
    ])
  })

  test('that have ended are not changed by what becomes of the run while it waits', () => {
    const told = [status('running', 1), status('queued', 1, 'attemptFailed'), status('cancelled', 1, 'cancelRequested')]
    expect(attempts(...(told as [RunEvent['type'], object][]))).toMatchObject([{ endedAt: 200, next: 'queued' }])
  })

  test('are told as far as their events are there', () => {
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
])('%d milliseconds are %s', (milliseconds, words) => {
  expect(formatDuration(milliseconds)).toBe(words)
})

describe('in bursts', () => {
  /** Yields what it is given, each after the other has been asked for, and then what `late` resolves to. */
  async function* source(things: (string | null)[], late?: Promise<string | null>) {
    yield* things
    if (late) yield await late
  }

  async function all(generator: AsyncGenerator<string | null>) {
    const things = []
    for await (const thing of generator) things.push(thing)
    return things
  }

  test('what comes together is told once, by its last', async () => {
    expect(await all(lastOfBursts(source(['a', 'b', 'c']), 1000))).toEqual(['c'])
  })

  test('what comes later is told later', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const { promise, resolve } = Promise.withResolvers<string>()
    const told = lastOfBursts(source(['a', 'b'], promise), 1000)
    const first = told.next()
    await vi.advanceTimersByTimeAsync(1000)
    expect((await first).value).toBe('b')
    resolve('c')
    expect((await told.next()).value).toBe('c')
    expect((await told.next()).done).toBe(true)
  })

  test('silence is told where it is alone', async () => {
    expect(await all(lastOfBursts(source([null, 'a', null]), 1000))).toEqual([null, 'a'])
  })

  test('its source ends with it, and what its source throws is thrown', async () => {
    let ended = false
    async function* endless() {
      try {
        for (;;) yield 'a'
      } finally {
        ended = true
      }
    }
    const told = lastOfBursts(endless(), 1)
    await told.next()
    await told.return(undefined)
    expect(ended).toBe(true)
    // biome-ignore lint/correctness/useYield: it fails before it could
    const broken = (async function* (): AsyncGenerator<string> {
      throw new Error('the store is gone')
    })()
    await expect(all(lastOfBursts(broken, 1))).rejects.toThrow('the store is gone')
  })
})

describe('the filter of the list', () => {
  const filterIn = (search: string) => parseRunFilter(new URLSearchParams(search))

  test('takes whole days in UTC, the last one included', () => {
    expect(toListRequest(filterIn('from=2026-01-31&until=2026-01-31'))).toMatchObject({
      createdAfter: Date.UTC(2026, 0, 31),
      createdBefore: Date.UTC(2026, 1, 1),
    })
  })

  test('leaves out what is no choice and no day', () => {
    const none = { workflow: '', status: '', from: '', until: '' }
    for (const search of ['status=toString', 'from=2026-13-01', 'until=2026-02-30&from=x', 'status=&from=']) {
      expect(filterIn(search)).toEqual(none)
    }
    expect(toRunQuery(none)).toBe('')
  })

  test('comes back from the address that it makes', () => {
    const filter = { workflow: 'a&b', status: 'unfinished', from: '2026-01-01', until: '2026-01-02' }
    expect(filterIn(toRunQuery(filter, 'x'))).toEqual(filter)
    expect(toListRequest(filter)).toMatchObject({ workflowId: 'a&b', status: ['queued', 'running'] })
  })
})
