/** Conformance tests for counters: all processes share a count until its window ends. */
import { describe, expect, test } from 'vitest'
import { StoreUnavailable } from '../../src/storage/store.ts'
import { newStoreLocation, openStore, type Test } from '../support/domain.ts'
import { type StoreKind, stores } from '../support/store-kinds.ts'

const minute = 60_000

/** Returns the counters of two processes of one installation. */
async function twoProcesses(test: Test, kind: StoreKind) {
  const location = await newStoreLocation(test, kind)
  const [first, second] = [await openStore(test, location, kind), await openStore(test, location, kind)]
  return [first.counters, second.counters] as const
}

describe.each(stores)('counters ($name)', (kind) => {
  test('apply each concurrent addition exactly once across processes', async (test) => {
    const [first, second] = await twoProcesses(test, kind)
    const adding = Array.from({ length: 50 }, () => [first.add('one', 3, minute), second.add('one', 3, minute)])
    const counts = (await Promise.all(adding.flat())).map(({ count }) => count)
    expect(counts.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, index) => 3 * (index + 1)))
    expect(await first.add('another', 1, minute)).toMatchObject({ count: 1 })
  })

  test('return the time left in the window, which starts with the first addition', async (test) => {
    const [first, second] = await twoProcesses(test, kind)
    const { millisecondsLeft: atFirst } = await first.add('one', 1, minute)
    expect(atFirst).toBeLessThanOrEqual(minute)
    expect(atFirst).toBeGreaterThan(minute - 5000)
    const { millisecondsLeft: later } = await second.add('one', 1, minute)
    expect(later).toBeLessThanOrEqual(atFirst)
  })

  test('restart at 0 after the window has ended', async (test) => {
    const [first, second] = await twoProcesses(test, kind)
    await first.add('one', 5, 1)
    await expect.poll(async () => (await second.add('one', 1, minute)).count, { interval: 2 }).toBe(1)
    expect(await first.add('one', 1, minute)).toMatchObject({ count: 2 })
  })

  test('restart when the window ends later than a new one would: the clock was set back', async (test) => {
    const [first] = await twoProcesses(test, kind)
    await first.add('one', 5, 2 * minute)
    expect(await first.add('one', 1, minute)).toMatchObject({ count: 1 })
  })

  test('decrease to 0 and not below', async (test) => {
    const [first, second] = await twoProcesses(test, kind)
    expect(await first.add('one', -1, minute)).toMatchObject({ count: 0 })
    await first.add('one', 3, minute)
    expect(await second.add('one', -2, minute)).toMatchObject({ count: 1 })
    expect(await second.add('one', -2, minute)).toMatchObject({ count: 0 })
  })

  test('throw StoreUnavailable when the store is closed', async (test) => {
    const location = await newStoreLocation(test, kind)
    const store = await kind.open(location)
    await store.counters.add('one', 1, minute)
    await store.close()
    await expect(store.counters.add('one', 1, minute)).rejects.toThrow(StoreUnavailable)
  })
})
