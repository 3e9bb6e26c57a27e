/** P20 and P28: what one account sends keeps no other waiting, and is bounded in memory. */
import { readFileSync } from 'node:fs'
import { Agent, request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { type ApiMember, newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import type { TestAccount } from '../../support/service.ts'
import { writeModules } from '../../support/worker.ts'
import { record } from '../figures.ts'

const anything = `export default {
  id: 'anything', version: '1.0.0', title: 'Anything', variables: { type: 'object' }, output: {}, run: () => null,
}
`

/** Without a limit of work, checking 24 levels takes minutes. */
const multiplying = `const branch = (name) => ({ allOf: [{ properties: { x: { $ref: '#/$defs/a' } } }, { required: [name] }] })
export default {
  id: 'multiplying', version: '1.0.0', title: 'Multiplying', output: {}, run: () => null,
  variables: {
    type: 'object', properties: { x: { $ref: '#/$defs/a' } },
    $defs: { a: { type: 'object', anyOf: [branch('p'), branch('q')] } },
  },
}
`
const levels = 24
const deepRun = `{"variableData":${'{"x":'.repeat(levels)}{}${'}'.repeat(levels)}}`
const wideVariables = {
  type: 'object',
  properties: Object.fromEntries(
    Array.from({ length: 200 }, (_, index) => [
      `m${index}`,
      { type: 'object', properties: { a: { type: 'string' }, b: { type: 'integer' } } },
    ]),
  ),
}

/** Each registration is of another version. */
let registrations = 0

function registration() {
  const workflows = [{ id: 'wide', version: `${++registrations}.0.0`, variables: wideVariables }]
  return JSON.stringify({ name: 'worker', language: 'node', capacity: 1, workflows })
}

const mebibyte = 1024 * 1024
const probeMilliseconds = 3000
const attemptsMax = 4
const connections = 8
/** How much the process may grow over its size after the start, much of which is V8's young generation. */
const megabytesMax = 350
/** Of the median without load. */
const slowdownMax = 3
/** Below this median, the machine's noise counts more than the flood. */
const millisecondsMin = 5

/** Many small values, which take longest to parse. */
const denseValues = (bytes: number) =>
  `[${Array(Math.floor(bytes / 5))
    .fill('"ab"')
    .join(',')}]`
const largeRun = `{"variableData":{"values":${denseValues(mebibyte - 100)}}}`
const cookie =
  '{"name":"a","value":"b","domain":"c","path":"/","expires":-1,"httpOnly":true,"secure":true,"sameSite":"Lax"}'
const invalidState = `{"origins":[],"cookies":[${Array(25_000).fill(cookie).join(',')},{"value":"${'x'.repeat(2 * mebibyte)}"}]}`
const largeState = `{"origins":[],"cookies":[],"other":"${'x'.repeat(5 * mebibyte - 100)}"}`

interface Target {
  api: ApiMember
  account: TestAccount
  contextId: string
}

/** How often each status was received. */
type Statuses = ReadonlyMap<number, number>

type Sent = { method?: string; path: string; body?: string }

const toContext = (contextId: string) => `/alpha/browser-contexts/${contextId}/storage-state`

function headersFor(account: TestAccount) {
  return {
    Authorization: `Bearer ${account.key}`,
    'x-service-api-key': account.key,
    'Content-Type': 'application/json',
  }
}

function send({ api, account }: Pick<Target, 'api' | 'account'>, { method = 'GET', path, body }: Sent, agent?: Agent) {
  const { port } = new URL(path.startsWith('/alpha') ? api.browserContextUrl : api.executionUrl)
  const length = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) }
  return new Promise<{ status: number; body: Buffer }>((resolve, reject) => {
    const headers = { ...headersFor(account), ...length }
    const sent = httpRequest({ port, method, path, headers, agent })
    sent.on('error', reject).on('response', (response) => {
      buffer(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject)
    })
    sent.end(body)
  })
}

