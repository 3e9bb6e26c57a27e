/** However a run is queued, it waits for missing secrets, gets those of when its attempt starts, and reveals none. */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestAccount, type TestService } from '../support/service.ts'
import { waitLimits } from '../support/timeouts.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'
import type { OperationId } from './document.ts'
import { newWorker } from './example-runs.ts'
import { createSchedule, type Filled, putSecret, putSetting, queueRun, send } from './requests.ts'

let service: TestService
beforeAll(async () => {
  const WORKFLOWS_DIR = fileURLToPath(new URL('declaring-workflows', import.meta.url))
  service = await startTestService({ settings: { WORKFLOWS_DIR, WEBHOOK_PRIVATE_ADDRESSES: '127.0.0.1' } })
})
afterAll(() => service.stop())

// biome-ignore lint/suspicious/noExplicitAny: responses have been checked against the document
type Body = any

/** Of different lengths and last characters, which the workflow returns. */
const [first, second] = ['canary-of-the-first-version-1', 'canary-of-version-2']

const call = async (account: TestAccount, id: OperationId, filled: Filled = {}) => {
  const response = await send(service, id, account.key, filled)
  expect(response.status, response.text).toBeLessThan(300)
  return response.body
}
const read = (account: TestAccount, runId: string): Promise<Body> => call(account, 'getRun', { path: { runId } })

async function until(account: TestAccount, runId: string, isReached: (run: Body) => boolean): Promise<Body> {
  await expect.poll(() => read(account, runId), waitLimits).toSatisfy(isReached)
  return read(account, runId)
}

const isFinished = ({ finishedAt }: Body) => finishedAt !== null
const waitsForSecret = ({ waitingFor, waitingForDetail }: Body) =>
  waitingFor === 'secret' && waitingForDetail?.message === 'The secret SHOP_TOKEN is missing.'

/** The workflow returns what tells one version from another. */
const got = (run: Body) => ({ status: run.status, last: run.output?.last, length: run.output?.length })
const gets = (secret: string) => ({ status: 'succeeded', last: secret.at(-1), length: secret.length })

async function newAccount(secret?: string): Promise<TestAccount> {
  const account = await service.createAccount()
  await putSetting(service, account)
  if (secret !== undefined) await putSecret(service, account, 'SHOP_TOKEN', secret)
  return account
}

const queueShop = (account: TestAccount, variableData: object = {}) =>
  queueRun(service, account, { path: { workflowId: 'shop' }, query: '', body: { variableData } })

/** What the account, its runs and the log show. */
async function expectNoSecret(account: TestAccount, ...more: unknown[]) {
  const { data } = await call(account, 'listRuns', { query: 'limit=100' })
  const shown = [...more, service.log]
  for (const { id: runId } of data) {
    shown.push(await read(account, runId))
    shown.push((await send(service, 'streamRunEvents', account.key, { path: { runId } })).text)
  }
  const text = JSON.stringify(shown)
  for (const secret of [first, second]) expect(text).not.toContain(secret)
  expect(text).toContain('********')
}

test('a run of a schedule waits for the secret, and the next one gets its new version', async () => {
  const account = await newAccount()
  const path = { scheduleId: await createSchedule(service, account, { workflowId: 'shop', variableData: {} }) }
  const { id } = await call(account, 'triggerSchedule', { path })
  expect(await until(account, id, waitsForSecret)).toMatchObject({ attempts: 0, scheduleId: path.scheduleId })
  await putSecret(service, account, 'SHOP_TOKEN', first)
  expect(got(await until(account, id, isFinished))).toEqual(gets(first))
  await putSecret(service, account, 'SHOP_TOKEN', second)
  const next = await call(account, 'triggerSchedule', { path })
  expect(got(await until(account, next.id, isFinished))).toEqual(gets(second))
  await expectNoSecret(account)
})

test('a run again, from the start or from a step, waits for a deleted secret, and gets the one of now', async () => {
  const account = await newAccount(first)
  const runId = await queueShop(account, { fails: true })
  expect(await until(account, runId, isFinished)).toMatchObject({ status: 'failed', attempts: 2 })
  await call(account, 'deleteSecret', { path: { name: 'SHOP_TOKEN' } })
  const queued: Body[] = []
  for (const start of [{}, { fromStep: 'report' }])
    queued.push(await call(account, 'rerunRun', { path: { runId }, body: { variableData: {}, ...start } }))
  for (const { id } of queued) await until(account, id, waitsForSecret)
  await putSecret(service, account, 'SHOP_TOKEN', second)
  for (const { id } of queued) expect(got(await until(account, id, isFinished))).toEqual(gets(second))
  // The result of the step before it has the first version, which the workflow logs.
  const [, { id: fromStep }] = queued
  const { text } = await send(service, 'streamRunEvents', account.key, { path: { runId: fromStep } })
  expect(text.match(/"The token is \*{8}\."/g)?.length).toBeGreaterThanOrEqual(2)
  await expectNoSecret(account)
})

