/** Worlds of one simulator share its addresses and nothing else: requests reach that of their API key. */
import { once } from 'node:events'
import { request as sendRequest } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBrowserContextClient, createExecutionClient, unwrap } from '../../src/client/index.ts'
import { type Simulator, simulate, type World } from '../../src/simulator/simulator.ts'
import { freePort } from '../support/free-port.ts'
import { runModule, writtenSnapshot } from '../support/snapshots.ts'

const workflows = writtenSnapshot({ order: { module: runModule("throw new Error('A simulator runs no code.')") } })
const now = new Date('2026-03-01T00:00:00.000Z')
const start = () => simulate(Promise.resolve(workflows), { now })

let simulator: Simulator
beforeAll(async () => {
  simulator = await start()
})
afterAll(() => simulator.stop())

const clientOf = ({ executionUrl, apiKey }: World) => createExecutionClient({ baseUrl: executionUrl, apiKey })

async function queue(world: World) {
  const params = { path: { workflowId: 'order' } }
  return unwrap(await clientOf(world).queueRemoteRun({ params, body: { variableData: {} } }))
}

async function runsOf(world: World): Promise<string[]> {
  const { data } = unwrap(await clientOf(world).listRuns())
  return data.map(({ id, status }) => `${id} ${status}`)
}

async function control(method: string, path: string, { apiKey, ...request }: RequestInit & { apiKey?: string } = {}) {
  const headers = { ...request.headers, ...(apiKey && { Authorization: `Bearer ${apiKey}` }) }
  const response = await fetch(`${simulator.managementUrl}/simulator${path}`, { ...request, method, headers })
  const content = await response.text()
  return { status: response.status, body: content && JSON.parse(content) }
}

describe('two worlds', () => {
  let first: World
  let second: World
  beforeAll(async () => {
    ;[first, second] = await Promise.all([simulator.createWorld(), simulator.createWorld()])
  })
  afterAll(() => Promise.all([first.stop(), second.stop()]))

  test('at one address see neither the runs nor the clock of each other', async () => {
    expect(first.executionUrl).toBe(second.executionUrl)
    const { id } = await queue(first)
    await first.advance({ seconds: 60 })
    expect(await runsOf(first)).toEqual([`${id} succeeded`])
    expect([await runsOf(second), await runsOf(simulator)]).toEqual([[], []])
    expect([await second.now(), await simulator.now()]).toEqual([now, now])
    expect((await control('GET', '/clock', { apiKey: first.apiKey })).body.now).toBe('2026-03-01T00:01:00.000Z')
    expect((await control('GET', '/clock')).body.now).toBe(now.toISOString())
  })

  test('are reset and restored one by one, while requests of the other go on', async () => {
    const [kept, { id }] = [await queue(second), await queue(first)]
    await first.snapshot('queued')
    await Promise.all([first.reset(), ...Array.from({ length: 20 }, () => runsOf(second))])
    expect(await runsOf(first)).toEqual([])
    expect(await runsOf(second)).toEqual([`${kept.id} queued`])
    await first.restore('queued')
    expect(await runsOf(first)).toContain(`${id} queued`)
    expect((await control('GET', '/snapshots', { apiKey: second.apiKey })).body.data).toEqual([])
  })

  test('take run tokens and keys that were made in them', async () => {
    const { id: runId } = await queue(first)
    const { token } = unwrap(await clientOf(first).createRunToken({ body: { runId, expiresInSeconds: 600 } }))
    const params = { path: { runId } }
    const client = createExecutionClient({ baseUrl: first.executionUrl, apiKey: token })
    expect(unwrap(await client.getRun({ params })).id).toBe(runId)
    const contexts = createBrowserContextClient({ baseUrl: first.browserContextUrl, apiKey: first.apiKey })
    unwrap(await contexts.createBrowserContext({ body: { name: 'shop' } }))
    const others = createBrowserContextClient({ baseUrl: first.browserContextUrl, apiKey: second.apiKey })
    expect(unwrap(await others.listBrowserContexts()).data).toEqual([])
  })

  test('have a dashboard each', async () => {
    expect(new Set([simulator, first, second].map(({ dashboardUrl }) => dashboardUrl)).size).toBe(3)
    for (const { welcomeUrl = '' } of [first, second]) expect((await fetch(welcomeUrl)).status).toBe(200)
  })
})

test('a world is made, listed and ended over HTTP, and the same seed and key lead to the same IDs', async () => {
  const apiKey = crypto.randomUUID()
  const body = JSON.stringify({ apiKey, seed: 'mine', now: '2030-01-01T00:00:00Z' })
  const ids: string[] = []
  for (let round = 0; round < 2; round += 1) {
    const { status, body: made } = await control('POST', '/worlds', { body })
    expect({ status, made }).toMatchObject({ status: 201, made: { apiKey, startedAt: '2030-01-01T00:00:00.000Z' } })
    expect((await control('GET', '/worlds')).body.data.map((each: World) => each.apiKey)).toContain(apiKey)
    ids.push((await queue({ ...simulator, apiKey })).id)
    expect((await control('DELETE', `/worlds/${apiKey}`)).status).toBe(204)
  }
  expect(ids[0]).toBe(ids[1])
  expect((await control('POST', '/clock', { apiKey, body: '{"advanceSeconds":1}' })).status).toBe(404)
  expect((await clientOf({ ...simulator, apiKey }).listRuns()).error?.status).toBe(401)
})

