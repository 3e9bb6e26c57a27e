/** What executing a run costs, compared with other queues. CPU times are those of all processes, the database's included. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Bar } from './bars.ts'
import { median, percentile, print, table } from './figures.ts'
import type { StoreName, Subject, Workers } from './peer-subjects.ts'
import { queueRuns } from './queue-load.ts'
import { cpuSeconds, processTree } from './separate-processes.ts'

/** Fewer for a queue that would take longer than this. The first fifth as many more are not measured. */
const executed = { runsMax: 10_000, secondsMax: 15 }
const paced = { count: 100, intervalMilliseconds: 20 }
const fillConnections = 32
/** Accounts whose runs are executed. */
const callers = 4

/** The peer that each store's service is compared with. */
const compared = [
  { store: 'SQLite', peer: 'BullMQ, sandboxed', rateAtLeast: 1.2, cpuAtMost: 0.8 },
  { store: 'PostgreSQL', peer: 'graphile-worker', rateAtLeast: 1.5, cpuAtMost: 0.7 },
]

interface ExecutionSample {
  rate: number
  microseconds: number
  databaseMicroseconds: number
  latencies: number[]
}

type Samples = Map<Subject, ExecutionSample[]>

export async function compareExecution(all: readonly Subject[], rounds: number): Promise<Bar[]> {
  const subjects = all.filter(({ startWorkers }) => startWorkers)
  const samples: Samples = new Map(subjects.map((subject) => [subject, []]))
  for (let round = 0; round < rounds; round += 1) {
    for (const subject of subjects) samples.get(subject)?.push(await execute(subject))
  }
  print(formatSamples(samples))
  return compared.flatMap(({ store, peer, rateAtLeast, cpuAtMost }) => {
    const find = (name: string, of?: StoreName) =>
      [...samples].find(([each]) => each.name === name && (!of || each.store === of))?.[1]
    const [service, peers] = [find('execution-service', store as StoreName), find(peer)]
    if (!service || !peers) return []
    const ratios = (figure: 'rate' | 'microseconds') =>
      service.map((sample, round) => sample[figure] / (peers[round]?.[figure] ?? Number.NaN))
    return [
      { name: `executed runs a second ÷ ${peer}`, store, values: ratios('rate'), atLeast: rateAtLeast },
      { name: `CPU of an executed run ÷ ${peer}`, store, values: ratios('microseconds'), atMost: cpuAtMost },
    ]
  })
}

function formatSamples(samples: Samples): string {
  const rows = [...samples].map(([subject, own]) => {
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
  return table([['executed runs', 'store', 'runs/s', 'CPU', 'of that database', 'start p50', 'start p99'], ...rows])
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
  await workers.pause(pids)
  await fill(subject, runs)
  const measured = [...subject.serverPids, ...workers.pids]
  const [all, database] = [cpuSeconds(measured), cpuSeconds(subject.databasePids)]
  const startedAt = performance.now()
  for (const pid of pids) process.kill(pid, 'SIGCONT')
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
  const { url, apiKeys } = subject
  await queueRuns({ url, apiKeys: apiKeys.slice(0, callers), connections: fillConnections }, amount)
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
