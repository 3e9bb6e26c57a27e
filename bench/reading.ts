/** Measures what reading and following runs cost the API process, compared with node:http and the same rows. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import autocannon from 'autocannon'
import { type Bar, formatRange } from './bars.ts'
import type { BenchOptions } from './bench-options.ts'
import { median, print, table } from './figures.ts'
import { type FilledStore, FilledStores, type StoreKind } from './filled-store.ts'
import { cpuSeconds, startInstallation } from './separate-processes.ts'

const finished = 10_000
const connectionCounts = [1, 32]
/** Below the limit of simultaneous requests of an account. */
const followerCount = 900
const lines = 40
const intervalMilliseconds = 50
/** The followers connect before their run starts. */
const delaySeconds = 15
const quietSeconds = 5

interface Subject {
  pids: number[]
  headers: Record<string, string>
  runUrl: string
  listUrl: string
  /** Returns the URL of a stream of events, and a function that resolves when its last event was sent. */
  openEvents(): Promise<{ url: string; emit(): Promise<unknown> }>
  stop(): Promise<void>
}

export async function reading(options: BenchOptions): Promise<void> {
  await readingRequests(options, async (kind, plain, service) =>
    print(await compareFollowers(kind, plain, service, options.rounds)),
  )
}

/** The CPU of each request, at most this many times that of node:http with 32 connections. */
const atMost: Record<StoreKind, Record<Read, number>> = {
  embedded: { runUrl: 1.5, listUrl: 1.7 },
  postgres: { runUrl: 1.7, listUrl: 2 },
}
const barConnections = 32

/** @param further what is measured of each store after the requests. */
export async function readingRequests(
  { stores, rounds, seconds }: BenchOptions,
  further?: (kind: StoreKind, plain: Subject, service: Subject) => Promise<void>,
): Promise<Bar[]> {
  const bars: Bar[] = []
  const filled = new FilledStores()
  try {
    for (const kind of stores) {
      const store = await filled.get(kind, finished)
      const [plain, service] = [await startPlain(store), await startService(store)]
      try {
        bars.push(...(await compareRequests(kind, plain, service, rounds, seconds)))
        await further?.(kind, plain, service)
      } finally {
        await Promise.all([plain.stop(), service.stop()])
        await store.restore()
      }
    }
  } finally {
    await filled.close()
  }
  return bars
}

async function startPlain({ kind, env, open }: FilledStore): Promise<Subject> {
  const store = await open()
  const [row] = await store.read.all<{ id: string }>('SELECT id FROM runs ORDER BY id DESC LIMIT 1', [])
  await store.close()
  const script = new URL('./reading-server.ts', import.meta.url).pathname
  const child = fork(script, [kind, env.DATABASE_URL ?? env.DATA_DIR ?? ''])
  const [port] = await once(child, 'message')
  const url = `http://127.0.0.1:${port}`
  const runUrl = `${url}/runs/${row?.id}`
  const emit = async () => {
    for (let line = 0; line < lines; line += 1) {
      await delay(intervalMilliseconds)
      await (await fetch(runUrl, { method: 'POST' })).text()
    }
  }
  return {
    pids: [child.pid ?? 0],
    headers: {},
    runUrl,
    listUrl: url,
    openEvents: async () => ({ url: `${url}/events`, emit }),
    stop: async () => void child.kill(),
  }
}

async function startService({ env, apiKeys }: FilledStore): Promise<Subject> {
  const { executionUrls, apiPids, stop } = await startInstallation(env, { apis: 1, workers: 1 })
  const headers = { authorization: `Bearer ${apiKeys[0]}`, 'content-type': 'application/json' }
  const runs = `${executionUrls[0]}/v1/execution/runs`
  const queue = async (workflowId: string, variableData: object, query = '') => {
    const url = `${executionUrls[0]}/v1/execution/queue-remote/${workflowId}${query}`
    const response = await fetch(url, { method: 'PUT', headers, body: JSON.stringify({ variableData }) })
    const { id } = (await response.json()) as { id: string }
    return `${runs}/${id}`
  }
  return {
    pids: apiPids,
    headers,
    runUrl: await queue('first-line', {}),
    listUrl: `${runs}?limit=50`,
    async openEvents() {
      const run = await queue('report-lines', { lines, intervalMilliseconds }, `?delaySeconds=${delaySeconds}`)
      // The run itself emits.
      return { url: `${run}/events`, emit: async () => {} }
    },
    stop,
  }
}

type Sample = { rate: number; microseconds: number }
type Read = 'runUrl' | 'listUrl'

const reads: [Read, string][] = [
  ['runUrl', 'a run'],
  ['listUrl', 'a page of 50 runs'],
]

