/** Runs get the secrets and settings that their workflow declares, wait for those that are missing, and reveal none. */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestAccount, type TestService } from '../support/service.ts'
import type { OperationId } from './document.ts'
import { newWorker } from './example-runs.ts'
import { type Filled, putSecret, putSetting, queueRun, send } from './requests.ts'

let service: TestService
beforeAll(async () => {
  const WORKFLOWS_DIR = fileURLToPath(new URL('declaring-workflows', import.meta.url))
  service = await startTestService({ settings: { WORKFLOWS_DIR } })
})
afterAll(() => service.stop())

const token = 'canary-5b1f0d8a6de21c0a'

// biome-ignore lint/suspicious/noExplicitAny: responses have been checked against the document
type Body = any

const queueShop = (account: TestAccount, variableData: object = {}) =>
  queueRun(service, account, { path: { workflowId: 'shop' }, query: '', body: { variableData } })

async function runUntil(account: TestAccount, runId: string, isReached: (run: Body) => boolean): Promise<Body> {
  return expect
    .poll(async () => (await send(service, 'getRun', account.key, { path: { runId } })).body, {
      timeout: 20_000,
      interval: 50,
    })
    .toSatisfy(isReached)
    .then(async () => (await send(service, 'getRun', account.key, { path: { runId } })).body)
}

const isFinished = ({ finishedAt }: Body) => finishedAt !== null
const waitsFor = (kind: string | null) => (run: Body) => run.waitingFor === kind

test('a run waits for a missing secret, then for a setting, and starts when each is stored', async () => {
  const account = await service.createAccount()
  const runId = await queueShop(account)
  const first = await runUntil(account, runId, waitsFor('secret'))
  const detail = 'The secret SHOP_TOKEN is missing. Also missing: SHOP_URL.'
  expect(first).toMatchObject({ status: 'queued', reason: null, attempts: 0, waitingForDetail: { message: detail } })
  await putSecret(service, account, 'SHOP_TOKEN', token)
  const second = await runUntil(account, runId, waitsFor('setting'))
  expect(second).toMatchObject({
    attempts: 0,
    waitingForDetail: { kind: 'setting', name: 'SHOP_URL', message: 'The setting SHOP_URL is missing.' },
  })
  await putSetting(service, account, 'SHOP_URL', 7)
  const third = await runUntil(account, runId, ({ waitingForDetail }) => /fit/.test(waitingForDetail?.message))
  expect(third.waitingForDetail.message).toBe('The setting SHOP_URL does not fit the workflow: must be string.')
  const storedAt = Date.now()
  await putSetting(service, account, 'SHOP_URL', 'https://shop.example.com')
  const last = await runUntil(account, runId, isFinished)
  expect(last).toMatchObject({ status: 'succeeded', attempts: 1 })
  expect(last.output).toEqual({
    said: 'The token is ********.',
    length: token.length,
    last: 'a',
    url: 'https://shop.example.com',
  })
  expect(Date.parse(last.startedAt) - storedAt).toBeLessThan(10_000)
})

test('a secret appears in nothing that a run or the service reports', async () => {
  const account = await service.createAccount()
  await putSecret(service, account, 'SHOP_TOKEN', token)
  await putSetting(service, account)
  const texts: string[] = []
  for (const fails of [false, true]) {
    const runId = await queueShop(account, { fails })
    const run = await runUntil(account, runId, isFinished)
    expect(run.status).toBe(fails ? 'failed' : 'succeeded')
    texts.push(JSON.stringify(run))
    texts.push((await send(service, 'streamRunEvents', account.key, { path: { runId } })).text)
    texts.push(
      (await send(service, 'getRunArtifact', account.key, { path: { runId, artifactName: 'names.txt' } })).text,
    )
  }
  texts.push((await send(service, 'listSecrets', account.key)).text)
  texts.push(JSON.stringify(await service.rows('SELECT * FROM audit_log WHERE account_id = ?', account.id)))
  texts.push(JSON.stringify(await service.rows('SELECT e.* FROM run_events e')))
  texts.push(JSON.stringify(service.log))
  const spellings = [token, Buffer.from(token).toString('base64').slice(2, 20), encodeURIComponent(token)]
  for (const text of texts) for (const spelling of spellings) expect(text).not.toContain(spelling)
  expect(texts[1]).toContain('********')
})

