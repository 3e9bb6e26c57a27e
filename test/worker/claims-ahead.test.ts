/** A worker outside of the service claims runs ahead of its free slots only while they are short, and keeps none that it cannot start. */
import { expect, test, vi } from 'vitest'
import type { Claim } from '../../src/domain/queue/attempts.ts'
import { ClaimsAhead } from '../../src/worker/remote/claims-ahead.ts'
import { waitLimits } from '../support/timeouts.ts'

const slots = 4

/** A service with endless runs. */
function newClaims() {
  const asked: { countMax: number; waits: boolean }[] = []
  const returned: string[] = []
  let last = 0
  const claims = new ClaimsAhead({
    slots,
    async poll(countMax, waits) {
      asked.push({ countMax, waits })
      const first = last + 1
      last += countMax
      return Array.from({ length: countMax }, (_, index) => ({ runId: String(first + index) }) as Claim)
    },
    async handBack({ runId }) {
      returned.push(runId)
    },
  })
  const take = async (free: number) => (await claims.take(() => free)).map(({ runId }) => runId)
  const execute = (milliseconds: number) => {
    for (let count = 0; count < 50; count += 1) claims.ended(milliseconds)
  }
  return { claims, asked, returned, take, execute }
}

test('claims as many runs as there are free slots, if they are long', async () => {
  const { take, execute, asked } = newClaims()
  expect(await take(2)).toEqual(['1', '2'])
  execute(1000)
  expect(await take(1)).toEqual(['3'])
  expect(asked).toEqual([
    { countMax: 2, waits: true },
    { countMax: 1, waits: true },
  ])
})

test('claims short runs ahead, without waiting for one, in one request at a time', async () => {
  const { take, execute, asked } = newClaims()
  execute(1)
  expect(await take(slots)).toEqual(['1', '2', '3', '4'])
  expect(asked).toEqual([{ countMax: 3 * slots, waits: true }])
  // Half of those ahead are left after the last of these.
  expect([await take(1), await take(2), await take(2)]).toEqual([['5'], ['6', '7'], ['8', '9']])
  await vi.waitUntil(() => asked.length === 2, waitLimits)
  expect(asked[1]).toEqual({ countMax: 2 * slots - 3, waits: false })
})

test('returns runs that no slot has become free for, and all when the worker stops', async () => {
  const { claims, asked, take, execute, returned } = newClaims()
  execute(1)
  const taken = await take(slots)
  expect(taken).toHaveLength(slots)
  await vi.waitFor(() => expect(returned.slice(0, slots)).toEqual(['5', '6', '7', '8']), waitLimits)
  taken.push(...(await take(1)))
  const before = returned.length
  await claims.close()
  expect(returned.length).toBeGreaterThan(before)
  const claimed = asked.reduce((sum, { countMax }) => sum + countMax, 0)
  const all = [...taken, ...returned].map(Number).toSorted((a, b) => a - b)
  expect(all, 'each run is executed or returned once').toEqual(Array.from({ length: claimed }, (_, index) => index + 1))
})
