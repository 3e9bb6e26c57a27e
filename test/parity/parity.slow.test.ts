/**
 * The mock responds like the simulator, which is the service, to every request derived from the documents.
 * `simulator.release.test.ts` compares the simulator with the service.
 */
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { browserContextContract, executionContract } from '../../src/openapi/served-documents.ts'
import { type Mock, startMock } from '../../src/tools/mock/mock.ts'
import { jumpingClock, testedWorkflows } from '../mock/use-mock.ts'
import { operationOf, operations } from '../operations/document.ts'
import { send } from '../operations/requests.ts'
import { startTestService, type TestService, until } from '../support/service.ts'
import { type SimulatedService, startSimulatedService } from '../support/simulated-service.ts'
import { casesForOperation, casesWithoutOperation, type ParityCase } from './cases.ts'
import { describeUnpermitted, findDifferences, findSimulated } from './compare.ts'
import { type Difference, ofPages, ofState, permitted } from './differences.ts'
import {
  createBase,
  createCaller,
  mockKeySet,
  type Reference,
  referenceSettings,
  sendRequest,
  toOutcome,
  toRawRequest,
} from './servers.ts'
import { pageRequests, stories } from './stories.ts'

let simulator: SimulatedService
let service: TestService
let mock: Mock
const anyPort = {
  ...{ host: '127.0.0.1', executionPort: 0, browserContextPort: 0 },
  ...{ log: pino({ level: 'silent' }), clock: jumpingClock() },
}

beforeAll(async () => {
  simulator = await startSimulatedService(referenceSettings)
  service = await startTestService({ worker: false, settings: referenceSettings })
  mock = await startMock({ ...anyPort, workflows: await testedWorkflows() })
})
afterAll(async () => {
  await mock?.stop()
  await service?.stop()
  await simulator.stop()
})

const seen = new Set<Difference>()

describe('the mock responds like the simulator', () => {
  const findUnpermitted = async (reference: Reference, cases: readonly ParityCase[]) =>
    describeUnpermitted(await findDifferences(reference, mock, cases), ofState, seen)

  // Some wait for half a minute, or for a process.
  test.concurrent.each(operations)(
    'to requests of $id: parameters, bodies, credentials, media types',
    async (operation) => {
      expect(await findUnpermitted(simulator, casesForOperation(operation))).toEqual([])
    },
  )

  test('to requests outside the documents, and to invalid HTTP', async () => {
    expect(await findUnpermitted(simulator, casesWithoutOperation())).toEqual([])
  })

  test('to requests that depend on earlier ones, except for their effects', async () => {
    expect(await findUnpermitted(simulator, stories())).toEqual([])
  })

  test('to a caller that waits for a run that finishes in time', async () => {
    const operation = operationOf('queueRemoteRun')
    const good = await createBase(simulator, operation, await createCaller(simulator, operation))
    // Without a delay, for which the mock does not wait.
    const base = { ...good, query: [], headers: ['Prefer', 'wait=30'] }
    const response = sendRequest(simulator.executionUrl, toRawRequest(base))
    const run = await until('the run is queued', async () => {
      const { body } = await send(simulator, 'listRuns', base.keys.good)
      return body.data[0]
    })
    await send(simulator, 'cancelRun', base.keys.good, { path: { runId: run.id } }).expect(200)
    const expected = toOutcome(operation, await response)
    const actual = toOutcome(
      operation,
      await sendRequest(mock.executionUrl, toRawRequest({ ...base, keys: mockKeySet })),
    )
    expect(actual).toEqual(expected)
    expect(actual).toMatchObject({ status: 200, headers: expect.arrayContaining(['preference-applied: wait=30']) })
  })

  test('to a key that exceeds its rate limit, except for the limit', async (context) => {
    const limited = await startSimulatedService({ RATE_LIMIT_PER_MINUTE: '1' })
    context.onTestFinished(() => limited.stop())
    // The one permitted request creates the run to list.
    const [valid] = casesForOperation(operationOf('listRuns'))
    expect(await findUnpermitted(limited, valid ? [valid] : [])).toEqual([])
  })
})

// What the service itself does: the listeners of the simulator are others, and pages of any origin may call the mock.
describe('both respond like the service', () => {
  test('to requests outside the documents, to invalid HTTP, and to those that depend on earlier ones', async () => {
    const differences = await findSimulated(service, simulator, [...casesWithoutOperation(), ...stories()])
    expect(describeUnpermitted(differences, [], seen)).toEqual([])
  })

  test('except to pages of other origins', async () => {
    const ofSimulator = await findSimulated(service, simulator, pageRequests())
    const ofMock = await findDifferences(service, mock, pageRequests())
    expect(ofSimulator).toEqual([])
    expect(describeUnpermitted(ofMock, ofPages, seen)).toEqual([])
  })
})

test('the permitted differences all occur', () => {
  expect(permitted.filter((difference) => !seen.has(difference)).map(({ what }) => what)).toEqual([])
})

test('the comparison detects a mock with a different document', async () => {
  const document = structuredClone(executionContract.document)
  const { parameters } = document.components as { parameters: Record<string, { schema: { maximum?: number } }> }
  for (const name of ['Priority', 'Limit']) delete parameters[name]?.schema.maximum
  const contracts = { execution: { ...executionContract, document }, browserContext: browserContextContract }
  const other = await startMock({ ...anyPort, contracts, workflows: await testedWorkflows() })
  const cases = casesForOperation(operationOf('queueRemoteRun')).filter(({ title }) => title.includes('priority'))
  const unpermitted = describeUnpermitted(await findDifferences(simulator, other, cases), permitted, new Set())
  await other.stop()
  expect(unpermitted.map((text) => text.split('\n')[0])).toEqual(['queueRemoteRun: priority above its maximum'])
})
