/** Measures how fast workers outside of the service execute waiting runs, compared with one of the service, and what an idle one costs. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Store } from '../src/storage/store.ts'
import type { BenchOptions } from './bench-options.ts'
import { median, print, table } from './figures.ts'
import { type FilledStore, FilledStores } from './filled-store.ts'
import { cpuSeconds, type Installation, processTree, startInstallation } from './separate-processes.ts'

const slots = 4
/** One request of the API. */
const queuedTogether = 1000
const idleSeconds = 30
/** After which a worker without runs writes nothing. */
const quietMilliseconds = 500

const paths = {
  main: fileURLToPath(new URL('../src/main.ts', import.meta.url)),
  python: fileURLToPath(new URL('../clients/python/src', import.meta.url)),
  workflows: fileURLToPath(new URL('./python/first_line.py', import.meta.url)),
}

interface Kind {
  name: string
  /** Ids of its workflows begin with this. */
  prefix: string
  start(installation: Subject): Promise<{ pid: number; stop(): Promise<void> }>
}

interface Subject {
  filled: FilledStore
  store: Store
  api: Installation
  url: string
  key: string
}

const kinds: readonly Kind[] = [
  {
    name: 'worker of the service',
    prefix: '',
    async start({ filled }) {
      const { workerPids, stop } = await startInstallation(filled.env, { apis: 0, workers: 1 })
      return { pid: workerPids[0] as number, stop }
    },
  },
  {
    name: 'Node.js over HTTP',
    prefix: '',
    start: ({ url, key }) => startRemote(url, key, process.execPath, [paths.main, 'worker', '--url', url]),
  },
  {
    name: 'Python over HTTP',
    prefix: 'python-',
    start({ url, key }) {
      const options = ['--url', url, '--capacity', String(slots)]
      return startRemote(url, key, 'python3', ['-m', 'execution_service', 'worker', ...options, paths.workflows])
    },
  },
]

/** Runs of each drain, by the workflow. */
const loads = [
  { workflowId: 'first-line', runs: 2000 },
  { workflowId: 'one-step', runs: 1000 },
]

interface Sample {
  rate: number
  /** Of all processes, for each run. */
  microseconds: number
}

export async function remoteWorkers({ stores, rounds }: BenchOptions): Promise<void> {
  const filled = new FilledStores()
  try {
    for (const kind of stores) {
      const target = await filled.get(kind, 0)
      const samples = kinds.map(() => loads.map((): Sample[] => []))
      const idle = await withService(target, async (subject) => {
        for (let round = 0; round < rounds; round += 1)
          for (const [index, each] of kinds.entries())
            for (const [load, sample] of (await measure(each, subject)).entries()) samples[index]?.[load]?.push(sample)
        return countIdleRequests(subject)
      })
      print(`${kind}, ${rounds} rounds\n`)
      for (const [load, { workflowId }] of loads.entries())
        print(
          formatTable(
            workflowId,
            samples.map((each) => each[load] as Sample[]),
          ),
        )
      print(`Requests of an idle worker in ${idleSeconds} s: ${idle}\n`)
    }
  } finally {
    await filled.close()
  }
}

async function withService<Result>(filled: FilledStore, act: (subject: Subject) => Promise<Result>): Promise<Result> {
  const store = await filled.open()
  const api = await startInstallation(filled.env, { apis: 1, workers: 0 })
  try {
    const [url, key] = [api.executionUrls[0] as string, filled.apiKeys[0] as string]
    return await act({ filled, store, api, url, key })
  } finally {
    await api.stop()
    await store.close()
    await filled.restore()
  }
}

async function startRemote(url: string, key: string, program: string, args: readonly string[]) {
  const env = { ...process.env, API_KEY: key, PYTHONPATH: paths.python, WORKER_SLOTS: String(slots), LOG_LEVEL: 'warn' }
  const child: ChildProcess = spawn(program, args, { env, stdio: ['ignore', 'ignore', 'inherit'] })
  for (let tries = 0; !(await isRegistered(url, key)); tries += 1) {
    if (child.exitCode !== null || tries > 1000) throw new Error(`${program} has not registered.`)
    await delay(20)
  }
  return {
    pid: child.pid as number,
    async stop() {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
    },
  }
}