test('runs of a bulk action wait for the secret, and all start with it', async () => {
  const account = await newAccount(first)
  const failed = await Promise.all([1, 2, 3].map(() => queueShop(account, { fails: true })))
  for (const id of failed) await until(account, id, isFinished)
  await call(account, 'deleteSecret', { path: { name: 'SHOP_TOKEN' } })
  const { id: bulkActionId } = await call(account, 'bulkRerunRuns', { body: { status: ['failed'] } })
  const action = () => call(account, 'getBulkAction', { path: { bulkActionId } })
  await expect.poll(action, waitLimits).toMatchObject({ status: 'finished', matched: 3 })
  const runs = async () => {
    const { data } = await call(account, 'listRuns')
    return data.filter(({ rerunOf }: Body) => failed.includes(rerunOf))
  }
  await expect.poll(runs, waitLimits).toSatisfy((all: Body[]) => all.length === 3 && all.every(waitsForSecret))
  await putSecret(service, account, 'SHOP_TOKEN', second)
  // They fail as the first ones did, with the secret.
  for (const { id } of await runs())
    expect(await until(account, id, isFinished)).toMatchObject({ status: 'failed', reason: 'workflowFailed' })
  await expectNoSecret(account)
})

test('a webhook has no secret, and none is sent for a run that waits for one', async (context) => {
  const account = await newAccount()
  const receiver = await startWebhookReceiver(context)
  const events = ['run.succeeded', 'run.failed']
  const created = await call(account, 'createWebhookEndpoint', { body: { url: receiver.url('/hooks'), events } })
  receiver.accept('/hooks', { secret: created.secret })
  const runId = await queueShop(account)
  await until(account, runId, waitsForSecret)
  await putSecret(service, account, 'SHOP_TOKEN', first)
  await until(account, await queueShop(account, { fails: true }), isFinished)
  const received = () => receiver.received('/hooks').map(({ event }) => event.type)
  await expect.poll(() => received().toSorted(), waitLimits).toEqual(['run.failed', 'run.succeeded'])
  await expectNoSecret(account, receiver.received('/hooks'))
  expect(receiver.refused).toEqual([])
})

test('a call by MCP returns at once with the name that is missing, and its task with the masked result', async () => {
  const account = await newAccount()
  const headers = { Authorization: `Bearer ${account.key}`, 'Content-Type': 'application/json' }
  const request = async (method: string, params: object) => {
    const response = await fetch(`${service.executionUrl}/mcp`, {
      method: 'POST',
      headers: { ...headers, Accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    return JSON.parse((await response.text()).replace(/^event: message\ndata: /, '')).result
  }
  const waiting = await request('tools/call', { name: 'shop', arguments: {} })
  const taskId = waiting._meta['execution-service/runId']
  expect(waiting).toMatchObject({ isError: true })
  const asked = `Run ${taskId} waits for a secret. The secret SHOP_TOKEN is missing. It goes on when the value is there: `
  expect(waiting.content[0].text).toContain(asked)
  const task = await request('tasks/get', { taskId })
  expect(task).toMatchObject({ status: 'working', statusMessage: expect.stringContaining(asked) })
  await putSecret(service, account, 'SHOP_TOKEN', first)
  const result = await request('tasks/result', { taskId })
  expect(result.structuredContent).toMatchObject({ said: 'The token is ********.', length: first.length })
  await putSetting(service, account, 'SHOP_URL', 7)
  const unfit = await request('tools/call', { name: 'shop', arguments: {} })
  expect(unfit.content[0].text).toContain('waits for a setting. The setting SHOP_URL does not fit the workflow')
  await request('tasks/cancel', { taskId: unfit._meta['execution-service/runId'] })
  await expectNoSecret(account, waiting, task, result, unfit)
})

test('what a worker outside of the service has got in the result of a step stays masked when it is replaced', async () => {
  const account = await newAccount(first)
  const workerId = crypto.randomUUID()
  const [own] = newWorker.workflows
  const workflows = [
    { ...own, id: 'remote-shop', secrets: ['SHOP_TOKEN'], retry: { maxAttempts: 2, backoffSeconds: 1 } },
  ]
  await call(account, 'registerWorker', { path: { workerId }, body: { ...newWorker, workflows } })
  const body = { variableData: { orderId: 'A-1', token: crypto.randomUUID() } }
  const runId = await queueRun(service, account, { path: { workflowId: 'remote-shop' }, query: '', body })
  const claim = async () => {
    const { data } = await call(account, 'claimRuns', { path: { workerId }, body: { countMax: 1, waitSeconds: 20 } })
    return { steps: data[0].steps, secrets: data[0].accountSecrets, attempt: String(data[0].attempt) }
  }
  const before = await claim()
  const step = { path: { runId, attempt: before.attempt, stepName: 'sign' }, body: { value: { header: first } } }
  await call(account, 'putRunStep', step)
  await call(account, 'putRunStep', step)
  const failed = { outcome: 'failed', error: { name: 'E', message: first } }
  await call(account, 'completeAttempt', { path: { runId, attempt: before.attempt }, body: failed })
  await putSecret(service, account, 'SHOP_TOKEN', second)
  const { steps, secrets, attempt } = await claim()
  expect([steps, secrets]).toEqual([
    [{ name: 'sign', value: { header: first }, maskedSecrets: [first] }],
    { SHOP_TOKEN: second },
  ])
  const path = { runId, attempt }
  const events = [{ type: 'log', level: 'info', message: `sent ${first} and ${second}` }]
  await call(account, 'appendRunEvents', { path, body: { position: 0, events } })
  await call(account, 'completeAttempt', { path, body: failed })
  const { text } = await send(service, 'streamRunEvents', account.key, { path: { runId } })
  expect(text).toContain('sent ******** and ********')
  await expectNoSecret(account)
})
