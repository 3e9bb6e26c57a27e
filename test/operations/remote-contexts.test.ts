/** Browser contexts of runs that a worker outside of the service executes. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestAccount, type TestService } from '../support/service.ts'
import type { OperationId } from './document.ts'
import { invoice } from './example-runs.ts'
import { claimedWithContext, type Filled, queueRun, send, storageStateFor } from './requests.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false })
})
afterAll(() => service?.stop())

const call = (account: TestAccount, id: OperationId, filled: Filled) => send(service, id, account.key, filled)
const succeeded = { outcome: 'succeeded', output: { invoice: 'I-1' } }
const next = storageStateFor('next.example')
const signIn = { workflowId: 'sign-in', variableData: { user: 'ada', password: 'canary-password-5c0e' } }

async function stored(account: TestAccount, browserContextId: string) {
  const { body } = await call(account, 'getStorageState', { path: { browserContextId } }).expect(200)
  return body
}

async function versions(account: TestAccount, browserContextId: string): Promise<number> {
  const { body } = await call(account, 'listBrowserContextVersions', { path: { browserContextId } }).expect(200)
  return body.data.length
}

test('a run that succeeds stores the state as the next version, and one that fails does not', async () => {
  const account = await service.createAccount()
  const { runId, attempt, contextId, workerId } = await claimedWithContext(service, account)
  const path = { runId, attempt }
  const inUse = await call(account, 'putStorageState', { path: { browserContextId: contextId }, body: next })
  expect(inUse.status).toBe(409)
  const query = `browserContextId=${contextId}`
  const second = await queueRun(service, account, { ...invoice, query })
  const claims = { path: { workerId }, body: { countMax: 1, executing: [{ runId, attempt: 1 }] } }
  await call(account, 'claimRuns', claims).expect(204)
  await call(account, 'completeAttempt', { path, body: { ...succeeded, storageState: next } }).expect(200)
  expect(await stored(account, contextId)).toEqual(next)
  // The context is free now.
  const { body } = await call(account, 'claimRuns', { path: { workerId }, body: { countMax: 1 } }).expect(200)
  expect(body.data).toMatchObject([{ runId: second }])
  const error = { name: 'NoOrder', message: 'There is none.' }
  const failed = { outcome: 'failed', error, storageState: storageStateFor('failed.example') }
  await call(account, 'completeAttempt', { path: { runId: second, attempt: '1' }, body: failed }).expect(200)
  expect(await stored(account, contextId)).toEqual(next)
})

test('persistContext decides: always stores the state of a failed attempt too, never none', async () => {
  const account = await service.createAccount()
  const error = { name: 'NoOrder', message: 'There is none.' }
  const always = await claimedWithContext(service, account, '&persistContext=always')
  const path = { runId: always.runId, attempt: always.attempt }
  await call(account, 'completeAttempt', { path, body: { outcome: 'failed', error, storageState: next } }).expect(200)
  expect(await stored(account, always.contextId)).toEqual(next)
  const never = await claimedWithContext(service, account, '&persistContext=never')
  expect(never.claim.browserContext).toEqual({ id: never.contextId, persistContext: 'never' })
  const end = { path: { runId: never.runId, attempt: never.attempt }, body: { ...succeeded, storageState: next } }
  await call(account, 'completeAttempt', end).expect(200)
  expect(await stored(account, never.contextId)).toEqual(storageStateFor('shop.example'))
})

test('a state that has not changed makes no version', async () => {
  const account = await service.createAccount()
  const { runId, attempt, contextId } = await claimedWithContext(service, account)
  const body = { ...succeeded, storageState: storageStateFor('shop.example') }
  await call(account, 'completeAttempt', { path: { runId, attempt }, body }).expect(200)
  expect(await versions(account, contextId)).toBe(1)
})

test('a state that is too large fails the run, and leaves the context as it was', async () => {
  const account = await service.createAccount()
  const { runId, attempt, contextId } = await claimedWithContext(service, account)
  const [cookie] = next.cookies
  const storageState = { cookies: [{ ...cookie, value: 'x'.repeat(5.5 * 1024 * 1024) }], origins: [] }
  const path = { runId, attempt }
  const { body } = await call(account, 'completeAttempt', { path, body: { ...succeeded, storageState } }).expect(200)
  expect(body).toEqual({ status: 'failed', reason: 'contextNotSaved' })
  expect(await stored(account, contextId)).toEqual(storageStateFor('shop.example'))
})

test('an attempt that has lost its lease stores nothing', async () => {
  const account = await service.createAccount()
  const { runId, attempt, contextId, workerId } = await claimedWithContext(service, account)
  await call(account, 'deleteWorker', { path: { workerId } }).expect(204)
  const end = { path: { runId, attempt }, body: { ...succeeded, storageState: next } }
  await call(account, 'completeAttempt', end).expect(409)
  expect(await stored(account, contextId)).toEqual(storageStateFor('shop.example'))
  expect(
    await service.rows('SELECT id FROM browser_context_versions WHERE browser_context_id = ?', contextId),
  ).toHaveLength(1)
})

test('a run that was cancelled meanwhile stores nothing', async () => {
  const account = await service.createAccount()
  const { runId, attempt, contextId } = await claimedWithContext(service, account)
  await call(account, 'cancelRun', { path: { runId } }).expect(200)
  const path = { runId, attempt }
  const { body } = await call(account, 'completeAttempt', { path, body: { ...succeeded, storageState: next } })
  expect(body.status).toBe('cancelled')
  expect(await stored(account, contextId)).toEqual(storageStateFor('shop.example'))
})

test('cookies are masked in what a worker reports, and in the error of the run', async () => {
  const account = await service.createAccount()
  const { runId, attempt } = await claimedWithContext(service, account)
  const path = { runId, attempt }
  const [cookie] = next.cookies
  const before = 'ü "7f3a"'
  const events = [{ type: 'log', level: 'info', message: `signed in with ${before}` }]
  await call(account, 'appendRunEvents', { path, body: { position: 0, events } }).expect(204)
  const storageState = { cookies: [{ ...cookie, value: 'canary-of-a-new-session' }], origins: [] }
  const error = { name: 'Refused', message: 'The site refuses canary-of-a-new-session.' }
  await call(account, 'completeAttempt', { path, body: { outcome: 'failed', error, storageState } }).expect(200)
  const rows = await service.rows('SELECT data FROM run_events WHERE run_id = ?', runId)
  const run = await call(account, 'getRun', { path: { runId } }).expect(200)
  expect(run.body.error.message).toBe('The site refuses ********.')
  expect(JSON.stringify([rows, run.body])).not.toMatch(/7f3a|canary/)
})

test('a run that waits keeps the state of its browser for when it goes on', async () => {
  const account = await service.createAccount()
  const { runId, attempt, contextId, workerId } = await claimedWithContext(service, account)
  const path = { runId, attempt }
  const waits = [{ kind: 'answer', name: 'approval', title: 'Send it?' }]
  const stays = await call(account, 'suspendAttempt', { path, body: { waits, names: ['approval'], suspend: false } })
  expect(stays.body).toMatchObject({ suspended: false, ended: [] })
  const waiting = { outcome: 'waiting', names: ['approval'], storageState: next }
  const { body } = await call(account, 'completeAttempt', { path, body: waiting })
  expect(body).toEqual({ status: 'waiting', reason: 'waiting' })
  expect(await stored(account, contextId)).toEqual(next)
  await call(account, 'claimRuns', { path: { workerId }, body: { countMax: 1 } }).expect(204)
  const answer = { path: { runId, name: 'approval' }, body: { value: { approved: true } } }
  await call(account, 'completeWait', answer).expect(200)
  const again = await call(account, 'claimRuns', { path: { workerId }, body: { countMax: 1, waitSeconds: 10 } }).expect(
    200,
  )
  expect(again.body.data).toMatchObject([{ runId, attempt: 2, number: 1 }])
})

test('only a worker with a browser gets runs of deployed workflows that use one', async () => {
  const account = await service.createAccount()
  const runId = await queueRun(service, account, {
    path: { workflowId: 'print' },
    query: '',
    body: { variableData: {} },
  })
  const register = async (members: object) => {
    const path = { workerId: crypto.randomUUID() }
    const worker = { name: 'desk', language: 'Node.js', capacity: 1, deployed: true, ...members }
    await call(account, 'registerWorker', { path, body: worker }).expect(200)
    return { path, body: { countMax: 1 } }
  }
  await call(account, 'claimRuns', await register({})).expect(204)
  const { body } = await call(account, 'claimRuns', await register({ browser: true })).expect(200)
  expect(body.data).toMatchObject([{ runId, browserContext: null }])
})

test('an attempt that finds no session fails, and says that no sign-in was started if there is one', async () => {
  const account = await service.createAccount()
  const error = { name: 'SignedOut', message: 'The shop asks for a password.' }
  const messages: string[] = []
  for (const hasSignIn of [false, true]) {
    const { runId, attempt, contextId } = await claimedWithContext(service, account)
    if (hasSignIn) await call(account, 'setSignIn', { path: { browserContextId: contextId }, body: signIn }).expect(200)
    await call(account, 'completeAttempt', { path: { runId, attempt }, body: { outcome: 'failed', error } }).expect(200)
    const { body } = await call(account, 'getRun', { path: { runId } }).expect(200)
    expect(body).toMatchObject({ status: 'failed', error: { name: 'SignedOut' } })
    messages.push(body.error.message)
  }
  expect(messages).toEqual([
    error.message,
    `${error.message} The sign-in of the browser context was not started, because a worker over HTTP executed the run.`,
  ])
})
