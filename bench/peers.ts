/**
 * `npm run bench -- peers`: what queueing and executing a run cost, compared with other queues and with the least that
 * HTTP and a durable insert can cost. CPU times are those of all processes, the database's included.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import autocannon from 'autocannon'
import type { BenchOptions } from './bench-options.ts'
import { median, percentile, print, table } from './figures.ts'
import { Databases, hasRedis, type Subject, startPeer, startService, type Workers } from './peer-subjects.ts'
import { cpuSeconds } from './separate-processes.ts'

const connectionCounts = [1, 32, 64, 256]
/** Callers of the service share its load, so that none reaches a limit. */
const callers = 4
/** Fewer for a queue that would take longer than this. The first fifth as many more are not measured. */
const executed = { runsMax: 10_000, secondsMax: 30 }
const paced = { count: 100, intervalMilliseconds: 20 }

/** Subjects whose rate is the limit for each store. */
const limits = { SQLite: 'node:http, SQLite', PostgreSQL: 'node:http, PostgreSQL', Redis: '' }

const only = { executes: false }
const peers = [
  { name: limits.SQLite, framework: 'node:http', queue: 'sqlite', store: 'SQLite', ...only },
  { name: 'Express, SQLite', framework: 'Express', queue: 'sqlite', store: 'SQLite', ...only },
  { name: 'Express and EOV, SQLite', framework: 'Express, EOV', queue: 'sqlite', store: 'SQLite', ...only },
  { name: limits.PostgreSQL, framework: 'node:http', queue: 'postgres', store: 'PostgreSQL', ...only },
  { name: 'pg-boss', framework: 'Fastify', queue: 'pg-boss', store: 'PostgreSQL', executes: true },
  { name: 'graphile-worker', framework: 'Fastify', queue: 'graphile-worker', store: 'PostgreSQL', executes: true },
  { name: 'DBOS', framework: 'Fastify', queue: 'DBOS', store: 'PostgreSQL', executes: true },
  { name: 'BullMQ', framework: 'Fastify', queue: 'BullMQ', store: 'Redis', executes: true },
] as const

export async function comparePeers({ rounds, seconds }: BenchOptions): Promise<void> {
  const directory = new URL('./peers/', import.meta.url).pathname
  if (!existsSync(`${directory}node_modules`)) {
    const { status } = spawnSync('npm', ['install', '--no-audit', '--no-fund'], { cwd: directory, stdio: 'inherit' })
    if (status !== 0) throw new Error(`npm install failed in ${directory}.`)
  }
  if (!hasRedis()) print('BullMQ is left out: install redis-server, or set REDIS_SERVER to its path.\n')
  const databases = new Databases()
  const subjects: Subject[] = []
  try {
    const single = { apis: 1, workers: 1 }
    for (const store of ['SQLite', 'PostgreSQL'] as const) subjects.push(await startService(databases, store, single))
    for (const peer of peers) {
      if (peer.store !== 'Redis' || hasRedis()) subjects.push(await startPeer(databases, peer))
    }
    for (const subject of subjects) await queue(subject, 32, 2)
    for (const connections of connectionCounts) await compareQueueing(subjects, { connections, rounds, seconds })
    await compareExecution(
      subjects.filter(({ startWorkers }) => startWorkers),
      rounds,
    )
  } finally {
    for (const subject of subjects) await subject.stop()
    await databases.close()
  }
}

interface QueueSample {
  rate: number
  serverMicroseconds: number
  databaseMicroseconds: number
}

interface QueueLoad extends Pick<BenchOptions, 'rounds' | 'seconds'> {
  connections: number
}

async function compareQueueing(subjects: Subject[], { connections, rounds, seconds }: QueueLoad): Promise<void> {
  const samples = new Map<Subject, QueueSample[]>(subjects.map((subject) => [subject, []]))
  for (let round = 0; round < rounds; round += 1) {
    for (const subject of subjects) {
      samples.get(subject)?.push(await queue(subject, connections, seconds))
      await subject.clear()
    }
  }
  const limitOf = ({ store }: Subject) => subjects.find(({ name }) => name === limits[store])
  const rows = subjects.map((subject) => {
    const own = samples.get(subject) ?? []
    const figure = (member: keyof QueueSample) => Math.round(median(own.map((sample) => sample[member])))
    const limit = samples.get(limitOf(subject) as Subject)
    return [
      subject.name,
      subject.store,
      figure('rate'),
      limit ? formatRatios(own.map(({ rate }, round) => rate / (limit[round]?.rate ?? Number.NaN))) : '',
      `${figure('serverMicroseconds')} µs`,
      subject.databasePids.length > 0 ? `${figure('databaseMicroseconds')} µs` : '',
    ]
  })
  const head = [
    connections === 1 ? '1 connection' : `${connections} connections`,
    'store',
    '202/s',
    '÷ node:http',
    'server CPU',
    'database CPU',
  ]
  print(table([head, ...rows]))
}

async function queue(subject: Subject, connections: number, duration: number): Promise<QueueSample> {
  const [server, database] = [cpuSeconds(subject.serverPids), cpuSeconds(subject.databasePids)]
  const result = await autocannon({ url: subject.url, connections, duration, requests: requests(subject) })
  if (result.non2xx > 0 || result.errors > 0) {
    throw new Error(`${subject.name}: ${result.non2xx} rejected, ${result.errors} errors`)
  }
  const perRequest = (cpu: number) => (cpu * 1e6) / result['2xx']
  return {
    rate: result['2xx'] / duration,
    serverMicroseconds: perRequest(cpuSeconds(subject.serverPids) - server),
    databaseMicroseconds: perRequest(cpuSeconds(subject.databasePids) - database),
  }
}

