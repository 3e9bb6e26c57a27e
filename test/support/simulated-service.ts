/** A world of the simulator, as a reference for tests that create accounts and change the store. */
import { Front, type PassedTo } from '../../src/simulator/front.ts'
import { SeededRandomness } from '../../src/simulator/seeded-randomness.ts'
import { VirtualClock } from '../../src/simulator/virtual-clock.ts'
import { type OpenedWorld, World } from '../../src/simulator/world.ts'
import { administer, type TestService, testWorkflows } from './service.ts'
import type { Environment } from './service-storage.ts'
import { snapshotOf } from './snapshots.ts'

export type SimulatedService = Pick<
  TestService,
  'executionUrl' | 'browserContextUrl' | 'createAccount' | 'change' | 'stop'
>

/**
 * Starts a world behind its front, with the settings and workflows of `startTestService`. The world is in this process instead
 * of a thread, so that its store can be changed. Its time is that of this process, so that what is due happens by itself. Runs
 * stay queued.
 */
export async function startSimulatedService(settings: Environment = {}): Promise<SimulatedService> {
  const opened = Promise.withResolvers<OpenedWorld>()
  const passedTo: PassedTo = {
    listening: async () => (await opened.promise).listening,
    documentHash: (name) => world.documentHashes[name],
  }
  const route = async () => passedTo
  const front = new Front({ HOST: '127.0.0.1' })
  const addresses = await front.open({
    ...{ executionUrl: route, browserContextUrl: route, dashboardUrl: route, managementUrl: route },
  })
  const now = Date.now()
  const changes = { reset: ended, snapshot: ended, restore: ended, listSnapshots: ended }
  const content = async () => ({ workflows: await snapshotOf(testWorkflows), scenarios: [] })
  const dependencies = { clock: new VirtualClock(now), randomness: new SeededRandomness(''), changes, content }
  const simulated = new World(dependencies, {
    ...{ seed: 'parity', now, speed: 1, slots: 0, addresses, apiKeys: [] },
    settings: { LOG_LEVEL: 'silent', API_DEPLOYMENTS: 'on', ...settings },
  })
  const world = await simulated.open()
  opened.resolve(world)
  const { createAccount, close } = administer(simulated.store)
  return {
    ...addresses,
    createAccount,
    change: async (sql, ...values) => void (await simulated.store.write((tx) => tx.all(sql, values))),
    async stop() {
      await front.close()
      await close()
      await simulated.close()
    },
  }
}

async function ended(): Promise<never> {
  throw new Error('The world of a test is not replaced.')
}