/** Repeats the request on each connection until the flood ends. */
const repeated = (toRequest: (target: Target) => Sent) => (target: Target) => {
  const agent = new Agent({ keepAlive: true })
  const statuses = new Map<number, number>()
  let isOver = false
  const loop = async () => {
    while (!isOver) {
      const { status } = await send(target, toRequest(target), agent)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  const loops = Array.from({ length: connections }, loop)
  return async () => {
    isOver = true
    await Promise.all(loops)
    agent.destroy()
    return statuses
  }
}

/** Requests on many connections whose responses are never read. */
const unread = (toRequest: (target: Target) => Sent) => (target: Target) => {
  const { path } = toRequest(target)
  const { port } = new URL(path.startsWith('/alpha') ? target.api.browserContextUrl : target.api.executionUrl)
  const headers = Object.entries(headersFor(target.account)).map(([name, value]) => `${name}: ${value}\r\n`)
  const sockets = Array.from({ length: 64 }, () => {
    const socket = connect(Number(port), '127.0.0.1').on('error', () => {})
    socket.pause().write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${headers.join('')}\r\n`)
    return socket
  })
  return async () => {
    for (const socket of sockets) socket.destroy()
    return new Map<number, number>()
  }
}

const floods: Record<string, (target: Target) => () => Promise<Statuses>> = {
  'lists of 150 runs of 1 MiB': repeated(() => ({ path: '/v1/execution/runs?limit=100' })),
  'runs of 1 MiB': repeated(() => ({ method: 'PUT', path: '/v1/execution/queue-remote/anything', body: largeRun })),
  'invalid storage states of 4.6 MiB': repeated(({ contextId }) => ({
    method: 'PUT',
    path: toContext(contextId),
    body: invalidState,
  })),
  'storage states of 5 MiB': repeated(({ contextId }) => ({ path: toContext(contextId) })),
  '64 unread storage states': unread(({ contextId }) => ({ path: toContext(contextId) })),
  '64 unread pages': unread(() => ({ path: '/v1/execution/runs?limit=100' })),
}

/** P28. */
const costlySchemas: typeof floods = {
  'values that a schema multiplies': repeated(() => ({
    method: 'PUT',
    path: '/v1/execution/queue-remote/multiplying',
    body: deepRun,
  })),
  'registrations of large schemas': repeated(() => ({
    method: 'PUT',
    path: `/v1/execution/workers/${crypto.randomUUID()}`,
    body: registration(),
  })),
}

function megabytes({ pid }: ApiMember): number {
  const [, kibibytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) / 1024
}

/** Reads a small run again and again; returns the median duration and the largest memory of the process. */
async function probe(target: Pick<Target, 'api' | 'account'>, path: string) {
  const agent = new Agent({ keepAlive: true })
  const durations: number[] = []
  let peak = 0
  for (const end = performance.now() + probeMilliseconds; performance.now() < end; ) {
    const began = performance.now()
    expect((await send(target, { path }, agent)).status).toBe(200)
    durations.push(performance.now() - began)
    peak = Math.max(peak, megabytes(target.api))
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  agent.destroy()
  durations.sort((a, b) => a - b)
  return { median: durations[Math.floor(durations.length / 2)] ?? 0, worst: durations.at(-1) ?? 0, peak }
}

interface Experiment {
  usual: Awaited<ReturnType<typeof probe>>
  during: Awaited<ReturnType<typeof probe>>
  statuses: Statuses
}

function isUnaffected({ usual, during }: Pick<Experiment, 'usual' | 'during'>): boolean {
  return during.median < slowdownMax * Math.max(usual.median, millisecondsMin)
}

/** Probes without and with the flood. Repeats it when the probe was slow: other work on the machine may be the reason. */
async function measureFlood(
  flood: () => () => Promise<Statuses>,
  probeNeighbour: () => ReturnType<typeof probe>,
): Promise<Experiment> {
  for (let attempt = 1; ; attempt++) {
    const usual = await probeNeighbour()
    const endFlood = flood()
    const during = await probeNeighbour()
    const experiment = { usual, during, statuses: await endFlood() }
    if (attempt === attemptsMax || isUnaffected(experiment)) return experiment
  }
}

describe.each(fleetStores)('an account with large requests ($name)', (kind) => {
  test('does not slow down another, and stays within the memory', async (test) => {
    const WORKFLOWS_DIR = await writeModules(test, { 'anything.ts': anything, 'multiplying.ts': multiplying })
    const fleet = await newFleet(test, kind, { settings: { WORKFLOWS_DIR } })
    const [account, neighbour] = [await fleet.createAccount(), await fleet.createAccount()]
    const api = await fleet.api()
    const started = megabytes(api)
    const created = await send({ api, account }, { method: 'POST', path: '/alpha/browser-contexts' })
    const target = { api, account, contextId: JSON.parse(String(created.body)).id as string }
    for (let run = 0; run < 150; run++) {
      const queued = await send(target, { method: 'PUT', path: '/v1/execution/queue-remote/anything', body: largeRun })
      expect(queued.status).toBe(202)
    }
    expect(await send(target, { method: 'PUT', path: toContext(target.contextId), body: largeState })).toMatchObject({
      status: 204,
    })
    const theirs = { api, account: neighbour }
    const small = { method: 'PUT', path: '/v1/execution/queue-remote/anything', body: '{"variableData":{}}' }
    const path = `/v1/execution/runs/${JSON.parse(String((await send(theirs, small)).body)).id}`
    await probe(theirs, path)
    for (const [fault, flood] of Object.entries({ ...floods, ...costlySchemas })) {
      const experiment = await measureFlood(
        () => flood(target),
        () => probe(theirs, path),
      )
      const { usual, during, statuses } = experiment
      const growth = during.peak - started
      const remark = [
        `median ${usual.median.toFixed(1)} → ${during.median.toFixed(1)} ms`,
        `worst ${during.worst.toFixed(0)} ms`,
        `memory +${growth.toFixed(0)} MB`,
      ].join(', ')
      record({
        promise: fault in costlySchemas ? 'P28' : 'P20',
        store: kind.name,
        fault,
        figures: { seconds: during.median / 1000 },
        remark,
      })
      // The flood itself is served, or refused with its own status.
      expect([...statuses].filter(([status]) => ![200, 202, 400, 429].includes(status))).toEqual([])
      expect.soft(isUnaffected(experiment), `${fault}: ${remark}`).toBe(true)
      expect.soft(growth, `${fault}: ${remark}`).toBeLessThan(megabytesMax)
    }
  }, 600_000)
})
