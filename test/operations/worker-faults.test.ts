/** A worker that repeats or reorders its calls or sends too much. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { artifactWritesMax, tooManyArtifactWrites } from '../../src/domain/runs/artifact.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { operationOf } from './document.ts'
import { addressOf, claimedAttempt, registerWorker, requestOf, send, sendRequest } from './requests.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false })
})
afterAll(() => service?.stop())

const log = (message: string) => ({ type: 'log', level: 'info', message })

test('events that overtake earlier ones are refused, and none is lost or stored twice', async () => {
  const account = await service.createAccount()
  const { runId, attempt } = await claimedAttempt(service, account)
  const path = { runId, attempt }
  const append = (position: number, ...messages: string[]) =>
    send(service, 'appendRunEvents', account.key, { path, body: { position, events: messages.map(log) } })
  const early = await append(1, 'second').expect(400)
  expect(early.body.errors).toEqual([
    { pointer: '/position', detail: 'is more than 0, the number of events that arrived' },
  ])
  await append(0, 'first').expect(204)
  await append(0, 'first', 'second').expect(204)
  await append(1, 'second', 'third').expect(204)
  const select = "SELECT data FROM run_events WHERE run_id = ? AND type = 'log' ORDER BY sequence"
  const stored = await service.rows<{ data: string }>(select, runId)
  expect(stored.map(({ data }) => JSON.parse(data).message)).toEqual(['first', 'second', 'third'])
})

test('events that come with other reports are stored once, and only with reports that are accepted', async () => {
  const account = await service.createAccount()
  const { runId, attempt } = await claimedAttempt(service, account)
  const path = { runId, attempt }
  const events = (position: number, ...messages: string[]) => ({ position, events: messages.map(log) })
  const putStep = (value: number, before: object) =>
    send(service, 'putRunStep', account.key, { path: { ...path, stepName: 'charge' }, body: { value, events: before } })
  const early = await putStep(1, events(1, 'second')).expect(400)
  expect(early.body.errors).toEqual([
    { pointer: '/events/position', detail: 'is more than 0, the number of events that arrived' },
  ])
  await putStep(1, events(0, 'first')).expect(204)
  await putStep(1, events(0, 'first', 'second')).expect(204)
  await putStep(2, events(2, 'of a refused step')).expect(409)
  const wait = { kind: 'answer', name: 'approval' }
  const body = { waits: [wait], names: ['approval'], suspend: false, events: events(2, 'third') }
  await send(service, 'suspendAttempt', account.key, { path, body }).expect(200)
  await send(service, 'suspendAttempt', account.key, { path, body }).expect(200)
  const outcome = {
    outcome: 'failed',
    error: { name: 'Error', message: '' },
    events: events(1, 'second', 'third', 'last'),
  }
  await send(service, 'completeAttempt', account.key, { path, body: outcome }).expect(200)
  const select = "SELECT type, data FROM run_events WHERE run_id = ? AND type IN ('log', 'step') ORDER BY sequence"
  const stored = await service.rows<{ type: string; data: string }>(select, runId)
  const texts = stored
    .map(({ data }) => JSON.parse(data))
    .map(({ message, name, state }) => message ?? `${name} ${state}`)
  expect(texts).toEqual(['first', 'charge finished', 'second', 'third', 'approval started', 'last'])
})

test('a report that is repeated after its attempt was handed back does not reach the next one', async () => {
  const account = await service.createAccount()
  const { runId, attempt } = await claimedAttempt(service, account)
  const path = { runId, attempt }
  await send(service, 'putRunStep', account.key, { path: { ...path, stepName: 'charge' }, body: { value: 1 } }).expect(
    204,
  )
  const body = { message: 'The workflow cannot be loaded.' }
  const handBack = () => send(service, 'handBackAttempt', account.key, { path, body })
  await handBack().expect(204)
  await service.change('UPDATE runs SET delayed = 0, available_at = ? WHERE id = ?', Date.now(), runId)
  const workerId = await registerWorker(service, account)
  const claimed = await send(service, 'claimRuns', account.key, { path: { workerId }, body: { countMax: 1 } }).expect(
    200,
  )
  const [next] = claimed.body.data
  expect(next).toMatchObject({ runId, number: 1, steps: [{ name: 'charge', value: 1 }] })
  await handBack().expect(409)
  await send(service, 'completeAttempt', account.key, { path, body: { outcome: 'cancelled' } }).expect(409)
  const own = { path: { runId, attempt: String(next.attempt) }, body: { outcome: 'cancelled' } }
  await send(service, 'completeAttempt', account.key, own).expect(200)
  const run = await send(service, 'getRun', account.key, { path: { runId } }).expect(200)
  expect(run.body).toMatchObject({ status: 'cancelled', attempts: 1 })
})

test('an output of 2 MiB is refused, and the attempt goes on', async () => {
  const account = await service.createAccount()
  const { runId, attempt } = await claimedAttempt(service, account)
  const operation = operationOf('completeAttempt')
  const large = { outcome: 'succeeded', output: { invoice: 'x'.repeat(2 * 1024 * 1024) } }
  const request = requestOf(operation, account.key, { path: { runId, attempt }, body: large })
  const refused = await sendRequest(addressOf(service, operation), request)
  expect([refused.status, refused.body.errors]).toMatchObject([400, [{ pointer: '/output' }]])
  const error = { name: 'OutputTooLarge', message: 'The output is too large.' }
  const failed = { path: { runId, attempt }, body: { outcome: 'failed', error } }
  const { body } = await send(service, 'completeAttempt', account.key, failed).expect(200)
  expect(body).toEqual({ status: 'failed', reason: 'workflowFailed' })
})

test('an attempt may write artifacts 100 times, and goes on when more are refused', async () => {
  const account = await service.createAccount()
  const { runId, attempt } = await claimedAttempt(service, account)
  const put = (artifactName: string) => {
    const path = { runId, attempt, artifactName }
    return send(service, 'putAttemptArtifact', account.key, {
      path,
      body: { mediaType: 'text/plain', content: 'SGVsbG8=' },
    })
  }
  for (let write = 0; write < artifactWritesMax; write += 1) await put('state.txt').expect(204)
  const { body } = await put('state.txt').expect(400)
  expect(body.errors).toEqual([{ pointer: '', detail: tooManyArtifactWrites }])
  const events = { path: { runId, attempt }, body: { position: 0, events: [log('written')] } }
  await send(service, 'appendRunEvents', account.key, events).expect(204)
  await put('other.txt').expect(400)
  const returned = { path: { runId, attempt }, body: {} }
  await send(service, 'handBackAttempt', account.key, returned).expect(204)
})
