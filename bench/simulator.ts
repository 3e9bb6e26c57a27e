/** Measures the simulator: its start, a simulated year of hourly runs with retries and webhooks, and its memory with many runs. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Simulator, startSimulator } from '../src/simulator/simulator.ts'
import { print, table } from './figures.ts'

const workflows = fileURLToPath(new URL('../examples/workflows', import.meta.url))
const yearSeconds = 365 * 24 * 3600
/** Runs whose memory is measured, queued by the hundred. */
const manyRuns = 100_000
const queuedAtOnce = 100
/** The first attempt of each run fails, and is retried. */
const scenarios = [
  {
    workflow: 'check-links',
    firstAttempts: 1,
    outcome: 'failed' as const,
    error: { message: 'The site is busy.' },
  },
]

export async function simulator(): Promise<void> {
  const receiver = fork(fileURLToPath(new URL('webhook-receiver.ts', import.meta.url)))
  const [port] = (await once(receiver, 'message')) as [number]
  try {
    const begun = sample()
    const world = await startSimulator({ workflows, scenarios, now: new Date('2030-01-01T00:00:00Z') })
    const rows = [row('start', begun)]
    await prepare(world, port)
    const yearBegun = sample()
    await world.advance({ seconds: yearSeconds })
    rows.push(row('a year of hourly runs, retries and webhooks', yearBegun))
    await world.stop()
    const filled = await startSimulator({ workflows, now: new Date('2030-01-01T00:00:00Z') })
    const before = memory()
    const manyBegun = sample()
    await fill(filled)
    rows.push(row(`${manyRuns} runs queued and ended`, manyBegun))
    print(table([['simulator', 'seconds', 'CPU seconds'], ...rows]))
    print(`Memory: ${before} MB after the start, ${memory()} MB with ${manyRuns} runs.`)
    await filled.stop()
  } finally {
    receiver.kill()
  }
}

const sample = () => ({ time: performance.now(), cpu: process.cpuUsage() })

function row(name: string, { time, cpu }: ReturnType<typeof sample>): string[] {
  const { user, system } = process.cpuUsage(cpu)
  return [name, ((performance.now() - time) / 1000).toFixed(1), ((user + system) / 1e6).toFixed(1)]
}

/** PSS in MB. */
function memory(): number {
  const [, kilobytes = '0'] = /^Pss:\s+(\d+)/m.exec(readFileSync('/proc/self/smaps_rollup', 'utf8')) ?? []
  return Math.round(Number(kilobytes) / 1024)
}

async function send(world: Simulator, method: string, path: string, body: object): Promise<void> {
  const response = await fetch(`${world.executionUrl}/v1/execution/${path}`, {
    method,
    headers: { Authorization: `Bearer ${world.apiKey}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
}

async function prepare(world: Simulator, port: number): Promise<void> {
  await send(world, 'POST', 'webhook-endpoints', { url: `http://127.0.0.1:${port}/`, events: ['run.succeeded'] })
  await send(world, 'POST', 'schedules', {
    workflowId: 'check-links',
    cron: '0 * * * *',
    timeZone: 'UTC',
    variableData: { url: 'https://example.com/' },
  })
}

async function fill(world: Simulator): Promise<void> {
  for (let queued = 0; queued < manyRuns; queued += queuedAtOnce) {
    const runs = Array.from({ length: queuedAtOnce }, () => ({
      workflowId: 'check-links',
      variableData: { url: 'https://example.com/' },
    }))
    await send(world, 'POST', 'queue-remote-batch', { runs })
    await world.advance({ seconds: 60 })
  }
}