async function isRegistered(url: string, key: string): Promise<boolean> {
  const headers = { authorization: `Bearer ${key}` }
  const { data } = (await (await fetch(`${url}/v1/execution/workers`, { headers })).json()) as {
    data: { capacity: number; name: string | null }[]
  }
  return data.some(({ name }) => name !== null)
}

async function measure(kind: Kind, subject: Subject): Promise<Sample[]> {
  const worker = await kind.start(subject)
  const { databasePid } = subject.filled
  const pids = [...subject.api.apiPids, worker.pid, ...(databasePid === undefined ? [] : [databasePid])]
  try {
    const samples: Sample[] = []
    for (const { workflowId, runs } of loads) {
      const drainOf = (count: number) => drain(subject, `${kind.prefix}${workflowId}`, count, worker.pid, pids)
      // Executes the code paths, in every executor, before they are measured.
      await drainOf(runs / 2)
      samples.push(await drainOf(runs))
    }
    return samples
  } finally {
    await worker.stop()
  }
}

/** The worker is paused while the runs are queued. */
async function drain(
  { store, url, key }: Subject,
  workflowId: string,
  runs: number,
  worker: number,
  pids: readonly number[],
): Promise<Sample> {
  // A process that is paused within a transaction would block the others.
  await delay(quietMilliseconds)
  const processes = processTree([worker])
  for (const pid of processes) process.kill(pid, 'SIGSTOP')
  try {
    for (let left = runs; left > 0; left -= queuedTogether)
      await queue(url, key, workflowId, Math.min(left, queuedTogether))
  } finally {
    for (const pid of processes) process.kill(pid, 'SIGCONT')
  }
  const [before, startedAt] = [cpuSeconds(pids), performance.now()]
  const sql = "SELECT 1 AS one FROM runs WHERE status IN ('queued', 'running') LIMIT 1"
  while ((await store.read.all(sql, [])).length > 0) await delay(20)
  const seconds = (performance.now() - startedAt) / 1000
  return { rate: runs / seconds, microseconds: ((cpuSeconds(pids) - before) * 1e6) / runs }
}

async function queue(url: string, key: string, workflowId: string, count: number): Promise<void> {
  const response = await fetch(`${url}/v1/execution/queue-remote-batch`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ runs: Array(count).fill({ workflowId, variableData: {} }) }),
  })
  if (response.status !== 202) throw new Error(`${response.status} ${await response.text()}`)
}

async function countIdleRequests(subject: Subject): Promise<number> {
  const worker = await (kinds[1] as Kind).start(subject)
  try {
    await delay(2000)
    const before = await countRequests(subject.api)
    await delay(idleSeconds * 1000)
    return (await countRequests(subject.api)) - before
  } finally {
    await worker.stop()
  }
}

/** Requests of workers that the API has answered, by its metrics. */
async function countRequests({ managementUrls }: Installation): Promise<number> {
  const text = await (await fetch(`${managementUrls[0]}/metrics`)).text()
  const counts = text.matchAll(/request_duration_seconds_count\{[^}]*surface="execution[^}]*\} (\d+)/g)
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
}

function formatTable(workflowId: string, samples: readonly Sample[][]): string {
  const rows = kinds.map(({ name }, index) => {
    const own = samples[index] ?? []
    const ratios = own.map(({ rate }, round) => rate / (samples[0]?.[round]?.rate ?? Number.NaN))
    const [low, high] = [Math.min(...ratios), Math.max(...ratios)]
    return [
      name,
      Math.round(median(own.map(({ rate }) => rate))),
      `${median(ratios).toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`,
      `${Math.round(median(own.map(({ microseconds }) => microseconds)))} µs`,
    ]
  })
  return table([[workflowId, 'runs/s', '÷ worker of the service', 'CPU per run'], ...rows])
}