test('a change is seen by the next attempt, and by a part that goes on after a wait', async () => {
  const account = await service.createAccount()
  await putSecret(service, account, 'SHOP_TOKEN', 'canary-first-1')
  await putSetting(service, account)
  const retried = await queueShop(account, { failsFirst: true })
  await runUntil(account, retried, ({ attemptHistory }) => attemptHistory.length === 1 && attemptHistory[0].finishedAt)
  await putSecret(service, account, 'SHOP_TOKEN', 'canary-second-2')
  expect((await runUntil(account, retried, isFinished)).output).toMatchObject({ last: '2', length: 15 })
  const waiting = await queueShop(account, { waits: true })
  await runUntil(account, waiting, waitsFor('answer'))
  await putSecret(service, account, 'SHOP_TOKEN', 'canary-third--3')
  const path = { runId: waiting, name: 'approval' }
  await send(service, 'completeWait', account.key, { path, body: { value: true } }).expect(200)
  const { output, attempts } = await runUntil(account, waiting, isFinished)
  expect([output.last, attempts]).toEqual(['3', 1])
})

test('a deletion revokes the secret at the next attempt, and the waiting run can be cancelled', async () => {
  const account = await service.createAccount()
  await putSecret(service, account, 'SHOP_TOKEN', token)
  await putSetting(service, account)
  await runUntil(account, await queueShop(account), isFinished)
  await send(service, 'deleteSecret', account.key, { path: { name: 'SHOP_TOKEN' } }).expect(204)
  const runId = await queueShop(account)
  await runUntil(account, runId, waitsFor('secret'))
  expect((await send(service, 'cancelRun', account.key, { path: { runId } })).body.status).toBe('cancelled')
})

test('another account with the same name does not get the value', async () => {
  const [account, other] = [await service.createAccount(), await service.createAccount()]
  await putSecret(service, account, 'SHOP_TOKEN', token)
  await putSetting(service, account)
  const runId = await queueShop(other)
  await runUntil(other, runId, waitsFor('secret'))
  await runUntil(account, await queueShop(account), isFinished)
  expect((await runUntil(other, runId, waitsFor('secret'))).attempts).toBe(0)
})

test('lists say which workflows declare a name, and workflows what they declare', async () => {
  const account = await service.createAccount()
  await putSecret(service, account, 'SHOP_TOKEN', token)
  await putSecret(service, account, 'UNUSED', token)
  const { body } = await send(service, 'listSecrets', account.key)
  expect(body.data.map((each: Body) => [each.name, each.workflowIds])).toEqual([
    ['SHOP_TOKEN', ['shop']],
    ['UNUSED', []],
  ])
  const workflow = (await send(service, 'getWorkflow', account.key, { path: { workflowId: 'shop' } })).body
  expect([workflow.secrets, workflow.settings]).toEqual([
    ['SHOP_TOKEN'],
    { SHOP_URL: { type: 'string', format: 'uri' } },
  ])
})

test('many runs that wait all start when the secret is stored', async () => {
  const account = await service.createAccount()
  await putSetting(service, account)
  const runIds = await Promise.all(Array.from({ length: 12 }, () => queueShop(account)))
  for (const runId of runIds) await runUntil(account, runId, waitsFor('secret'))
  await putSecret(service, account, 'SHOP_TOKEN', token)
  for (const runId of runIds) expect((await runUntil(account, runId, isFinished)).status).toBe('succeeded')
})

