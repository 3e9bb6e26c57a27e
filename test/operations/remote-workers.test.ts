/** A worker outside of the service executes runs over HTTP: from its registration to the end of a run. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startTestService, type TestAccount, type TestService } from '../support/service.ts'
import { waitLimits } from '../support/timeouts.ts'
import type { OperationId } from './document.ts'
import { invoice, newWorker } from './example-runs.ts'
import { claimedAttempt, type Filled, putSecret, queueRun, registerWorker, reverseText, send } from './requests.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: true })
})
afterAll(() => service?.stop())

const call = (account: TestAccount, id: OperationId, filled: Filled) => send(service, id, account.key, filled)

async function getRun(account: TestAccount, runId: string) {
  const { body } = await call(account, 'getRun', { path: { runId } }).expect(200)
  return body
}

function claim(account: TestAccount, workerId: string, members: object = {}) {
  return call(account, 'claimRuns', { path: { workerId }, body: { countMax: 10, ...members } })
}

test('a run is validated, claimed, followed and completed', async () => {
  const account = await service.createAccount()
  const refused = await call(account, 'queueRemoteRun', { ...invoice, body: { variableData: {} } })
  expect(refused.status).toBe(404)
  const workerId = await registerWorker(service, account)
  const invalid = await call(account, 'queueRemoteRun', { ...invoice, body: { variableData: {} } }).expect(400)
  expect(invalid.body.errors).toEqual([{ pointer: '/variableData/orderId', detail: 'is required' }])
  const runId = await queueRun(service, account, {
    ...invoice,
    body: { variableData: { orderId: 'A', token: 'hunter22' } },
  })
  const { body } = await claim(account, workerId).expect(200)
  const [claimed] = body.data
  expect(claimed).toMatchObject({ runId, attempt: 1, number: 1, workflowVersion: '1.0.0', steps: [], hasWaits: false })
  expect(claimed.variableData).toEqual({ orderId: 'A', token: 'hunter22' })
  expect(await getRun(account, runId)).toMatchObject({ status: 'running', attempts: 1 })
  const path = { runId, attempt: '1' }
  const events = [
    { type: 'log', level: 'info', message: 'with hunter22' },
    { type: 'progress', percent: 50 },
    { type: 'step', name: 'charge', state: 'started' },
  ]
  await call(account, 'appendRunEvents', { path, body: { position: 0, events } }).expect(204)
  await call(account, 'appendRunEvents', { path, body: { position: 0, events } }).expect(204)
  const step = { path: { ...path, stepName: 'charge' }, body: { value: { paymentId: 'p1' } } }
  await call(account, 'putRunStep', step).expect(204)
  await call(account, 'putRunStep', step).expect(204)
  await call(account, 'putRunStep', { ...step, body: { value: 2 } }).expect(409)
  const file = { mediaType: 'text/plain', content: Buffer.from('Hello').toString('base64') }
  await call(account, 'putAttemptArtifact', { path: { ...path, artifactName: 'a.txt' }, body: file }).expect(204)
  const done = await call(account, 'completeAttempt', {
    path,
    body: { outcome: 'succeeded', output: { invoice: 'I' } },
  })
  expect(done.body).toEqual({ status: 'succeeded', reason: null })
  await call(account, 'completeAttempt', { path, body: { outcome: 'succeeded', output: { invoice: 'I' } } }).expect(409)
  const run = await getRun(account, runId)
  expect(run).toMatchObject({ status: 'succeeded', output: { invoice: 'I' }, progress: { percent: 50 } })
  expect(run.artifacts).toMatchObject([{ name: 'a.txt', sizeBytes: 5 }])
  const stored = await service.rows<{ type: string; data: string }>(
    'SELECT type, data FROM run_events WHERE run_id = ? ORDER BY sequence',
    runId,
  )
  expect(stored.map(({ type }) => type)).toEqual(['status', 'log', 'progress', 'step', 'step', 'artifact', 'status'])
  expect(JSON.stringify(stored)).not.toContain('hunter22')
})

test('a long poll gets a run as soon as it is queued, and workers of the service leave it alone', async () => {
  const account = await service.createAccount()
  const workerId = await registerWorker(service, account)
  const waiting = claim(account, workerId, { waitSeconds: 30 }).then(({ body }) => body.data)
  const runId = await queueRun(service, account, invoice)
  expect(await waiting).toMatchObject([{ runId }])
  expect((await claim(account, workerId, { executing: [{ runId, attempt: 1 }] })).status).toBe(204)
  // The response of the first claim was lost.
  const again = await claim(account, workerId).expect(200)
  expect(again.body.data).toMatchObject([{ runId, attempt: 1 }])
})

test('a failed attempt is retried as the workflow says, and gets its steps', async () => {
  const account = await service.createAccount()
  const workflows = [{ ...newWorker.workflows[0], retry: { maxAttempts: 2, backoffSeconds: 0 } }]
  const workerId = await registerWorker(service, account, { workflows })
  const runId = await queueRun(service, account, invoice)
  await claim(account, workerId).expect(200)
  const path = { runId, attempt: '1' }
  await call(account, 'putRunStep', { path: { ...path, stepName: 'charge' }, body: { value: 'paid' } }).expect(204)
  const error = { name: 'ValueError', message: 'No customer', stack: 'File "a.py", line 3' }
  const failed = await call(account, 'completeAttempt', { path, body: { outcome: 'failed', error } }).expect(200)
  expect(failed.body).toEqual({ status: 'queued', reason: 'attemptFailed' })
  const { body } = await claim(account, workerId).expect(200)
  expect(body.data).toMatchObject([{ runId, attempt: 2, number: 2, steps: [{ name: 'charge', value: 'paid' }] }])
  await call(account, 'putRunStep', { path: { ...path, stepName: 'late' }, body: { value: 1 } }).expect(409)
  const invalid = { path: { runId, attempt: '2' }, body: { outcome: 'succeeded', output: {} } }
  const ended = await call(account, 'completeAttempt', invalid).expect(200)
  expect(ended.body).toEqual({ status: 'failed', reason: 'outputInvalid' })
})

test('a run waits without its worker, and goes on with the answer', async () => {
  const account = await service.createAccount()
  const { workerId, runId, attempt } = await claimedAttempt(service, account)
  const waits = [{ kind: 'answer', name: 'approval', title: 'Send it?' }]
  const path = { runId, attempt }
  const undeclared = { waits: [{ kind: 'answer', name: 'other' }], names: ['other'] }
  const refused = await call(account, 'suspendAttempt', { path, body: undeclared }).expect(200)
  expect(refused.body).toMatchObject({ suspended: false, refused: [{ name: 'other', errorName: 'TypeError' }] })
  const suspended = await call(account, 'suspendAttempt', { path, body: { waits, names: ['approval'] } }).expect(200)
  expect(suspended.body).toEqual({ suspended: true, ended: [], refused: [], deadlines: [] })
  expect(await getRun(account, runId)).toMatchObject({
    status: 'waiting',
    waitingFor: 'answer',
    waitingForDetail: { kind: 'answer', message: expect.stringContaining('waits for the answer') },
  })
  expect((await claim(account, workerId)).status).toBe(204)
  const answer = { path: { runId, name: 'approval' }, body: { value: { approved: true } } }
  await call(account, 'completeWait', answer).expect(200)
  const { body } = await claim(account, workerId, { waitSeconds: 10 }).expect(200)
  const steps = [{ name: 'approval', value: { ok: true, value: { approved: true } } }]
  expect(body.data).toMatchObject([{ runId, attempt: 2, number: 1, hasWaits: true, steps }])
})

test('an outcome whose response was lost comes again when the worker repeats its call', async () => {
  const account = await service.createAccount()
  const { runId, attempt } = await claimedAttempt(service, account)
  const answer = { path: { runId, name: 'approval' }, body: { value: { approved: true } } }
  await call(account, 'completeWait', answer).expect(200)
  const body = { waits: [{ kind: 'answer', name: 'approval' }], names: ['approval'] }
  const suspend = () => call(account, 'suspendAttempt', { path: { runId, attempt }, body }).expect(200)
  const first = await suspend()
  expect(first.body).toMatchObject({ suspended: false, ended: [{ name: 'approval' }] })
  expect((await suspend()).body).toEqual(first.body)
  const stored = await service.rows<{ data: string }>(
    "SELECT data FROM run_events WHERE run_id = ? AND type = 'step' ORDER BY sequence",
    runId,
  )
  expect(stored.map(({ data }) => JSON.parse(data).state)).toEqual(['started', 'finished'])
})

test('secrets of an answer are masked in what the worker reports after it', async () => {
  const account = await service.createAccount()
  const { workerId, runId, attempt } = await claimedAttempt(service, account)
  const answer = { path: { runId, name: 'code' }, body: { value: 'swordfish' } }
  await call(account, 'completeWait', answer).expect(200)
  const path = { runId, attempt }
  const body = { waits: [{ kind: 'answer', name: 'code' }], names: ['code'] }
  const { body: suspended } = await call(account, 'suspendAttempt', { path, body }).expect(200)
  expect(suspended.ended).toEqual([{ name: 'code', outcome: { ok: true, value: 'swordfish' } }])
  const events = [{ type: 'log', level: 'info', message: 'The code is swordfish' }]
  await call(account, 'appendRunEvents', { path, body: { position: 0, events } }).expect(204)
  const stored = await service.rows<{ data: string }>('SELECT data FROM run_events WHERE run_id = ?', runId)
  expect(JSON.stringify(stored)).toContain('The code is ********')
  expect(JSON.stringify(stored)).not.toContain('swordfish')
  // A waiting request for runs ends when a run is cancelled.
  const waiting = claim(account, workerId, { waitSeconds: 30, executing: [{ runId, attempt: Number(attempt) }] })
  const polled = waiting.then(({ status }) => status)
  await call(account, 'cancelRun', { path: { runId } }).expect(200)
  expect(await polled).toBe(204)
})

test('reports are masked by what the claim handed out, whatever version the worker registers since', async () => {
  const account = await service.createAccount()
  await putSecret(service, account, 'API_TOKEN', 'hunter22-of-the-account')
  const [own] = newWorker.workflows
  const before = { ...newWorker, workflows: [{ ...own, secrets: ['API_TOKEN'] }] }
  const { workerId, runId, attempt } = await claimedAttempt(service, account, invoice, account, before)
  await call(account, 'completeWait', { path: { runId, name: 'code' }, body: { value: 'swordfish' } }).expect(200)
  const path = { runId, attempt }
  const waits = { waits: [{ kind: 'answer', name: 'code' }], names: ['code'] }
  await call(account, 'suspendAttempt', { path, body: waits }).expect(200)
  const code = { schema: { type: 'string' } }
  const after = { ...newWorker, workflows: [{ ...own, version: '1.1.0', waits: { ...own?.waits, code } }] }
  await call(account, 'registerWorker', { path: { workerId }, body: after }).expect(200)
  const events = [{ type: 'log', level: 'info', message: 'with hunter22-of-the-account and swordfish' }]
  await call(account, 'appendRunEvents', { path, body: { position: 0, events } }).expect(204)
  const step = { path: { ...path, stepName: 'swordfish' }, body: { value: null } }
  await call(account, 'putRunStep', step).expect(204)
  const failed = { outcome: 'failed', error: { name: 'Error', message: 'not hunter22-of-the-account' } }
  await call(account, 'completeAttempt', { path, body: failed }).expect(200)
  const stored = await service.rows<{ data: string }>('SELECT data FROM run_events WHERE run_id = ?', runId)
  expect(JSON.stringify(stored)).toContain('with ******** and ********')
  for (const text of [JSON.stringify(stored), JSON.stringify(await getRun(account, runId))])
    expect(text).not.toMatch(/hunter22|swordfish/)
})

test('a claim of a run that goes on has the outcomes of its sleep and of its call among its steps', async () => {
  const account = await service.createAccount()
  const { workerId, runId, attempt } = await claimedAttempt(service, account)
  const waits = [
    { kind: 'sleep', name: 'pause', seconds: 0 },
    { kind: 'run', name: 'call', workflowId: 'greet', variableData: { name: 'Ada' } },
  ]
  const names = ['pause', 'call']
  const { body } = await call(account, 'suspendAttempt', { path: { runId, attempt }, body: { waits, names } })
  expect(body).toMatchObject({ suspended: true, deadlines: [{ name: 'pause', secondsLeft: 0 }] })
  const goesOn = async () => (await claim(account, workerId, { waitSeconds: 20 })).body.data?.[0]
  let claimed = await goesOn()
  while (claimed?.steps.length < 2) {
    const path = { runId, attempt: String(claimed.attempt) }
    await call(account, 'suspendAttempt', { path, body: { names: ['call'] } }).expect(200)
    claimed = await goesOn()
  }
  const outcomes = new Map(claimed.steps.map(({ name, value }: { name: string; value: unknown }) => [name, value]))
  expect(outcomes.get('pause')).toBe(null)
  expect(outcomes.get('call')).toMatchObject({ ok: true, output: expect.anything() })
  const again = await claim(account, workerId)
  expect(again.body.data).toMatchObject([{ runId, steps: claimed.steps }])
})

test('a worker does not get a run that was queued for a deployment of another major version', async () => {
  const account = await service.createAccount()
  await call(account, 'createDeployment', { body: reverseText('1.0.0') }).expect(201)
  const filled = { path: { workflowId: 'reverse-text' }, query: 'delaySeconds=3600', body: { variableData: {} } }
  const runId = await queueRun(service, account, filled)
  const other = JSON.parse(JSON.stringify(reverseText('1.0.0')).replaceAll('reverse-text', 'other-text'))
  await call(account, 'createDeployment', { body: { ...other, allowBreaking: true } }).expect(201)
  const [own] = newWorker.workflows
  const workflows = [{ ...own, id: 'reverse-text', version: '2.0.0' }]
  const workerId = await registerWorker(service, account, { workflows })
  await service.change('UPDATE runs SET delayed = 0 WHERE id = ?', runId)
  await claim(account, workerId).expect(204)
  const waitingForDetail = {
    kind: 'deployment',
    message: expect.stringContaining('No worker executes the version 1.0.0 of reverse-text.'),
  }
  expect(await getRun(account, runId)).toMatchObject({ status: 'queued', attempts: 0, waitingForDetail })
})

test('a renewal names a cancelled run, and a worker that signs off returns its runs', async () => {
  const account = await service.createAccount()
  const first = await claimedAttempt(service, account)
  await call(account, 'cancelRun', { path: { runId: first.runId } }).expect(200)
  const leases = [
    { runId: first.runId, attempt: 1 },
    { runId: crypto.randomUUID(), attempt: 1 },
  ]
  const renewed = await call(account, 'renewLeases', { path: { workerId: first.workerId }, body: { leases } }).expect(
    200,
  )
  expect(renewed.body).toMatchObject({ extended: [], cancelled: [leases[0]], lost: [leases[1]] })
  const path = { runId: first.runId, attempt: '1' }
  const ended = await call(account, 'completeAttempt', { path, body: { outcome: 'cancelled' } }).expect(200)
  expect(ended.body).toEqual({ status: 'cancelled', reason: 'cancelRequested' })
  const second = await claimedAttempt(service, account)
  await call(account, 'deleteWorker', { path: { workerId: second.workerId } }).expect(204)
  expect(await getRun(account, second.runId)).toMatchObject({ status: 'queued', reason: 'workerStopped' })
  await call(account, 'deleteWorker', { path: { workerId: second.workerId } }).expect(404)
})

test('a run of another major version stays in the queue, and says which one has no worker', async () => {
  const account = await service.createAccount()
  const first = await registerWorker(service, account)
  const old = await queueRun(service, account, invoice)
  await call(account, 'deleteWorker', { path: { workerId: first } }).expect(204)
  const [workflow] = newWorker.workflows
  const second = await registerWorker(service, account, { workflows: [{ ...workflow, version: '2.0.0' }] })
  expect((await claim(account, second)).status).toBe(204)
  const runId = await queueRun(service, account, invoice)
  const { body } = await claim(account, second).expect(200)
  expect(body.data).toMatchObject([{ runId, workflowVersion: '2.0.0' }])
  // It was never started: neither an attempt nor a delay is left.
  const message = 'No worker is there that executes major version 1 of send-invoice.'
  const waitingForDetail = { kind: 'worker', name: 'send-invoice', message }
  const waiting = { status: 'queued', attempts: 0, waitingFor: 'worker', waitingForDetail, startedAt: null }
  expect(await getRun(account, old)).toMatchObject(waiting)
  const stored = await service.rows('SELECT type FROM run_events WHERE run_id = ?', old)
  expect(stored).toEqual([])
  const third = await registerWorker(service, account, { workflows: [{ ...workflow, version: '1.2.0' }] })
  expect((await claim(account, third).expect(200)).body.data).toMatchObject([{ runId: old, attempt: 1 }])
})

test('a version has one set of schemas, and a change that breaks callers needs a higher major version', async () => {
  const account = await service.createAccount()
  await registerWorker(service, account)
  const [workflow] = newWorker.workflows
  const variables = { ...workflow?.variables, required: ['orderId', 'customerId'] }
  const register = (members: object) => {
    const body = { ...newWorker, workflows: [{ ...workflow, ...members }] }
    return call(account, 'registerWorker', { path: { workerId: crypto.randomUUID() }, body })
  }
  const other = await register({ variables }).expect(409)
  expect(other.body.detail).toMatch(/^The version 1\.0\.0 .* \([0-9a-f]{12}, and not [0-9a-f]{12}\)/)
  const withProperty = {
    ...variables,
    properties: { ...workflow?.variables.properties, customerId: { type: 'string' } },
  }
  await queueRun(service, account, invoice)
  const breaking = await register({ version: '1.1.0', variables: withProperty }).expect(409)
  expect(breaking.body.detail).toContain('Set its version to 2.0.0')
  expect(breaking.body.detail).toContain('An API key made 1 call in the last 30 days that would be refused.')
  await register({ version: '2.0.0', variables: withProperty }).expect(200)
  const listed = await call(account, 'getWorkflow', { path: { workflowId: 'send-invoice' } }).expect(200)
  expect(listed.body).toMatchObject({ version: '2.0.0' })
  // The worker of the first version does not get runs of the second one.
  const document = await call(account, 'getWorkflowsDocument', {}).expect(200)
  expect(JSON.stringify(document.body)).toContain('/v1/execution/queue-remote/send-invoice')
  const broken = await register({
    version: '3.0.0',
    variables: { type: 'object', properties: { a: { type: 'text' } } },
  })
  expect(broken.status).toBe(400)
  expect(broken.body.errors[0].pointer).toBe('/workflows/0')
})

test('another account sees nothing of a worker, its runs and its workflows', async () => {
  const [account, other] = [await service.createAccount(), await service.createAccount()]
  const { workerId, runId, attempt } = await claimedAttempt(service, account)
  expect((await claim(other, workerId)).status).toBe(404)
  expect((await call(other, 'getWorkflow', { path: { workflowId: 'send-invoice' } })).status).toBe(404)
  const path = { runId, attempt }
  await call(other, 'completeAttempt', { path, body: { outcome: 'cancelled' } }).expect(404)
  await registerWorker(service, other, {})
  await vi.waitUntil(async () => {
    const { body } = await call(other, 'listWorkers', {}).expect(200)
    return body.data.length === 2 && body.data.every(({ id }: { id: string }) => id !== workerId)
  }, waitLimits)
})

test('another key of the account uses neither a worker nor what it executes', async () => {
  const account = await service.createAccount()
  const { workerId, runId, attempt } = await claimedAttempt(service, account)
  const { value: other } = await account.createKey()
  const path = { workerId }
  await send(service, 'claimRuns', other, { path, body: { countMax: 1 } }).expect(404)
  await send(service, 'registerWorker', other, { path, body: newWorker }).expect(409)
  const step = { path: { runId, attempt, stepName: 'charge' }, body: { value: 'paid' } }
  await send(service, 'putRunStep', other, step).expect(409)
  await call(account, 'putRunStep', step).expect(204)
})

test('events of an attempt follow each other without a gap, and those of the next one begin again', async () => {
  const account = await service.createAccount()
  const workflows = [{ ...newWorker.workflows[0], retry: { maxAttempts: 2, backoffSeconds: 0 } }]
  const { workerId, runId, attempt } = await claimedAttempt(service, account, invoice, account, { workflows })
  const append = (of: string, position: number, message: string) => {
    const events = [{ type: 'log', level: 'info', message }]
    return call(account, 'appendRunEvents', { path: { runId, attempt: of }, body: { position, events } })
  }
  await append(attempt, 1, 'too early').expect(400)
  await append(attempt, 0, 'first').expect(204)
  await append(attempt, 1, 'second').expect(204)
  const failed = { outcome: 'failed', error: { name: 'Error', message: 'No customer' } }
  await call(account, 'completeAttempt', { path: { runId, attempt }, body: failed }).expect(200)
  await claim(account, workerId).expect(200)
  await append('2', 0, 'again').expect(204)
  const logged = "SELECT data FROM run_events WHERE run_id = ? AND type = 'log' ORDER BY sequence"
  const rows = await service.rows<{ data: string }>(logged, runId)
  expect(rows.map(({ data }) => JSON.parse(data).message)).toEqual(['first', 'second', 'again'])
})

test('a worker without workflows registers, and again', async () => {
  const account = await service.createAccount()
  const workerId = await registerWorker(service, account, { workflows: [], deployed: true })
  const again = { path: { workerId }, body: { ...newWorker, workflows: [], deployed: true } }
  const { body } = await call(account, 'registerWorker', again).expect(200)
  expect(body).toMatchObject({ id: workerId, deployed: true, workflows: [] })
})
