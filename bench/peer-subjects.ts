/** What the peers benchmark measures: the service's processes, and other queues in processes of the same shape. */
import { type ChildProcess, fork, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { freePort } from '../test/support/free-port.ts'
import { type PostgresServer, startPostgres } from '../test/support/postgres-server.ts'
import { durable, type FilledStore, FilledStores } from './filled-store.ts'
import { type Installation, startInstallation } from './separate-processes.ts'
import { pause } from './tenants.ts'

export type StoreName = 'SQLite' | 'PostgreSQL' | 'Redis'

/** A queue behind HTTP. Workers are started for a measurement, and execute `slots` jobs at a time each. */
export interface Subject {
  name: string
  store: StoreName
  url: string
  /** One of each account. */
  apiKeys: string[]
  /** Of all accounts. */
  allKeys: string[]
  /** False when its queueing is measured under another name. */
  isQueueing: boolean
  serverPids: number[]
  databasePids: number[]
  /** Absent when the subject only queues. */
  startWorkers?(): Promise<Workers>
  /** Removes all jobs. */
  clear(): Promise<void>
  stop(): Promise<void>
}

export interface Workers {
  pids: number[]
  /** Resolves when no job is left, `count` jobs after the last call. */
  finish(count: number): Promise<void>
  /** When the job of a response began, in milliseconds since 1970. */
  startedAt(id: string): Promise<number>
  /** Stops the processes, which keep no lock then, until SIGCONT. */
  pause(pids: readonly number[]): Promise<void>
  stop(): Promise<void>
}

export const slots = 4

/** The databases that the subjects use, each with its own data. */
export class Databases {
  readonly directory = mkdtempSync(join(tmpdir(), 'bench-peers-'))
  readonly filled = new FilledStores()
  #postgres: Promise<PostgresServer> | undefined
  #redis: Promise<{ child: ChildProcess; url: string }> | undefined
  #count = 0

  async location(store: StoreName): Promise<{ location: string; pids: number[] }> {
    this.#count += 1
    if (store === 'Redis') {
      this.#redis ??= startRedis(this.directory)
      const { child, url } = await this.#redis
      return { location: url, pids: [child.pid ?? 0] }
    }
    if (store === 'SQLite') {
      return { location: this.#createDirectory(String(this.#count)), pids: [] }
    }
    // Not in memory, as for tests.
    this.#postgres ??= startPostgres({ settings: durable, dataDirectory: this.#createDirectory('postgres') })
    const server = await this.#postgres
    const name = `peer_${this.#count}`
    await query(server.url(), `CREATE DATABASE ${name}`)
    return { location: server.url(name), pids: [server.pid()] }
  }

  #createDirectory(name: string): string {
    const path = join(this.directory, name)
    mkdirSync(path)
    // PostgreSQL runs as another user.
    chmodSync(this.directory, 0o711)
    return path
  }

  async close(): Promise<void> {
    await this.filled.close()
    await (await this.#postgres)?.remove()
    ;(await this.#redis)?.child.kill('SIGKILL')
    rmSync(this.directory, { recursive: true, force: true })
  }
}

async function query(url: string, text: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(text)
  await client.end()
}

/** Redis as durable as the others: it syncs its log before each response. */
async function startRedis(directory: string): Promise<{ child: ChildProcess; url: string }> {
  const port = await freePort()
  const settings = ['--port', String(port), '--dir', directory, '--appendonly', 'yes', '--appendfsync', 'always']
  const child = spawn(redisServer(), [...settings, '--maxmemory-policy', 'noeviction'], { stdio: 'ignore' })
  await delay(1000)
  if (child.exitCode !== null) throw new Error('Redis did not start.')
  return { child, url: `redis://127.0.0.1:${port}` }
}

function redisServer(): string {
  return process.env.REDIS_SERVER ?? 'redis-server'
}

/** npm has no Redis, so it is measured where it is installed. */
export function hasRedis(): boolean {
  return spawnSync(redisServer(), ['--version']).status === 0
}

interface Peer {
  name: string
  framework: string
  queue: string
  store: StoreName
  executes: boolean
  isQueueing: boolean
}

const peerScript = (name: string) => new URL(`./peers/${name}.ts`, import.meta.url).pathname

export async function startPeer(databases: Databases, peer: Peer): Promise<Subject> {
  const { name, framework, queue, store, executes, isQueueing } = peer
  const { location, pids } = await databases.location(store)
  const server = fork(peerScript('server'), [framework, queue, location], { silent: true })
  const [{ port }] = await once(server, 'message')
  const keys = { apiKeys: [''], allKeys: [''] }
  return {
    ...{ name, store, url: `http://127.0.0.1:${port}`, ...keys, isQueueing, databasePids: pids },
    serverPids: [server.pid ?? 0],
    ...(executes && { startWorkers: () => startPeerWorker(queue, location) }),
    clear: () => clear(queue, location),
    async stop() {
      server.kill('SIGKILL')
    },
  }
}

/** The tables with jobs of each queue. */
const jobTables: Record<string, string> = {
  'pg-boss': 'pgboss.job',
  'graphile-worker': 'graphile_worker._private_jobs',
  DBOS: 'dbos.workflow_status CASCADE',
}

async function clear(queue: string, location: string): Promise<void> {
  const table = jobTables[queue]
  if (table) await query(location, `TRUNCATE ${table}`)
  if (queue.startsWith('BullMQ')) spawnSync(process.execPath, [peerScript('clear-redis'), location])
}

async function startPeerWorker(queue: string, location: string): Promise<Workers> {
  const child = fork(peerScript('worker'), [queue, location, String(slots)], { silent: true })
  const started = new Map<string, number>()
  let executed = 0
  const ready = new Promise<void>((resolve, reject) => {
    child.on('message', (message: { ready?: true; executed?: [string, number][] }) => {
      if (message.ready) resolve()
      for (const [id, at] of message.executed ?? []) started.set(id, at)
      executed += message.executed?.length ?? 0
    })
    child.once('exit', () => reject(new Error(`The worker of ${queue} ended.`)))
  })
  await ready
  let expected = 0
  return {
    pids: [child.pid ?? 0],
    async finish(count) {
      expected += count
      while (executed < expected) await delay(5)
    },
    async startedAt(id) {
      while (!started.has(id)) await delay(5)
      return started.get(id) ?? Number.NaN
    },
    async pause(pids) {
      for (const pid of pids) process.kill(pid, 'SIGSTOP')
    },
    async stop() {
      child.kill('SIGKILL')
    },
  }
}

/** Default limits are on, as high as the settings allow; several callers stay below them. */
const serviceSettings = { RATE_LIMIT_PER_MINUTE: '1000000', QUEUED_RUNS_MAX: '100000', LOG_LEVEL: 'info' }

export async function startService(databases: Databases, store: StoreName): Promise<Subject> {
  const filled = await databases.filled.get(store === 'SQLite' ? 'embedded' : 'postgres', 0)
  const env = { ...filled.env, ...serviceSettings, WORKER_SLOTS: String(slots) }
  const apis = await startInstallation(env, { apis: 1, workers: 0 })
  return {
    name: 'execution-service',
    store,
    url: apis.executionUrls[0] ?? '',
    apiKeys: filled.apiKeys,
    allKeys: filled.allKeys,
    isQueueing: true,
    serverPids: apis.apiPids,
    databasePids: filled.databasePid === undefined ? [] : [filled.databasePid],
    startWorkers: async () => {
      const workers = await startInstallation(env, { apis: 0, workers: 1 })
      return serviceWorkers(filled, apis, workers)
    },
    clear: () => filled.restore(),
    stop: () => apis.stop(),
  }
}

async function serviceWorkers(filled: FilledStore, apis: Installation, workers: Installation): Promise<Workers> {
  const store = await filled.open()
  const isBusy = async () => {
    const sql = `SELECT 1 AS one FROM runs WHERE status = 'queued' AND delayed = 0 AND waiting_for = ''
      UNION ALL SELECT 1 FROM runs WHERE status = 'running' LIMIT 1`
    return (await store.read.all(sql, [])).length > 0
  }
  const getRun = async (id: string) => {
    const headers = { authorization: `Bearer ${filled.apiKeys[0]}` }
    const response = await fetch(`${apis.executionUrls[0]}/v1/execution/runs/${id}`, { headers })
    return (await response.json()) as { status: string; output: unknown }
  }
  return {
    pids: workers.workerPids,
    async finish() {
      while (await isBusy()) await delay(5)
    },
    async startedAt(id) {
      for (;;) {
        const { status, output } = await getRun(id)
        if (status === 'succeeded') return Number(output)
        await delay(50)
      }
    },
    pause: (pids) => pause(store, pids),
    async stop() {
      await store.close()
      await workers.stop()
    },
  }
}
