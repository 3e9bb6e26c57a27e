/** How many requests an API key may make: counted for each key, over a minute, by whichever process. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { RateLimit } from '../../src/domain/api-keys/rate-limit.ts'
import { SqliteCounters } from '../../src/storage/sqlite/sqlite-counters.ts'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'

const one = { apiKeyId: 'one' }

/** A process that counts in the directory; the tests' own clock is that of the machine. */
function processIn(directory: string, requestsMax: number) {
  const counters = new SqliteCounters(directory, () => performance.now())
  onTestFinished(() => counters.close())
  const failures: unknown[] = []
  return { limit: new RateLimit(requestsMax, counters, (error) => failures.push(error)), failures }
}

function directoryAtMidnight(): string {
  const directory = temporaryDirectory()
  onTestFinished(() => removeDirectory(directory))
  vi.useFakeTimers({ now: 0 })
  onTestFinished(() => void vi.useRealTimers())
  return directory
}

async function admitted(limits: RateLimit[], requests: number): Promise<number> {
  const answers = Array.from({ length: requests }, (_, index) => limits[index % limits.length]?.admit(one))
  return (await Promise.all(answers)).filter((exceeded) => exceeded === undefined).length
}

test('a key may make its requests within a minute, and no more until the minute is over', async () => {
  const { limit } = processIn(directoryAtMidnight(), 2)
  expect([await limit.admit(one), await limit.admit(one)]).toEqual([undefined, undefined])
  vi.advanceTimersByTime(18_500)
  const exceeded = { requestsMax: 2, windowSeconds: 60, retryAfterSeconds: 42 }
  expect(await limit.admit(one)).toEqual(exceeded)
  expect(await limit.admit({ apiKeyId: 'another' })).toBeUndefined()
  vi.advanceTimersByTime(41_499)
  expect(await limit.admit(one)).toEqual({ ...exceeded, retryAfterSeconds: 1 })
  vi.advanceTimersByTime(1)
  expect([await limit.admit(one), await limit.admit(one)]).toEqual([undefined, undefined])
  expect(await limit.admit(one)).toEqual({ ...exceeded, retryAfterSeconds: 60 })
})

test.each([1, 7, 100])('%d requests in a minute are that many over all processes, to the last', async (requestsMax) => {
  const directory = directoryAtMidnight()
  const limits = [1, 2, 3].map(() => processIn(directory, requestsMax).limit)
  for (const minute of [1, 2]) {
    expect(await admitted(limits, 3 * requestsMax + 3), `in minute ${minute}`).toBe(requestsMax)
    vi.advanceTimersByTime(60_000)
  }
})

test('of many requests, some are left over in each process at most, and none is one too many', async () => {
  const directory = directoryAtMidnight()
  const limits = [1, 2, 3].map(() => processIn(directory, 6000).limit)
  await admitted([limits[0] as RateLimit], 30)
  const rest = await admitted([limits[1] as RateLimit], 6000)
  expect(rest).toBe(6000 - 60)
  expect(await admitted([limits[2] as RateLimit], 100)).toBe(0)
  expect(await admitted(limits, 300)).toBe(30)
})

test('what a process has taken in one minute is worth nothing in the next', async () => {
  const directory = directoryAtMidnight()
  const [first, second] = [processIn(directory, 1000).limit, processIn(directory, 1000).limit]
  await first.admit(one)
  vi.advanceTimersByTime(60_000)
  expect(await admitted([second], 1100)).toBe(1000)
  expect(await admitted([first], 100)).toBe(0)
})

test.each(['forwards', 'back'])('a clock that is set %s changes nothing', async (way) => {
  const { limit } = processIn(directoryAtMidnight(), 1)
  await limit.admit(one)
  vi.setSystemTime(way === 'back' ? -3_600_000 : 3_600_000)
  expect(await limit.admit(one)).toMatchObject({ retryAfterSeconds: 60 })
  vi.advanceTimersByTime(60_000)
  expect(await limit.admit(one)).toBeUndefined()
})

test('where the shared count cannot be had, a process counts by itself, and says so', async () => {
  const directory = directoryAtMidnight()
  writeFileSync(join(directory, 'counters.db'), 'This is no database, whatever its name says. '.repeat(100))
  const { limit, failures } = processIn(directory, 2)
  expect(await admitted([limit], 5)).toBe(2)
  expect(failures).not.toEqual([])
  vi.setSystemTime(-3_600_000)
  vi.advanceTimersByTime(60_000)
  expect(await admitted([limit], 5), 'though the clock was set back').toBe(2)
})
