/** Control of a simulator over HTTP: its clock, outcomes by hand, and the state of its world. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createExecutionClient, type ExecutionClient, unwrap } from '../../src/client/index.ts'
import { type Simulator, simulate } from '../../src/simulator/simulator.ts'
import { runModule, writtenSnapshot } from '../support/snapshots.ts'

const workflows = writtenSnapshot({
  order: {
    module: runModule("throw new Error('A simulator runs no code.')"),
    output: {
      type: 'object',
      required: ['price'],
      properties: { price: { type: 'number' } },
      additionalProperties: false,
    },
    retry: { maxAttempts: 3, backoffSeconds: 60, backoffFactor: 2 },
  },
  approve: {
    module: runModule("throw new Error('A simulator runs no code.')"),
    waits: { approval: { schema: { type: 'boolean' }, title: null, description: null } },
  },
})

const now = '2026-03-01T00:00:00.000Z'
let simulator: Simulator
let client: ExecutionClient
beforeAll(async () => {
  simulator = await simulate(Promise.resolve(workflows), { now: new Date(now) })
})
afterAll(() => simulator.stop())
beforeEach(async () => {
  client = createExecutionClient({ baseUrl: simulator.executionUrl, apiKey: simulator.apiKey })
})

async function control(method: string, path: string, body?: unknown) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(`${simulator.managementUrl}/simulator${path}`, { method, body: text ?? null })
  const content = await response.text()
  return { status: response.status, type: response.headers.get('content-type'), body: content && JSON.parse(content) }
}

async function queue(workflowId = 'order') {
  const params = { path: { workflowId } }
  return unwrap(await client.queueRemoteRun({ params, body: { variableData: {} } }))
}

async function getRun(runId: string) {
  return unwrap(await client.getRun({ params: { path: { runId } } }))
}

test('the clock says the time, what is due next and what is pending', async () => {
  await simulator.reset()
  const idle = { queued: 0, delayed: 0, waiting: 0, running: 0, attempts: 0 }
  expect((await control('GET', '/clock')).body).toEqual({ now, speed: 0, next: null, pending: idle })
  await queue()
  expect((await control('GET', '/clock')).body.pending).toEqual({ ...idle, queued: 1 })
  const { status, body } = await control('POST', '/clock', { advanceSeconds: 0.5 })
  expect(status).toBe(200)
  expect(body).toMatchObject({ now: '2026-03-01T00:00:00.500Z', next: { kind: 'attempt' } })
  expect(body.pending).toEqual({ ...idle, running: 1, attempts: 1 })
  const advanced = await control('POST', '/clock', { advanceTo: body.next.at })
  expect(advanced.body).toMatchObject({ now: body.next.at, pending: idle })
})

test('a clock with a speed passes by itself', async () => {
  const { id } = await queue()
  expect((await control('POST', '/clock', { speed: 3600 })).body.speed).toBe(3600)
  await expect.poll(async () => (await getRun(id)).status).toBe('succeeded')
  await control('POST', '/clock', { speed: 0 })
  const stopped = (await control('GET', '/clock')).body.now
  expect((await control('GET', '/clock')).body.now).toBe(stopped)
})

describe('wrong input is refused with its place', () => {
  test.each([
    [{ advanceTo: '2020-01-01T00:00:00Z' }, '/advanceTo', /^is before the present of this world, .*set back$/],
    [{ advanceTo: 'tomorrow' }, '/advanceTo', /^must be a time/],
    [{ advanceSeconds: -1 }, '/advanceSeconds', /^must be a number from 0/],
    [{ speed: 'fast' }, '/speed', /^must be a number from 0/],
    [{ speed: 1, advanceSeconds: 1 }, '', /^must have exactly one/],
    [[], '', /^must be an object$/],
    ['{"speed": 1', '', /^is not JSON/],
  ])('%j', async (body, pointer, detail) => {
    const response = await control('POST', '/clock', body)
    expect(response).toMatchObject({ status: 400, type: expect.stringContaining('application/problem+json') })
    expect(response.body).toMatchObject({
      title: 'Invalid request',
      errors: [{ pointer, detail: expect.stringMatching(detail) }],
    })
  })

  test.each([
    [{ status: 'succeeded', output: { price: 'much' } }, '/output/price'],
    [{ status: 'cancelled' }, '/status'],
    [{ status: 'failed', error: { message: '' } }, '/error/message'],
    [{ status: 'failed', output: 1 }, '/output'],
  ])('an outcome %j', async (body, pointer) => {
    const { id } = await queue()
    const response = await control('PUT', `/runs/${id}/outcome`, body)
    expect(response).toMatchObject({ status: 400, body: { errors: [{ pointer }] } })
  })

  test('an unknown run, snapshot or path is not found', async () => {
    expect(await control('PUT', `/runs/${crypto.randomUUID()}/outcome`, { status: 'timedOut' })).toMatchObject({
      status: 404,
    })
    expect(await control('POST', '/snapshots/missing/restore')).toMatchObject({ status: 404 })
    expect(await control('GET', '/clocks')).toMatchObject({ status: 404 })
  })

  test('a speed or a time that is none', async () => {
    await expect(simulator.setSpeed(Number.NaN)).rejects.toThrow('The speed is NaN: use a number from 0 to 1000000.')
    await expect(simulator.advanceTo(new Date('no'))).rejects.toThrow('The time is not valid.')
    const now = new Date('no')
    await expect(simulate(Promise.resolve(workflows), { now })).rejects.toThrow('now is no valid time.')
  })
})

test('the outcome of a run is decided by hand: at once if it runs, else when it does', async () => {
  const first = await queue()
  await simulator.advance({ seconds: 0 })
  expect(
    await control('PUT', `/runs/${first.id}/outcome`, { status: 'succeeded', output: { price: 7 } }),
  ).toMatchObject({
    status: 204,
  })
  expect(await getRun(first.id)).toMatchObject({ status: 'succeeded', output: { price: 7 } })
  const second = await queue()
  await simulator.decide(second.id, { status: 'failed', error: { name: 'SoldOut', message: 'No more.' } })
  expect(await getRun(second.id)).toMatchObject({ status: 'queued' })
  await simulator.advance({ seconds: 60 })
  expect(await getRun(second.id)).toMatchObject({
    status: 'failed',
    attempts: 1,
    error: { name: 'SoldOut', message: 'No more.' },
  })
  await expect(simulator.decide(second.id, { status: 'timedOut' })).rejects.toThrow('the run has ended as failed')
})

test('a run that waits before its decided outcome ends with it after the answer', async () => {
  const { id: runId } = await queue('approve')
  await simulator.decide(runId, { status: 'failed', error: { name: 'SoldOut', message: 'No more.' } })
  await simulator.advance({ seconds: 60 })
  expect(await getRun(runId)).toMatchObject({ status: 'waiting', waitingFor: 'answer' })
  await client.completeWait({ params: { path: { runId, name: 'approval' } }, body: { value: true } })
  await simulator.advance({ seconds: 60 })
  expect(await getRun(runId)).toMatchObject({ status: 'failed', error: { name: 'SoldOut' } })
})

test('a run whose worker is lost goes on when its lease has ended', async () => {
  const { id } = await queue()
  await simulator.advance({ seconds: 0 })
  await simulator.decide(id, { status: 'workerLost' })
  await simulator.advance({ seconds: 14 })
  expect(await getRun(id)).toMatchObject({ status: 'running' })
  await simulator.advance({ seconds: 60 })
  expect(await getRun(id)).toMatchObject({ status: 'succeeded' })
})

test('a snapshot has the whole state: also attempts that run', async () => {
  await simulator.reset()
  const [{ id }, { id: cancelled }] = [await queue(), await queue()]
  await simulator.advance({ seconds: 1 })
  await client.cancelRun({ params: { path: { runId: cancelled } } })
  expect(await control('POST', '/snapshots', { name: 'running' })).toMatchObject({ status: 201 })
  await simulator.advance({ seconds: 60 })
  const ended = await getRun(id)
  expect(ended).toMatchObject({ status: 'succeeded' })
  expect(await control('POST', '/snapshots/running/restore')).toMatchObject({ status: 204 })
  expect((await control('GET', '/snapshots')).body.data).toEqual([{ name: 'running', now: '2026-03-01T00:00:01.000Z' }])
  expect(await getRun(id)).toMatchObject({ status: 'running' })
  await simulator.advance({ seconds: 60 })
  expect(await getRun(id)).toEqual(ended)
  expect(await getRun(cancelled)).toMatchObject({ status: 'cancelled' })
})

test('the same requests at the same times get the same responses', async () => {
  const scenario = async () => {
    const responses: unknown[] = []
    const recording = async (request: Request) => {
      const response = await fetch(request)
      const { date: _, ...headers } = Object.fromEntries(response.headers)
      responses.push({ status: response.status, headers, body: await response.clone().text() })
      return response
    }
    client = createExecutionClient({ baseUrl: simulator.executionUrl, apiKey: simulator.apiKey, fetch: recording })
    const runs = [await queue(), await queue(), await queue()]
    await client.createSchedule({ body: { workflowId: 'order', variableData: {}, intervalSeconds: 3600 } })
    await simulator.decide(runs[1]?.id as string, { status: 'failed', retry: true })
    await simulator.advance({ seconds: 4 })
    await client.cancelRun({ params: { path: { runId: runs[2]?.id as string } } })
    await simulator.advance({ seconds: 7200 })
    for (const { id } of runs) for await (const _ of client.runs.events(id));
    for await (const _ of client.runs.list({}));
    return responses
  }
  await control('POST', '/reset')
  const first = await scenario()
  await control('POST', '/reset')
  expect(await scenario()).toEqual(first)
  expect(first.length).toBeGreaterThan(8)
})