async function compareRequests(
  kind: StoreKind,
  plain: Subject,
  service: Subject,
  rounds: number,
  seconds: number,
): Promise<Bar[]> {
  const rows = [[kind, 'node:http', 'service', 'rate', 'CPU, node:http', 'CPU, service', 'ratio of CPU']]
  const bars: Bar[] = []
  for (const [what, name] of reads) {
    for (const connections of connectionCounts) {
      const samples: [Sample, Sample][] = []
      for (let round = 0; round <= rounds; round += 1) {
        const pair = [await load(plain, what, connections, seconds), await load(service, what, connections, seconds)]
        if (round > 0) samples.push(pair as [Sample, Sample])
      }
      const figure = (index: 0 | 1, member: keyof Sample) => median(samples.map((pair) => pair[index][member]))
      const ratios = (member: keyof Sample) => samples.map(([a, b]) => b[member] / a[member])
      const [rateA, rateB] = [figure(0, 'rate'), figure(1, 'rate')].map((each) => `${Math.round(each)}/s`)
      const [cpuA, cpuB] = [figure(0, 'microseconds'), figure(1, 'microseconds')].map(
        (each) => `${Math.round(each)} µs`,
      )
      const [rate, cpu] = [ratios('rate'), ratios('microseconds')].map(formatRange)
      const title = `${name}, ${connections} connection${connections > 1 ? 's' : ''}`
      rows.push([title, rateA ?? '', rateB ?? '', rate ?? '', cpuA ?? '', cpuB ?? '', cpu ?? ''])
      if (connections !== barConnections) continue
      const values = ratios('microseconds')
      bars.push({ name: `CPU of ${name} ÷ node:http`, store: kind, values, atMost: atMost[kind][what] })
    }
  }
  print(table(rows))
  return bars
}

async function load(subject: Subject, what: Read, connections: number, duration: number) {
  const before = cpuSeconds(subject.pids)
  const result = await autocannon({ url: subject[what], headers: subject.headers, connections, duration })
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${subject[what]}: ${JSON.stringify(result.statusCodeStats)}, ${result.errors} errors`)
  const used = cpuSeconds(subject.pids) - before
  return { rate: result['2xx'] / duration, microseconds: (used * 1e6) / result['2xx'] }
}

async function compareFollowers(kind: string, plain: Subject, service: Subject, rounds: number): Promise<string> {
  const samples: [Followed, Followed][] = []
  for (let round = 0; round < rounds; round += 1) samples.push([await follow(plain), await follow(service)])
  const figure = (index: 0 | 1, member: keyof Followed) => median(samples.map((pair) => pair[index][member]))
  const row = (name: string, member: keyof Followed) => {
    const [a, b] = [figure(0, member), figure(1, member)]
    return [name, `${a.toFixed(1)} µs`, `${b.toFixed(1)} µs`, (b / a).toFixed(2)]
  }
  return table([
    [`${kind}, ${followerCount} followers`, 'node:http', 'service', 'ratio'],
    row('CPU per event and follower', 'eventMicroseconds'),
    row('CPU per second and quiet follower', 'quietMicroseconds'),
  ])
}

interface Followed {
  eventMicroseconds: number
  quietMicroseconds: number
}

/** Opens all streams, waits as long as without any, and counts the events of each until all have the last one. */
async function follow(subject: Subject): Promise<Followed> {
  const { url, emit } = await subject.openEvents()
  const startedAt = cpuSeconds(subject.pids)
  await delay(quietSeconds * 1000)
  const idle = cpuSeconds(subject.pids) - startedAt
  const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY })
  let logged = 0
  let connected = 0
  const streams = Array.from({ length: followerCount }, () => {
    const request = get(url, { agent, headers: { ...subject.headers, accept: 'text/event-stream' } })
    request.on('response', (response: IncomingMessage) => {
      if (response.statusCode !== 200) throw new Error(`A stream was answered with ${response.statusCode}.`)
      response.setEncoding('utf8').once('data', () => (connected += 1))
      response.on('data', (text: string) => (logged += text.match(/^event: log$/gm)?.length ?? 0))
    })
    return request.on('error', () => {})
  })
  while (connected < followerCount) await delay(5)
  const connectedAt = cpuSeconds(subject.pids)
  await delay(quietSeconds * 1000)
  const quiet = cpuSeconds(subject.pids) - connectedAt
  const emitted = emit()
  while (logged < lines * followerCount) await delay(5)
  await emitted
  const used = cpuSeconds(subject.pids) - connectedAt - quiet
  for (const request of streams) request.destroy()
  await delay(500)
  return {
    eventMicroseconds: (used * 1e6) / (lines * followerCount),
    quietMicroseconds: ((quiet - idle) * 1e6) / (quietSeconds * followerCount),
  }
}
