/** The mock responds like the service to every request derived from the documents. */
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { browserContextContract, executionContract } from '../../src/openapi/served-documents.ts'
import { type Mock, startMock } from '../../src/tools/mock/mock.ts'
import { jumpingClock, testedWorkflows } from '../mock/use-mock.ts'
import { operationOf, operations } from '../operations/document.ts'
import { send } from '../operations/requests.ts'
import { startTestService, type TestService, until } from '../support/service.ts'
import { casesForOperation, casesWithoutOperation } from './cases.ts'
import { describeUnpermitted, findDifferences } from './compare.ts'
import { type Difference, permitted } from './differences.ts'
import { createBase, createCaller, mockKeySet, sendRequest, toOutcome, toRawRequest } from './servers.ts'
import { stories } from './stories.ts'

let service: TestService
let mock: Mock
const anyPort = {
  ...{ host: '127.0.0.1', executionPort: 0, browserContextPort: 0 },
  ...{ log: pino({ level: 'silent' }), clock: jumpingClock() },
}

/** The examples have a rule that sends emails. */
const mailServer = { SMTP_URL: 'smtp://127.0.0.1:1', SMTP_FROM: 'service@shop.example' }

beforeAll(async () => {
  service = await startTestService({ worker: false, settings: mailServer })
  mock = await startMock({ ...anyPort, workflows: await testedWorkflows() })
})
afterAll(async () => {
  await mock.stop()
  await service.stop()
})

describe('the mock responds like the service', () => {
  const seen = new Set<Difference>()

  test.each(operations)('to requests of $id: parameters, bodies, credentials, media types', async (operation) => {
    expect(
      describeUnpermitted(await findDifferences(service, mock, casesForOperation(operation)), permitted, seen),
    ).toEqual([])
  })

  test('to requests outside the documents, and to invalid HTTP', async () => {
    expect(describeUnpermitted(await findDifferences(service, mock, casesWithoutOperation()), permitted, seen)).toEqual(
      [],
    )
  })

  test('to requests that depend on earlier ones, except for their effects', async () => {
    expect(describeUnpermitted(await findDifferences(service, mock, stories()), permitted, seen)).toEqual([])
  })

  test('to a caller that waits for a run that finishes in time', async () => {
    const operation = operationOf('queueRemoteRun')
    const good = await createBase(service, operation, await createCaller(service, operation))
    // Without a delay, for which the mock does not wait.
    const base = { ...good, query: [], headers: ['Prefer', 'wait=30'] }
    const response = sendRequest(service.executionUrl, toRawRequest(base))
    const run = await until('the run is queued', async () => {
      const { body } = await send(service, 'listRuns', base.keys.good)
      return body.data[0]
    })
    await send(service, 'cancelRun', base.keys.good, { path: { runId: run.id } }).expect(200)
    const expected = toOutcome(operation, await response)
    const actual = toOutcome(
      operation,
      await sendRequest(mock.executionUrl, toRawRequest({ ...base, keys: mockKeySet })),
    )
    expect(actual).toEqual(expected)
    expect(actual).toMatchObject({ status: 200, headers: expect.arrayContaining(['preference-applied: wait=30']) })
  })

  test('to a key that exceeds its rate limit, except for the limit', async (context) => {
    const limited = await startTestService({ worker: false, settings: { RATE_LIMIT_PER_MINUTE: '1' } })
    context.onTestFinished(() => limited.stop())
    // The one permitted request creates the run to list.
    const [valid] = casesForOperation(operationOf('listRuns'))
    expect(describeUnpermitted(await findDifferences(limited, mock, valid ? [valid] : []), permitted, seen)).toEqual([])
  })

  test('except for the permitted differences, which all occur', () => {
    expect(permitted.filter((difference) => !seen.has(difference)).map(({ what }) => what)).toEqual([])
  })
})

test('the comparison detects a mock with a different document', async () => {
  const document = structuredClone(executionContract.document)
  const { parameters } = document.components as { parameters: Record<string, { schema: { maximum?: number } }> }
  for (const name of ['Priority', 'Limit']) delete parameters[name]?.schema.maximum
  const contracts = { execution: { ...executionContract, document }, browserContext: browserContextContract }
  const other = await startMock({ ...anyPort, contracts, workflows: await testedWorkflows() })
  const cases = casesForOperation(operationOf('queueRemoteRun')).filter(({ title }) => title.includes('priority'))
  const unpermitted = describeUnpermitted(await findDifferences(service, other, cases), permitted, new Set())
  await other.stop()
  expect(unpermitted.map((text) => text.split('\n')[0])).toEqual(['queueRemoteRun: priority above its maximum'])
})
