/** Runs name the environment of their account, if it has several. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestAccount, type TestService } from '../support/service.ts'
import { send } from './requests.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false })
})
afterAll(() => service.stop())

/** The environment in each response that has the run. */
async function environmentsOf({ key }: TestAccount): Promise<unknown[]> {
  const path = { workflowId: 'greet' }
  const run = { workflowId: 'greet', variableData: { name: 'Ada' } }
  const { body: queued } = await send(service, 'queueRemoteRun', key, {
    path,
    body: { variableData: run.variableData },
  })
  const { body: batch } = await send(service, 'queueRemoteRunBatch', key, { body: { runs: [run] } }).expect(202)
  const runId = { path: { runId: queued.id } }
  const { body: read } = await send(service, 'getRun', key, runId).expect(200)
  const { body: listed } = await send(service, 'listRuns', key).expect(200)
  const { body: cancelled } = await send(service, 'cancelRun', key, runId).expect(200)
  const { body: repeated } = await send(service, 'rerunRun', key, { ...runId, body: {} }).expect(202)
  return [queued, ...batch.data, read, ...listed.data, cancelled, repeated].map(({ environment }) => environment)
}

test('runs name their environment once the account has several', async () => {
  const account = await service.createAccount()
  expect(new Set(await environmentsOf(account))).toEqual(new Set([undefined]))
  const other = await service.createEnvironment(account)
  expect(new Set(await environmentsOf(account))).toEqual(new Set(['production']))
  expect(new Set(await environmentsOf(other))).toEqual(new Set(['e1']))
})
