/** The limit of requests per API key and minute, counted over all processes. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { RateLimit } from '../../../src/domain/api-keys/rate-limit.ts'
import { SqliteCounters } from '../../../src/storage/sqlite/sqlite-store.ts'
import { removeDirectory, temporaryDirectory } from '../../support/service.ts'

const key = { apiKeyId: 'one' }

/** What one process of an installation does, with the fake clock as the machine's. */
function openProcess(directory: string, requestsMax: number) {
  const counters = new SqliteCounters(directory, () => performance.now())
  onTestFinished(() => counters.close())
  const failures: unknown[] = []
  return { limit: new RateLimit(requestsMax, counters, (error) => failures.push(error)), failures }
}

function directoryWithFakeClock(): string {
  const directory = temporaryDirectory()
  onTestFinished(() => removeDirectory(directory))
  vi.useFakeTimers({ now: 0 })
  onTestFinished(() => void vi.useRealTimers())
  return directory
}

async function countAdmitted(limits: RateLimit[], requests: number): Promise<number> {
  const results = Array.from({ length: requests }, (_, index) => limits[index % limits.length]?.admit(key))
  return (await Promise.all(results)).filter((status) => status?.isExceeded === false).length
}

test('requests over the limit are rejected until the minute ends, for each key separately', async () => {
  const { limit } = openProcess(directoryWithFakeClock(), 2)
  const policy = { policy: 'api-key', requestsMax: 2, windowSeconds: 60 }
  expect(await limit.admit(key)).toEqual({ ...policy, remaining: 1, resetSeconds: 60, isExceeded: false })
  expect(await limit.admit(key)).toEqual({ ...policy, remaining: 0, resetSeconds: 60, isExceeded: false })
  vi.advanceTimersByTime(18_500)
  const exceeded = { ...policy, remaining: 0, resetSeconds: 42, isExceeded: true }
  expect(await limit.admit(key)).toEqual(exceeded)
  expect(await limit.admit({ apiKeyId: 'another' })).toMatchObject({ isExceeded: false })
  vi.advanceTimersByTime(41_499)
  expect(await limit.admit(key)).toEqual({ ...exceeded, resetSeconds: 1 })
  vi.advanceTimersByTime(1)
  expect(await countAdmitted([limit], 2)).toBe(2)
  expect(await limit.admit(key)).toEqual({ ...exceeded, resetSeconds: 60 })
})

test('the remaining requests fall by one with each, across reservations', async () => {
  const { limit } = openProcess(directoryWithFakeClock(), 300)
  for (let remaining = 299; remaining >= 0; remaining--) expect(await limit.admit(key)).toMatchObject({ remaining })
})

test('the remaining requests include those of other processes from the next reservation on', async () => {
  const directory = directoryWithFakeClock()
  const [first, second] = [openProcess(directory, 200).limit, openProcess(directory, 200).limit]
  expect(await first.admit(key)).toMatchObject({ remaining: 199 })
  await countAdmitted([second], 100)
  // A process reserves two requests at a time.
  expect(await first.admit(key)).toMatchObject({ remaining: 198 })
  expect(await first.admit(key)).toMatchObject({ remaining: 97 })
})

test.each([1, 7, 100])('three processes together admit exactly %d requests per minute', async (requestsMax) => {
  const directory = directoryWithFakeClock()
  const limits = [1, 2, 3].map(() => openProcess(directory, requestsMax).limit)
  for (const minute of [1, 2]) {
    expect(await countAdmitted(limits, 3 * requestsMax + 3), `in minute ${minute}`).toBe(requestsMax)
    vi.advanceTimersByTime(60_000)
  }
})

test('a process can admit only what it has reserved once the others have reserved the rest', async () => {
  const directory = directoryWithFakeClock()
  const limits = [1, 2, 3].map(() => openProcess(directory, 6000).limit)
  await countAdmitted([limits[0] as RateLimit], 30)
  expect(await countAdmitted([limits[1] as RateLimit], 6000)).toBe(6000 - 60)
  expect(await countAdmitted([limits[2] as RateLimit], 100)).toBe(0)
  expect(await countAdmitted(limits, 300)).toBe(30)
})

test('a reservation expires with its minute', async () => {
  const directory = directoryWithFakeClock()
  const [first, second] = [openProcess(directory, 1000).limit, openProcess(directory, 1000).limit]
  await first.admit(key)
  vi.advanceTimersByTime(60_000)
  expect(await countAdmitted([second], 1100)).toBe(1000)
  expect(await countAdmitted([first], 100)).toBe(0)
})

test.each([3_600_000, -3_600_000])('setting the system clock by %d ms does not change the window', async (change) => {
  const { limit } = openProcess(directoryWithFakeClock(), 1)
  await limit.admit(key)
  vi.setSystemTime(change)
  expect(await limit.admit(key)).toMatchObject({ isExceeded: true, resetSeconds: 60 })
  vi.advanceTimersByTime(60_000)
  expect(await limit.admit(key)).toMatchObject({ isExceeded: false })
})

test('while the shared counters are unavailable, a process enforces the limit on its own and reports the error', async () => {
  const directory = directoryWithFakeClock()
  writeFileSync(join(directory, 'counters.db'), 'This is not a database. '.repeat(100))
  const { limit, failures } = openProcess(directory, 2)
  expect(await countAdmitted([limit], 5)).toBe(2)
  expect(failures).not.toEqual([])
  vi.advanceTimersByTime(60_000)
  expect(await countAdmitted([limit], 5)).toBe(2)
})
