/** The mock answers as the service does: every request that the documents give rise to is put to both. */
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { browserContextContract, executionContract } from '../../src/openapi/served-documents.ts'
import { type Mock, startMock } from '../../src/tools/mock/mock.ts'
import { operationOf, operations } from '../operations/document.ts'
import { send } from '../operations/requests.ts'
import { startTestService, type TestService, until } from '../support/service.ts'
import { casesOf, casesOfNone } from './cases.ts'
import { differing, unpermitted } from './compare.ts'
import { type Difference, permitted } from './differences.ts'
import { keysOfMock, newBase, newCaller, outcomeOf, put, rawOf } from './servers.ts'
import { stories } from './stories.ts'

let service: TestService
let mock: Mock
const anyPort = { host: '127.0.0.1', executionPort: 0, browserContextPort: 0, log: pino({ level: 'silent' }) }

beforeAll(async () => {
  service = await startTestService({ worker: false })
  mock = await startMock(anyPort)
})
afterAll(async () => {
  await mock.stop()
  await service.stop()
})

describe('the mock answers as the service does', () => {
  const seen = new Set<Difference>()

  test.each(operations)('to requests of $id: parameters, bodies, credentials, media types', async (operation) => {
    expect(unpermitted(await differing(service, mock, casesOf(operation)), permitted, seen)).toEqual([])
  })

  test('to requests of no operation, and to what is not HTTP', async () => {
    expect(unpermitted(await differing(service, mock, casesOfNone()), permitted, seen)).toEqual([])
  })

  test('to requests that depend on others, but for what it has forgotten', async () => {
    expect(unpermitted(await differing(service, mock, stories()), permitted, seen)).toEqual([])
  })

  test('to a caller that waits for a run which finishes in time', async () => {
    const operation = operationOf('queueRemoteRun')
    const good = await newBase(service, operation, await newCaller(service, operation))
    // Without its delay, for which the mock does not wait.
    const base = { ...good, query: [], headers: ['Prefer', 'wait=30'] }
    const answering = put(service.executionUrl, rawOf(base))
    const run = await until('the run is queued', async () => {
      const { body } = await send(service, 'listRuns', base.keys.good)
      return body.data[0]
    })
    await send(service, 'cancelRun', base.keys.good, { path: { runId: run.id } }).expect(200)
    const expected = outcomeOf(operation, await answering)
    const found = outcomeOf(operation, await put(mock.executionUrl, rawOf({ ...base, keys: keysOfMock })))
    expect(found).toEqual(expected)
    expect(found).toMatchObject({ status: 200, headers: expect.arrayContaining(['preference-applied: wait=30']) })
  })

  test('to a key that has made all the requests that it may, but for what it has not counted', async (context) => {
    const limited = await startTestService({ worker: false, settings: { RATE_LIMIT_PER_MINUTE: '1' } })
    context.onTestFinished(() => limited.stop())
    // The one request is that which makes the run to list.
    const [good] = casesOf(operationOf('listRuns'))
    expect(unpermitted(await differing(limited, mock, good ? [good] : []), permitted, seen)).toEqual([])
  })

  test('except where it is permitted not to; of these differences, every one still occurs', () => {
    expect(permitted.filter((difference) => !seen.has(difference)).map(({ what }) => what)).toEqual([])
  })
})

test('a mock that has another document than the service is found out', async () => {
  const document = structuredClone(executionContract.document)
  const { parameters } = document.components as { parameters: Record<string, { schema: { maximum?: number } }> }
  for (const name of ['Priority', 'Limit']) delete parameters[name]?.schema.maximum
  const contracts = { execution: { ...executionContract, document }, browserContext: browserContextContract }
  const other = await startMock({ ...anyPort, contracts })
  const cases = casesOf(operationOf('queueRemoteRun')).filter(({ title }) => title.includes('priority'))
  const found = unpermitted(await differing(service, other, cases), permitted, new Set())
  await other.stop()
  expect(found.map((text) => text.split('\n')[0])).toEqual(['queueRemoteRun: priority above its maximum'])
})
