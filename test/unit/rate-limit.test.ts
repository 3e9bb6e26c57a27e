/** How many requests an API key may make: counted for each key, over a minute. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { RateLimit } from '../../src/api-keys/rate-limit.ts'

function limitOf(requestsMax: number): RateLimit {
  vi.useFakeTimers({ now: 0 })
  onTestFinished(() => void vi.useRealTimers())
  const limit = new RateLimit(requestsMax)
  onTestFinished(() => limit.close())
  return limit
}

test('a key may make its requests within a minute, and no more until the minute is over', async () => {
  const limit = limitOf(2)
  const one = { apiKeyId: 'one' }
  expect([await limit.admit(one), await limit.admit(one)]).toEqual([undefined, undefined])
  vi.setSystemTime(18_500)
  const exceeded = { requestsMax: 2, windowSeconds: 60, retryAfterSeconds: 42 }
  expect(await limit.admit(one)).toEqual(exceeded)
  expect(await limit.admit({ apiKeyId: 'another' })).toBeUndefined()
  vi.setSystemTime(59_999)
  expect(await limit.admit(one)).toEqual({ ...exceeded, retryAfterSeconds: 1 })
  vi.setSystemTime(60_000)
  expect([await limit.admit(one), await limit.admit(one)]).toEqual([undefined, undefined])
  expect(await limit.admit(one)).toEqual({ ...exceeded, retryAfterSeconds: 60 })
})

test('a clock that is set back keeps no key out for longer than a window', async () => {
  const limit = limitOf(1)
  const one = { apiKeyId: 'one' }
  vi.setSystemTime(3_600_000)
  await limit.admit(one)
  expect(await limit.admit(one)).toMatchObject({ retryAfterSeconds: 60 })
  vi.setSystemTime(0)
  expect(await limit.admit(one)).toBeUndefined()
  expect(await limit.admit(one)).toMatchObject({ retryAfterSeconds: 60 })
})
