/** Measures what API processes and workers cost while nothing happens: CPU time, memory, and statements by PostgreSQL's log. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startPostgres } from '../test/support/postgres-server.ts'
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

export async function idle({ stores }: BenchOptions): Promise<void> {
  const rows: string[][] = []
  const listings: string[] = []
  for (const kind of stores) {
    for (const shape of shapes[kind]) {
      const name = `${kind}, ${shape.apis} API and ${shape.workers} worker${shape.workers > 1 ? 's' : ''}`
      const { row, statements } = await measure(kind, shape)
      rows.push([name, ...row])
      if (statements.length === 0) continue
      listings.push(table([[`statements: ${name}`, 'a second'], ...statements.slice(0, listedMax)]))
    }
  }
  const columns = ['idle', 'CPU of APIs', 'of workers', 'in all', 'statements', 'a process', 'memory (PSS)']
  print([table([columns, ...rows]), ...listings].join('\n'))
}

async function measure(kind: StoreKind, shape: Shape): Promise<{ row: string[]; statements: [string, string][] }> {
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
    const perSecond = (count: number) => (count / measuredSeconds).toFixed(2)
    const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
    const total = sum(statements.map(([, count]) => count))
    const counts = server ? [perSecond(total), perSecond(total / (shape.apis + shape.workers))] : ['', '']
    const megabytes = sum(memory.map(({ proportionalKilobytes }) => proportionalKilobytes)) / 1024
    const cpuCells = [...milliseconds, sum(milliseconds)].map((value) => `${(value / measuredSeconds).toFixed(1)} ms/s`)
    return {
      row: [...cpuCells, ...counts, `${megabytes.toFixed(0)} MB`],
      statements: statements.map(([text, count]) => [text, perSecond(count)]),
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
