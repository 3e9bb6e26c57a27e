/** Measures what API processes and workers cost while nothing happens: CPU time, memory, and statements by PostgreSQL's log. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startPostgres } from '../test/support/postgres-server.ts'
import type { Bar } from './bars.ts'
import type { BenchOptions } from './bench-options.ts'
import { print, table } from './figures.ts'
import type { StoreKind } from './filled-store.ts'
import { cpuSeconds, type Shape, startInstallation } from './separate-processes.ts'
import { measureMemory } from './single-service.ts'

const shapes: Record<StoreKind, Shape[]> = {
  embedded: [{ apis: 1, workers: 1 }],
  postgres: [
    { apis: 1, workers: 1 },
    { apis: 8, workers: 8 },
  ],
}
/** Executors are prepared, keys looked up and caches filled in this time. */
const quietSeconds = 15
const measuredSeconds = 30
/** Statements that are listed. */
const listedMax = 12

export async function idle({ stores }: BenchOptions): Promise<Bar[]> {
  const measured: [StoreKind, Shape, Idle][] = []
  const rows: string[][] = []
  const listings: string[] = []
  for (const kind of stores) {
    for (const shape of shapes[kind]) {
      const name = `${kind}, ${shape.apis} API and ${shape.workers} worker${shape.workers > 1 ? 's' : ''}`
      const figures = await measure(kind, shape)
      measured.push([kind, shape, figures])
      rows.push([name, ...toCells(figures, shape)])
      const listed = figures.statements.slice(0, listedMax).map(([text, count]) => [text, count.toFixed(2)])
      if (listed.length > 0) listings.push(table([[`statements: ${name}`, 'a second'], ...listed]))
    }
  }
  const columns = ['idle', 'CPU of APIs', 'of workers', 'in all', 'statements', 'a process', 'memory (PSS)']
  print([table([columns, ...rows]), ...listings].join('\n'))
  return barsOf(measured)
}

/** Each by the second. */
interface Idle {
  apiMilliseconds: number
  workerMilliseconds: number
  /** The most frequent first. */
  statements: [text: string, count: number][]
  megabytes: number
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
const cpuOf = ({ apiMilliseconds, workerMilliseconds }: Idle) => apiMilliseconds + workerMilliseconds
const statementsOf = ({ statements }: Idle) => sum(statements.map(([, count]) => count))

function toCells(figures: Idle, { apis, workers }: Shape): string[] {
  const { apiMilliseconds, workerMilliseconds, statements, megabytes } = figures
  const cpu = [apiMilliseconds, workerMilliseconds, cpuOf(figures)].map((value) => `${value.toFixed(1)} ms/s`)
  const total = statementsOf(figures)
  const counts = statements.length > 0 ? [total, total / (apis + workers)].map((value) => value.toFixed(2)) : ['', '']
  return [...cpu, ...counts, `${megabytes.toFixed(0)} MB`]
}

function barsOf(measured: readonly [StoreKind, Shape, Idle][]): Bar[] {
  return measured.flatMap(([store, { apis, workers }, figures]) => {
    const single = measured.find(([kind, shape]) => kind === store && shape.apis === 1)?.[2]
    const statements = statementsOf(figures)
    const bar = (name: string, value: number, atMost: number) => ({ name, store, values: [value], atMost })
    if (apis > 1 && single) {
      const times = `idle: ${apis} APIs and ${workers} workers ÷ 1 and 1`
      return [
        bar(`${times}, CPU`, cpuOf(figures) / cpuOf(single), 1.5),
        bar(`${times}, statements`, statements / statementsOf(single), 1.5),
      ]
    }
    const cpu = bar('idle: CPU, ms a second', cpuOf(figures), 5)
    return statements > 0
      ? [cpu, bar('idle: statements a second and process', statements / (apis + workers), 2)]
      : [cpu]
  })
}

async function measure(kind: StoreKind, shape: Shape): Promise<Idle> {
  const directory = mkdtempSync(join(tmpdir(), 'bench-idle-'))
  const server = kind === 'postgres' ? await startPostgres({ settings: { log_statement: 'all' } }) : undefined
  try {
    const env = { DATA_DIR: directory, ...(server && { DATABASE_URL: server.url() }) }
    const installation = await startInstallation(env, shape)
    const { apiPids, workerPids } = installation
    await delay(quietSeconds * 1000)
    const cpu = () => [apiPids, workerPids].map(cpuSeconds)
    const [before, logged] = [cpu(), server?.log().length ?? 0]
    await delay(measuredSeconds * 1000)
    const milliseconds = cpu().map((seconds, kindOfProcess) => (seconds - (before[kindOfProcess] ?? 0)) * 1000)
    const statements = countStatements(server?.log().slice(logged) ?? '')
    const memory = [...apiPids, ...workerPids].flatMap(measureMemory)
    await installation.stop()
    const [apiMilliseconds = 0, workerMilliseconds = 0] = milliseconds.map((value) => value / measuredSeconds)
    return {
      apiMilliseconds,
      workerMilliseconds,
      statements: statements.map(([text, count]) => [text, count / measuredSeconds]),
      megabytes: sum(memory.map(({ proportionalKilobytes }) => proportionalKilobytes)) / 1024,
    }
  } finally {
    await server?.remove()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Statements in the log of PostgreSQL, most frequent first, with their numbers. */
function countStatements(log: string): [string, number][] {
  const counts = new Map<string, number>()
  for (const [, first = ''] of log.matchAll(/^.*LOG: {2}(?:execute [^:]+|statement): (.*(?:\n\t.*)*)/gm)) {
    const text = first.replace(/\s+/g, ' ').replaceAll('|', ' ').slice(0, 150)
    counts.set(text, (counts.get(text) ?? 0) + 1)
  }
  return [...counts].sort(([, a], [, b]) => b - a)
}
