/** One process has the lease on the maintenance of a store, and another takes it over when that process is gone. */
import { describe, expect, test, vi } from 'vitest'
import { leaseMilliseconds, MaintenanceLease } from '../../src/maintenance/maintenance-lease.ts'
import { createManualClock } from '../support/claims.ts'
import { newAccount, newStoreLocation, openDomain, openStore, queueRun, type Test } from '../support/domain.ts'
import { type StoreKind, stores } from '../support/store-kinds.ts'
import { waitLimits } from '../support/timeouts.ts'

const leaseSeconds = leaseMilliseconds / 1000

/** Leases of processes on one store, with a clock that is set and one that is not. */
async function openLeases(test: Test, kind: StoreKind) {
  const store = await openStore(test, await newStoreLocation(test, kind), kind)
  const [clock, monotonic] = [createManualClock(), createManualClock()]
  const lease = (precedence = 1) => new MaintenanceLease(store, precedence, clock.now, monotonic.now)
  const advance = (seconds: number) => {
    clock.advance(seconds)
    monotonic.advance(seconds)
  }
  return { store, clock, advance, lease }
}

describe.each(stores)('the lease on maintenance ($name)', (kind) => {
  test('belongs to one process of those that start together', async (test) => {
    const { lease } = await openLeases(test, kind)
    const leases = Array.from({ length: 8 }, () => lease())
    await Promise.all(leases.map((each) => each.check()))
    expect(leases.filter(({ fence }) => fence !== undefined)).toHaveLength(1)
  })

  test('stays with a process that extends it, and passes on when it expires, with a higher fence', async (test) => {
    const { advance, lease } = await openLeases(test, kind)
    const [first, second] = [lease(), lease()]
    await first.check()
    for (let seconds = 0; seconds < 5 * leaseSeconds; seconds += 5) {
      expect(await second.check()).toBeGreaterThan(0)
      expect([first.fence, second.fence]).toEqual([1, undefined])
      advance(5)
      await first.check()
    }
    advance(leaseSeconds)
    await second.check()
    expect(second.fence).toBe(2)
    await first.check()
    expect(first.fence).toBeUndefined()
  })

  test('is free at once when its process stops', async (test) => {
    const { store, lease } = await openLeases(test, kind)
    const [first, second] = [lease(), lease()]
    await first.check()
    await second.check()
    const notified = vi.fn()
    store.listen('maintenance', notified)
    await first.release()
    await vi.waitFor(() => expect(notified).toHaveBeenCalled(), waitLimits)
    await second.check()
    expect([first.fence, second.fence]).toEqual([undefined, 2])
  })

  test('passes on in time although the clock was set back an hour', async (test) => {
    const { clock, advance, lease } = await openLeases(test, kind)
    const [first, second] = [lease(), lease()]
    await first.check()
    clock.advance(-3600)
    expect(await second.check()).toBeLessThan(leaseMilliseconds + 1000)
    advance(leaseSeconds)
    await second.check()
    expect(second.fence).toBe(2)
  })

  test('has one owner again after the clock was set forward', async (test) => {
    const { clock, advance, lease } = await openLeases(test, kind)
    const leases = [lease(), lease()]
    for (const each of leases) await each.check()
    clock.advance(3600)
    for (let round = 0; round < 3; round += 1) {
      for (const each of leases.toReversed()) await each.check()
      advance(5)
    }
    expect(leases.filter(({ fence }) => fence !== undefined)).toHaveLength(1)
  })

  test('passes on at once to a process that does more of the maintenance', async (test) => {
    const { advance, lease } = await openLeases(test, kind)
    const [worker, service] = [lease(0), lease(1)]
    await worker.check()
    await service.check()
    expect(service.fence).toBe(2)
    advance(5)
    await worker.check()
    expect([worker.fence, service.fence]).toEqual([undefined, 2])
  })

  test('lets one process wait for what is due, and learn of what is due sooner', async (test) => {
    const domains = [await openDomain(test, { kind })]
    const [{ location } = { location: '' }] = domains
    domains.push(await openDomain(test, { kind, location }))
    const [first, second] = domains as [(typeof domains)[0], (typeof domains)[0]]
    for (const { maintenance } of domains) {
      maintenance.start()
      test.onTestFinished(() => maintenance.stop())
    }
    const { principal } = await newAccount(first)
    const run = await queueRun(second, principal, { delaySeconds: 1 })
    const waitingFor = async () => (await first.runs.get(principal.accountId, run.id))?.waitingFor
    await vi.waitUntil(async () => (await waitingFor()) === 'worker', waitLimits)
  })
})
