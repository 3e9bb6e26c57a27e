/** What the counters of every store do: one count for all processes, for as long as its window lasts. */
import { describe, expect, test } from 'vitest'
import { StoreUnavailable } from '../../src/storage/store.ts'
import { newPlace, openStore, type Test } from '../support/store.ts'
import { type StoreKind, stores } from '../support/stores.ts'

const minute = 60_000

/** The counters of two processes of one installation. */
async function twoProcesses(test: Test, kind: StoreKind) {
  const place = await newPlace(test, kind)
  const [first, second] = [await openStore(test, place, kind), await openStore(test, place, kind)]
  return [first.counters, second.counters] as const
}

describe.each(stores)('the counters of $name', (kind) => {
  test('count for all processes, each addition once, whoever adds at the same time', async (test) => {
    const [first, second] = await twoProcesses(test, kind)
    const adding = Array.from({ length: 50 }, () => [first.add('one', 3, minute), second.add('one', 3, minute)])
    const counts = (await Promise.all(adding.flat())).map(({ count }) => count)
    expect(counts.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, index) => 3 * (index + 1)))
    expect(await first.add('another', 1, minute)).toMatchObject({ count: 1 })
  })

  test('tell how long the window goes on, which begins with the first addition', async (test) => {
    const [first, second] = await twoProcesses(test, kind)
    const { millisecondsLeft: atFirst } = await first.add('one', 1, minute)
    expect(atFirst).toBeLessThanOrEqual(minute)
    expect(atFirst).toBeGreaterThan(minute - 5000)
    const { millisecondsLeft: later } = await second.add('one', 1, minute)
    expect(later).toBeLessThanOrEqual(atFirst)
  })

  test('begin anew when the window has ended', async (test) => {
    const [first, second] = await twoProcesses(test, kind)
    await first.add('one', 5, 1)
    await expect.poll(async () => (await second.add('one', 1, minute)).count, { interval: 2 }).toBe(1)
    expect(await first.add('one', 1, minute)).toMatchObject({ count: 2 })
  })

  test('begin anew when the window seems longer than any: the clock has been set back', async (test) => {
    const [first] = await twoProcesses(test, kind)
    await first.add('one', 5, 2 * minute)
    expect(await first.add('one', 1, minute)).toMatchObject({ count: 1 })
  })

  test('take back what was added, and no more', async (test) => {
    const [first, second] = await twoProcesses(test, kind)
    expect(await first.add('one', -1, minute)).toMatchObject({ count: 0 })
    await first.add('one', 3, minute)
    expect(await second.add('one', -2, minute)).toMatchObject({ count: 1 })
    expect(await second.add('one', -2, minute)).toMatchObject({ count: 0 })
  })

  test('say that they are unavailable when the store is closed', async (test) => {
    const place = await newPlace(test, kind)
    const store = await kind.open(place)
    await store.counters.add('one', 1, minute)
    await store.close()
    await expect(store.counters.add('one', 1, minute)).rejects.toThrow(StoreUnavailable)
  })
})
