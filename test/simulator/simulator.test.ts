/** The simulator over HTTP: what the service does by the clock happens when the clock passes it, in its order. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import {
  createBrowserContextClient,
  createExecutionClient,
  type ExecutionClient,
  type RunEvent,
  unwrap,
} from '../../src/client/index.ts'
import { type Simulator, simulate } from '../../src/simulator/simulator.ts'
import { runModule, writtenSnapshot } from '../support/snapshots.ts'

const throwing = runModule("throw new Error('A simulator runs no code.')")
const start = new Date('2026-03-01T00:00:00Z')

const workflows = writtenSnapshot({
  order: {
    module: throwing,
    variables: { type: 'object', properties: { item: { type: 'string' } } },
    output: {
      type: 'object',
      required: ['price'],
      properties: { price: { type: 'number', examples: [12] } },
      additionalProperties: false,
    },
    retry: { maxAttempts: 3, backoffSeconds: 60, backoffFactor: 2 },
  },
  signIn: { module: throwing, usesBrowser: true, signsIn: true, checksSession: true },
  single: { module: throwing, concurrency: { limit: 1, per: 'workflow' } },
  approve: {
    module: throwing,
    waits: { approval: { title: null, description: null, schema: { type: 'boolean' } } },
  },
})

const scenarios = [{ workflow: 'order', variables: { item: 'broken' }, outcome: 'failed', firstAttempts: 2 }] as const

let simulator: Simulator
let client: ExecutionClient
beforeAll(async () => {
  simulator = await simulate(Promise.resolve(workflows), { now: start, scenarios })
})
afterAll(() => simulator.stop())
beforeEach(() => {
  client = createExecutionClient({ baseUrl: simulator.executionUrl, apiKey: simulator.apiKey })
})

async function queue(workflowId: string, variableData: Record<string, unknown> = {}, query = {}) {
  return unwrap(await client.queueRemoteRun({ params: { path: { workflowId }, query }, body: { variableData } }))
}

async function getRun(runId: string) {
  return unwrap(await client.getRun({ params: { path: { runId } } }))
}

async function eventsOf(runId: string) {
  const events: (RunEvent & { status?: string })[] = []
  for await (const event of client.runs.events(runId)) events.push(event)
  return events
}

const secondsAfter = async (seconds: number) => new Date((await simulator.now()).getTime() + seconds * 1000)

test('a run stays queued until the clock is advanced, and then succeeds with an output of its schema', async () => {
  const now = await simulator.now()
  const { id } = await queue('order', { item: 'book' })
  expect(await getRun(id)).toMatchObject({ status: 'queued', createdAt: now.toISOString() })
  await simulator.advance({ seconds: 1 })
  expect(await getRun(id)).toMatchObject({ status: 'running', startedAt: now.toISOString() })
  await simulator.advance({ seconds: 60 })
  const run = await getRun(id)
  expect(run).toMatchObject({ status: 'succeeded', output: { price: 12 }, attempts: 1 })
  const ended = new Date(run.finishedAt as string).getTime() - now.getTime()
  expect(ended).toBeGreaterThan(1000)
  expect(ended).toBeLessThan(60_000)
  const events = await eventsOf(id)
  expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(['status', 'step', 'log', 'progress']))
  expect(events.map(({ at }) => at)).toEqual(events.map(({ at }) => at).toSorted())
})

test('a failed attempt is repeated after the backoff of its workflow', async () => {
  const { id } = await queue('order', { item: 'broken' })
  await simulator.advance({ seconds: 3600 })
  expect(await getRun(id)).toMatchObject({ status: 'succeeded', attempts: 3 })
  const statuses = (await eventsOf(id)).filter(({ type }) => type === 'status')
  expect(statuses.map(({ status }) => status)).toEqual([
    ...['queued', 'running', 'queued', 'running', 'queued', 'running', 'succeeded'],
  ])
  const times = statuses.map(({ at }) => Date.parse(at))
  const [, , first = 0, second = 0, third = 0, fourth = 0] = times
  expect([second - first, fourth - third]).toEqual([60_000, 120_000])
})

test('a schedule queues its runs at their times', async () => {
  const body = { workflowId: 'order', variableData: {}, cron: '30 * * * *', timeZone: 'UTC' }
  const schedule = unwrap(await client.createSchedule({ body }))
  const from = Date.parse(schedule.nextRunsAt[0] as string)
  await simulator.advanceTo(new Date(from + 3 * 3600_000))
  const runs = await client.runs.list({ scheduleId: schedule.id, limit: 10 })
  const times: (string | null | undefined)[] = []
  for await (const run of runs) times.push(run.createdAt)
  expect(times).toEqual([3, 2, 1, 0].map((hours) => new Date(from + hours * 3600_000).toISOString()))
  unwrap(await client.deleteSchedule({ params: { path: { scheduleId: schedule.id } } }))
})

test('sessions are checked at their times, among everything else that is due', async () => {
  const { browserContextUrl, apiKey } = simulator
  const contexts = createBrowserContextClient({ baseUrl: browserContextUrl, apiKey })
  const { id: browserContextId } = unwrap(await contexts.createBrowserContext({ body: {} }))
  const params = { path: { browserContextId } }
  const from = (await simulator.now()).getTime()
  unwrap(await contexts.putStorageState({ params, body: { cookies: [], origins: [] } }))
  unwrap(await contexts.setSignIn({ params, body: { workflowId: 'signIn', checkEverySeconds: 3600 } }))
  const delayed = await queue('order', {}, { delaySeconds: 5400 })
  await simulator.advance({ seconds: 24 * 3600 })
  const { history, status } = unwrap(await contexts.getSignIn({ params }))
  expect(status).toBe('signedIn')
  const checks = history.toReversed().map(({ kind, startedAt, endedAt }) => {
    return { kind, at: Date.parse(startedAt), end: Date.parse(endedAt as string) }
  })
  expect(new Set(checks.map(({ kind }) => kind))).toEqual(new Set(['check']))
  expect(checks.length).toBeGreaterThan(20)
  // Each an hour after the end of the one before.
  expect(checks.map(({ at }) => at)).toEqual([from, ...checks.slice(0, -1).map(({ end }) => end)].map(hourLater))
  expect((await getRun(delayed.id)).startedAt).toBe(new Date(from + 5400_000).toISOString())
  unwrap(await contexts.deleteBrowserContext({ params }))
})

const hourLater = (at: number) => at + 3600_000

test('a run waits for an answer, and goes on with it', async () => {
  const { id: runId } = await queue('approve')
  await simulator.advance({ seconds: 3600 })
  expect(await getRun(runId)).toMatchObject({ status: 'waiting', waitingFor: 'answer' })
  const params = { path: { runId, name: 'approval' } }
  unwrap(await client.completeWait({ params, body: { value: true } }))
  await simulator.advance({ seconds: 60 })
  expect(await getRun(runId)).toMatchObject({ status: 'succeeded', attempts: 1 })
})

test('webhooks are sent to receivers on this machine, again until one accepts', async () => {
  const received: { at: Date; type: string }[] = []
  let refused = 4
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray()
    const now = await simulator.now()
    received.push({ at: now, type: JSON.parse(String(Buffer.concat(chunks))).type })
    response.writeHead(refused > 0 ? 500 : 204).end()
    refused -= 1
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  const endpoint = unwrap(await client.createWebhookEndpoint({ body: { url, events: ['run.succeeded'] } }))
  await queue('order')
  await simulator.advance({ seconds: 24 * 3600 })
  expect(received.map(({ type }) => type)).toEqual(Array(5).fill('run.succeeded'))
  const gaps = received.slice(1).map(({ at }, index) => at.getTime() - (received[index]?.at.getTime() ?? 0))
  // Each is about as long as all before it.
  expect(gaps).toEqual(gaps.toSorted((a, b) => a - b))
  expect(gaps[0]).toBeGreaterThanOrEqual(5000)
  unwrap(await client.deleteWebhookEndpoint({ params: { path: { endpointId: endpoint.id } } }))
})

test('a caller that advances the clock while another one waits for a receiver follows it', async () => {
  const calls: Promise<void>[] = []
  const server = createServer(async (_request, response) => {
    calls.push(simulator.advance({ seconds: 600 }))
    await delay(100)
    response.writeHead(204).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  const endpoint = unwrap(await client.createWebhookEndpoint({ body: { url, events: ['run.succeeded'] } }))
  await queue('order')
  const until = await secondsAfter(600)
  await simulator.advance({ seconds: 120 })
  await Promise.all(calls)
  expect(calls).toHaveLength(1)
  expect((await simulator.now()).getTime()).toBeGreaterThanOrEqual(until.getTime())
  unwrap(await client.deleteWebhookEndpoint({ params: { path: { endpointId: endpoint.id } } }))
})

test('a receiver that advances the clock is refused, since the clock waits for it', async () => {
  const statuses: number[] = []
  const server = createServer(async (_request, response) => {
    const body = JSON.stringify({ advanceSeconds: 60 })
    statuses.push((await fetch(`${simulator.managementUrl}/simulator/clock`, { method: 'POST', body })).status)
    response.writeHead(204).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  const endpoint = unwrap(await client.createWebhookEndpoint({ body: { url, events: ['run.succeeded'] } }))
  await queue('order')
  await simulator.advance({ seconds: 120 })
  expect(statuses).toEqual([400])
  unwrap(await client.deleteWebhookEndpoint({ params: { path: { endpointId: endpoint.id } } }))
})

test('runs expire, and retention erases them', async () => {
  const { id } = await queue('single')
  const second = await queue('single', {}, { expiresInSeconds: 1 })
  const expiry = await secondsAfter(1)
  await simulator.advance({ seconds: 1200 })
  expect(await getRun(id)).toMatchObject({ status: 'succeeded' })
  expect(await getRun(second.id)).toMatchObject({ status: 'expired', finishedAt: expiry.toISOString() })
  await simulator.advanceTo(await secondsAfter(91 * 24 * 3600))
  expect(await client.getRun({ params: { path: { runId: id } } })).toMatchObject({ response: { status: 404 } })
})