test('a worker outside of the service gets what its workflow declares, and the service masks what it reports', async () => {
  const account = await service.createAccount()
  const workerId = crypto.randomUUID()
  const [own] = newWorker.workflows
  const declared = { ...own, id: 'remote-shop', secrets: ['SHOP_TOKEN'], settings: { SHOP_URL: { type: 'string' } } }
  const call = (id: OperationId, filled: Filled) => send(service, id, account.key, filled)
  await call('registerWorker', { path: { workerId }, body: { ...newWorker, workflows: [declared] } }).expect(200)
  const body = { variableData: { orderId: 'A-1', token: crypto.randomUUID() } }
  const runId = await queueRun(service, account, { path: { workflowId: 'remote-shop' }, query: '', body })
  const claim = () => call('claimRuns', { path: { workerId }, body: { countMax: 5 } })
  await claim().expect(204)
  expect(await runUntil(account, runId, waitsFor('secret'))).toMatchObject({ attempts: 0 })
  await putSecret(service, account, 'SHOP_TOKEN', token)
  await putSecret(service, account, 'OTHER', 'canary-of-another-workflow')
  await putSetting(service, account)
  const [claimed] = (await claim().expect(200)).body.data
  expect(claimed).toMatchObject({
    runId,
    accountSecrets: { SHOP_TOKEN: token },
    settings: { SHOP_URL: 'https://shop.example.com' },
  })
  expect(JSON.stringify(claimed)).not.toContain('canary-of-another-workflow')
  // The worker has not got the response, and the secret changes: what the worker may have got is masked, and repeated.
  await putSecret(service, account, 'SHOP_TOKEN', 'canary-rotated')
  expect((await claim().expect(200)).body.data[0].accountSecrets).toEqual({ SHOP_TOKEN: token })
  const path = { runId, attempt: String(claimed.attempt) }
  const events = [{ type: 'log', level: 'info', message: `the token is ${token}` }]
  await call('appendRunEvents', { path, body: { position: 0, events } }).expect(204)
  const failed = { outcome: 'failed', error: { name: token, message: `refused ${token}` } }
  await call('completeAttempt', { path, body: failed }).expect(200)
  const run = (await call('getRun', { path: { runId } })).body
  const stored = await service.rows('SELECT data FROM run_events WHERE run_id = ?', runId)
  for (const text of [JSON.stringify(run), JSON.stringify(stored)]) expect(text).not.toContain(token)
  expect(JSON.stringify(stored)).toContain('the token is ********')
})

test('a run that was handed back gets the secret of now, although its attempt has the same number', async () => {
  const account = await service.createAccount()
  const workerId = crypto.randomUUID()
  const [own] = newWorker.workflows
  const call = (id: OperationId, filled: Filled) => send(service, id, account.key, filled)
  const workflows = [{ ...own, id: 'remote-shop', secrets: ['SHOP_TOKEN'] }]
  await call('registerWorker', { path: { workerId }, body: { ...newWorker, workflows } }).expect(200)
  await putSecret(service, account, 'SHOP_TOKEN', token)
  const body = { variableData: { orderId: 'A-1', token: crypto.randomUUID() } }
  const runId = await queueRun(service, account, { path: { workflowId: 'remote-shop' }, query: '', body })
  const claim = () => call('claimRuns', { path: { workerId }, body: { countMax: 5, waitSeconds: 20 } })
  const [first] = (await claim().expect(200)).body.data
  await call('handBackAttempt', { path: { runId, attempt: String(first.attempt) }, body: { message: 'no memory' } })
  await putSecret(service, account, 'SHOP_TOKEN', 'canary-rotated')
  const [second] = (await claim().expect(200)).body.data
  expect([second.number, second.accountSecrets]).toEqual([first.number, { SHOP_TOKEN: 'canary-rotated' }])
})

test('a deployment that declares what the account lacks is accepted, and says what is missing', async () => {
  const account = await service.createAccount()
  const definition = {
    ...{ id: 'deployed-shop', version: '1.0.0', title: 'Shop', variables: { type: 'object' }, output: {} },
    ...{ secrets: ['SHOP_TOKEN'], settings: { LIMIT: { type: 'integer' } } },
  }
  const content = `export default { ...${JSON.stringify(definition)}, run: ({ settings }) => settings.LIMIT }`
  const body = { files: [{ path: 'shop.js', content }], modules: [{ path: 'shop.js', source: 'shop.ts' }] }
  await putSetting(service, account, 'LIMIT', 'many')
  const deployed = await send(service, 'createDeployment', account.key, { body })
  expect(deployed.status, deployed.text).toBe(201)
  const missing = [
    { kind: 'secret', name: 'SHOP_TOKEN', workflowId: 'deployed-shop', detail: 'The secret SHOP_TOKEN is missing.' },
    {
      ...{ kind: 'setting', name: 'LIMIT', workflowId: 'deployed-shop' },
      detail: 'The setting LIMIT does not fit the workflow: must be integer.',
    },
  ]
  expect(deployed.body.missing).toEqual(missing)
  await putSecret(service, account, 'SHOP_TOKEN', token)
  await putSetting(service, account, 'LIMIT', 7)
  const path = { deploymentId: deployed.body.id }
  expect((await send(service, 'activateDeployment', account.key, { path })).body.missing).toEqual([])
  const runId = await queueRun(service, account, {
    ...{ path: { workflowId: 'deployed-shop' }, query: '', body: { variableData: {} } },
  })
  expect((await runUntil(account, runId, isFinished)).output).toBe(7)
})