test.each([
  [{ apiKey: 'key' }, '/apiKey', 'must be a UUID'],
  [{ apiKey: '00000000-0000-4000-8000-000000000200' }, '/apiKey', 'is the key of another world'],
  [{ now: 'tomorrow' }, '/now', 'must be a time such as 2026-01-31T12:00:00Z'],
  [{ speed: -1 }, '/speed', 'must be a number from 0 to 1000000'],
  [{ scenarios: [{ workflow: 'oder' }] }, '/scenarios/0/workflow', expect.stringContaining('order')],
  [{ seeds: 'a' }, '/seeds', expect.stringMatching(/^is unknown/)],
  [[], '', 'must be an object'],
])('a world as %j is refused with its place', async (body, pointer, detail) => {
  const response = await control('POST', '/worlds', { body: JSON.stringify(body) })
  expect(response).toMatchObject({ status: 400, body: { errors: [{ pointer, detail }] } })
})

test('pages of other sites cannot change a simulator', async () => {
  for (const path of ['/clock', '/reset', '/worlds']) {
    const foreign = { body: '{"advanceSeconds":60}', headers: { 'Sec-Fetch-Site': 'cross-site' } }
    expect((await control('POST', path, foreign)).status).toBe(400)
    const other = { body: '{"advanceSeconds":60}', headers: { Origin: 'http://pages.example' } }
    expect((await control('POST', path, other)).status).toBe(400)
  }
  expect(await simulator.now()).toEqual(now)
})

test('a world is made once for a key, by a request of bounded size', async () => {
  const apiKey = crypto.randomUUID()
  const twice = await Promise.all([1, 2].map(() => control('POST', '/worlds', { body: JSON.stringify({ apiKey }) })))
  expect(twice.map(({ status }) => status).sort()).toEqual([201, 400])
  expect((await control('DELETE', `/worlds/${apiKey}`)).status).toBe(204)
  const body = JSON.stringify({ seed: 'a'.repeat(12 * 1024 * 1024) })
  expect(await control('POST', '/worlds', { body })).toMatchObject({ status: 413 })
})

test('every address refuses unknown hosts, and lets pages of this machine and of CORS_ORIGINS call it', async () => {
  const { executionUrl, browserContextUrl, dashboardUrl, managementUrl } = simulator
  const paths = [
    `${executionUrl}/v1/execution/runs`,
    `${executionUrl}/mcp`,
    `${browserContextUrl}/alpha/browser-contexts`,
    `${dashboardUrl}/sign-in`,
    ...['worlds', 'clock'].map((path) => `${managementUrl}/simulator/${path}`),
  ]
  const key = { Authorization: `Bearer ${simulator.apiKey}` }
  for (const url of paths) {
    const request = sendRequest(url, { headers: { ...key, Host: 'pages.example' } }).end()
    const [response] = await once(request, 'response')
    expect(response.statusCode, url).toBe(421)
    response.resume()
  }
  const settings = { CORS_ORIGINS: 'https://app.example.com' }
  const open = await simulate(Promise.resolve(workflows), { settings })
  const allowed = async (to: Simulator, Origin: string) => {
    const response = await fetch(`${to.executionUrl}/v1/execution/runs`, { headers: { ...key, Origin } })
    expect(response.status).toBe(200)
    return response.headers.get('access-control-allow-origin') === Origin
  }
  for (const origin of ['http://localhost:5173', 'http://127.0.0.1', 'https://shop.localhost', 'http://[::1]:8080'])
    expect(await allowed(simulator, origin), origin).toBe(true)
  for (const origin of ['https://app.example.com', 'https://localhost.example', 'http://127.0.0.1.example', 'null'])
    expect(await allowed(simulator, origin), origin).toBe(false)
  expect(await allowed(open, 'https://app.example.com')).toBe(true)
  await open.stop()
})

test('two simulators in one process do not see each other', async () => {
  const others = await Promise.all([start(), start()])
  const [one, two] = others as [Simulator, Simulator]
  await queue(one)
  await one.advance({ seconds: 60 })
  expect(await runsOf(one)).toHaveLength(1)
  expect([await runsOf(two), await two.now()]).toEqual([[], now])
  await Promise.all(others.map((each) => each.stop()))
})

test.each([
  ['are answered when they are', 'built', [200, 200, 200]],
  ['end if they cannot be', 'broken', [undefined, 500, 500]],
])('requests before the workflows are built %s', async (_, outcome, statuses) => {
  const ports = { EXECUTION_PORT: `${await freePort()}`, MANAGEMENT_PORT: `${await freePort()}` }
  const building = Promise.withResolvers<typeof workflows>()
  const started = simulate(building.promise, { now, settings: ports })
  started.catch(() => {})
  const headers = { Authorization: 'Bearer 00000000-0000-4000-8000-000000000200' }
  const get = async (url: string): Promise<Response | undefined> => fetch(url, { headers }).catch(() => undefined)
  await isOpen(Number(ports.MANAGEMENT_PORT))
  const early = [
    get(`http://127.0.0.1:${ports.EXECUTION_PORT}/v1/execution/runs`),
    ...['simulator/clock', 'simulator/worlds'].map((path) => get(`http://127.0.0.1:${ports.MANAGEMENT_PORT}/${path}`)),
  ]
  expect(await Promise.race([...early.map(async (each) => (await each)?.status), delay(50, 'waits')])).toBe('waits')
  if (outcome === 'built') building.resolve(workflows)
  else building.reject(new Error('does not load'))
  expect((await Promise.all(early)).map((response) => response?.status)).toEqual(statuses)
  await started.then((opened) => opened.stop()).catch((error) => expect(error.message).toBe('does not load'))
})

/** Resolves when the port accepts connections. */
async function isOpen(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  const isConnected = await once(socket, 'connect').catch(() => false)
  socket.destroy()
  if (!isConnected) await isOpen(port)
}