function requests({ apiKeys }: Subject) {
  return apiKeys.slice(0, callers).map((apiKey) => ({
    method: 'PUT' as const,
    path: '/v1/execution/queue-remote/first-line',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ variableData: { note: 'a run of the benchmark' } }),
  }))
}

interface ExecutionSample {
  rate: number
  microseconds: number
  databaseMicroseconds: number
  latencies: number[]
}

async function compareExecution(subjects: Subject[], rounds: number): Promise<void> {
  const samples = new Map<Subject, ExecutionSample[]>(subjects.map((subject) => [subject, []]))
  for (let round = 0; round < rounds; round += 1) {
    for (const subject of subjects) samples.get(subject)?.push(await execute(subject))
  }
  const rows = subjects.map((subject) => {
    const own = samples.get(subject) ?? []
    const figure = (member: Exclude<keyof ExecutionSample, 'latencies'>) =>
      Math.round(median(own.map((sample) => sample[member])))
    const latencies = own.flatMap((sample) => sample.latencies)
    return [
      subject.name,
      subject.store,
      figure('rate'),
      `${figure('microseconds')} µs`,
      subject.databasePids.length > 0 ? `${figure('databaseMicroseconds')} µs` : '',
      `${median(latencies).toFixed(1)} ms`,
      `${percentile(latencies, 99).toFixed(1)} ms`,
    ]
  })
  print(table([['executed runs', 'store', 'runs/s', 'CPU', 'of that database', 'start p50', 'start p99'], ...rows]))
}

/** Measures the time from a response to its job's first line, then the workers on jobs that wait when they begin. */
async function execute(subject: Subject): Promise<ExecutionSample> {
  await subject.clear()
  const workers = (await subject.startWorkers?.()) as Workers
  try {
    const { rate } = await drain(subject, workers, 300)
    const latencies = await measureLatencies(subject, workers)
    const runs = Math.min(executed.runsMax, Math.round(rate * executed.secondsMax))
    await drain(subject, workers, Math.round(runs / 5))
    return { ...(await drain(subject, workers, runs)), latencies }
  } finally {
    await workers.stop()
  }
}

/** The workers are paused while the queue is filled, so that only their own work is measured. */
async function drain(subject: Subject, workers: Workers, runs: number): Promise<Omit<ExecutionSample, 'latencies'>> {
  await workers.finish(0)
  const pids = processTree(workers.pids)
  signal(pids, 'SIGSTOP')
  await fill(subject, runs)
  const measured = [...subject.serverPids, ...workers.pids]
  const [all, database] = [cpuSeconds(measured), cpuSeconds(subject.databasePids)]
  const startedAt = performance.now()
  signal(pids, 'SIGCONT')
  await workers.finish(runs)
  const milliseconds = performance.now() - startedAt
  const databaseCpu = cpuSeconds(subject.databasePids) - database
  return {
    rate: (runs * 1000) / milliseconds,
    microseconds: ((cpuSeconds(measured) - all + databaseCpu) * 1e6) / runs,
    databaseMicroseconds: (databaseCpu * 1e6) / runs,
  }
}

async function fill(subject: Subject, amount: number): Promise<void> {
  const result = await autocannon({ url: subject.url, connections: 32, amount, requests: requests(subject) })
  if (result['2xx'] !== amount) throw new Error(`${subject.name}: ${amount - result['2xx']} requests failed.`)
}

async function measureLatencies(subject: Subject, workers: Workers): Promise<number[]> {
  const latencies: Promise<number>[] = []
  for (let number = 0; number < paced.count; number += 1) {
    latencies.push(measureLatency(subject, workers, `paced ${number}`))
    await delay(paced.intervalMilliseconds)
  }
  const measured = await Promise.all(latencies)
  // They count as executed jobs.
  await workers.finish(paced.count)
  return measured
}

async function measureLatency({ url, apiKeys }: Subject, workers: Workers, note: string): Promise<number> {
  const response = await fetch(`${url}/v1/execution/queue-remote/first-line`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${apiKeys[0]}`, 'content-type': 'application/json' },
    body: JSON.stringify({ variableData: { note } }),
  })
  const { id } = (await response.json()) as { id: string }
  const respondedAt = performance.timeOrigin + performance.now()
  // Later, so that asking does not affect the measurement.
  await delay(250)
  return (await workers.startedAt(id)) - respondedAt
}

/** These processes and their descendants. */
function processTree(roots: number[]): number[] {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), parent: findParent(name) }))
  const descendants = (pid: number): number[] =>
    children.filter(({ parent }) => parent === pid).flatMap((child) => [child.pid, ...descendants(child.pid)])
  return roots.flatMap((root) => [root, ...descendants(root)])
}

function findParent(pid: string): number {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[1])
  } catch {
    return 0
  }
}

function signal(pids: number[], name: 'SIGSTOP' | 'SIGCONT'): void {
  for (const pid of pids) process.kill(pid, name)
}

/** The median, and the range over the rounds. */
function formatRatios(ratios: number[]): string {
  return `${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`
}
