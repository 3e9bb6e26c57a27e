/**
 * `npm run bench -- peers`: what queueing and executing a run cost, compared with other queues and with the least that
 * HTTP and a durable insert can cost, and then what many accounts, idle processes and reading cost. Ends with the aims.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { type Bar, formatBars } from './bars.ts'
import type { BenchOptions } from './bench-options.ts'
import { measureExecutorStart } from './executor-start.ts'
import { print } from './figures.ts'
import { idle } from './idle.ts'
import { compareExecution } from './peer-execution.ts'
import { compareQueueing, limits } from './peer-queueing.ts'
import { Databases, hasRedis, type Subject, startPeer, startService } from './peer-subjects.ts'
import { readingRequests } from './reading.ts'
import { tenants } from './tenants.ts'

const queues = { executes: false, isQueueing: true }
const executes = { framework: 'Fastify', executes: true, isQueueing: true }
const peers = [
  { name: limits.SQLite, framework: 'node:http', queue: 'sqlite', store: 'SQLite', ...queues },
  { name: 'Express, SQLite', framework: 'Express', queue: 'sqlite', store: 'SQLite', ...queues },
  { name: 'Express and EOV, SQLite', framework: 'Express, EOV', queue: 'sqlite', store: 'SQLite', ...queues },
  { name: limits.PostgreSQL, framework: 'node:http', queue: 'postgres', store: 'PostgreSQL', ...queues },
  { name: 'pg-boss', queue: 'pg-boss', store: 'PostgreSQL', ...executes },
  { name: 'graphile-worker', queue: 'graphile-worker', store: 'PostgreSQL', ...executes },
  { name: 'DBOS', queue: 'DBOS', store: 'PostgreSQL', ...executes },
  { name: 'BullMQ', queue: 'BullMQ', store: 'Redis', ...executes },
  { name: 'BullMQ, sandboxed', queue: 'BullMQ, sandboxed', store: 'Redis', ...executes, isQueueing: false },
] as const

export async function comparePeers(options: BenchOptions): Promise<void> {
  const { rounds } = options
  const directory = new URL('./peers/', import.meta.url).pathname
  if (!existsSync(`${directory}node_modules`)) {
    const { status } = spawnSync('npm', ['install', '--no-audit', '--no-fund'], { cwd: directory, stdio: 'inherit' })
    if (status !== 0) throw new Error(`npm install failed in ${directory}.`)
  }
  if (!hasRedis()) print('BullMQ is left out: install redis-server, or set REDIS_SERVER to its path.\n')
  const bars: Bar[] = []
  const databases = new Databases()
  const subjects: Subject[] = []
  try {
    for (const store of ['SQLite', 'PostgreSQL'] as const) subjects.push(await startService(databases, store))
    for (const peer of peers) {
      if (peer.store !== 'Redis' || hasRedis()) subjects.push(await startPeer(databases, peer))
    }
    bars.push(...(await compareQueueing(subjects, options)), ...(await compareExecution(subjects, rounds)))
  } finally {
    for (const subject of subjects) await subject.stop()
    await databases.close()
  }
  bars.push(...(await tenants(options)), await measureExecutorStart())
  bars.push(...(await idle(options)), ...(await readingRequests(options)))
  print(formatBars(bars))
}
