/** The driver of a world's clock, when a part of the service fails. */
import { expect, test } from 'vitest'
import { Driver, type DriverDependencies } from '../../src/simulator/driver.ts'
import { VirtualClock } from '../../src/simulator/virtual-clock.ts'

test('the clock goes on after webhooks could not be read', async () => {
  const clock = new VirtualClock(1_000_000)
  let failures = 1
  const readDue = async () =>
    new Proxy({}, { get: (_, name) => (name === 'delivery' && failures >= 0 ? 1_000_000 : null) })
  const dependencies = {
    clock,
    store: { commits: 0, takeNotified: () => new Set() },
    maintenance: { readDue, once: async () => 0 },
    webhooks: {
      async once() {
        failures -= 1
        if (failures === 0) throw new Error('The database is locked.')
      },
      idle: async () => {},
    },
    worker: { due: Number.POSITIVE_INFINITY, flush: async () => {} },
    onError: (error: unknown) => expect(error).toBe(undefined),
  }
  const driver = new Driver(dependencies as unknown as DriverDependencies)
  await expect(driver.advanceTo(2_000_000)).rejects.toThrow('The database is locked.')
  await driver.advanceTo(2_000_000)
  expect(clock.now()).toBe(2_000_000)
})
