/**
 * The simulator responds like the service to every request derived from the documents. `parity.slow.test.ts` compares other
 * requests, for which the operations matter less than the listeners.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operations } from '../operations/document.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { type SimulatedService, startSimulatedService } from '../support/simulated-service.ts'
import { casesForOperation } from './cases.ts'
import { describeUnpermitted, findSimulated } from './compare.ts'
import { referenceSettings } from './servers.ts'

let service: TestService
let simulator: SimulatedService

beforeAll(async () => {
  service = await startTestService({ worker: false, settings: referenceSettings })
  simulator = await startSimulatedService(referenceSettings)
})
afterAll(async () => {
  await simulator?.stop()
  await service.stop()
})

// Some wait for half a minute, or for a process.
test.concurrent.each(operations)('the simulator responds like the service to requests of $id', async (operation) => {
  const differences = await findSimulated(service, simulator, casesForOperation(operation))
  expect(describeUnpermitted(differences, [], new Set())).toEqual([])
})
