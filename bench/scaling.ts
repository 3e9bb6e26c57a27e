/** Measures the rates of queued, started and finished runs by the number of processes and of finished runs in the store. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Store } from '../src/storage/store.ts'
import type { BenchOptions } from './bench-options.ts'
import { median, percentile, print, table } from './figures.ts'
import { type FilledStore, FilledStores, type StoreKind } from './filled-store.ts'
import type { LoadResult, Task } from './load-client.ts'
import { cpuSeconds, type Installation, type Shape, startInstallation } from './separate-processes.ts'

const connectionCount = 64
/** Number of accounts that queue runs concurrently. */
const callers = 4
const paced = { count: 50, intervalMilliseconds: 20 }
/** Allowed decrease of the rates from the smallest to the largest store. */
const fallPercentMax = 10

interface Sample {
  acceptedPerSecond: number
  /** CPU time of the API processes per accepted run. */
  apiMicroseconds: number
  /** CPU time of the database per accepted run, including the workers' statements. */
  databaseMicroseconds: number
  responseMilliseconds: number
  latencies: number[]
  finishedPerSecond: number
  /** CPU time of the workers per executed run. */
  workerMicroseconds: number
}

type Samples = Map<string, Sample[]>

const sampleKey = (kind: StoreKind, { apis, workers }: Shape, finished: number) =>
  `${kind} ${apis}x${workers} ${finished}`

export async function scaling(options: BenchOptions): Promise<void> {
  const stores = new FilledStores()
  const samples: Samples = new Map()
  try {
    for (const kind of options.stores) for (const finished of options.finished) await stores.get(kind, finished)
    for (const kind of options.stores) {
      for (const shape of options.shapes) await compare(stores, { ...options, kind, shape }, samples)
    }
  } finally {
    await stores.close()
  }
  for (const kind of options.stores) {
    print(formatTable(kind, options, samples))
    print(`${formatVerdict(kind, options, samples)}\n`)
  }
}

type Comparison = BenchOptions & { kind: StoreKind; shape: Shape }

/** Runs all installations of a shape at once, and measures them alternately. */
async function compare(stores: FilledStores, options: Comparison, samples: Samples): Promise<void> {
  const { kind, shape, finished, rounds, seconds } = options
  const subjects: Subject[] = []
  try {
    for (const count of finished) subjects.push(await open(await stores.get(kind, count), shape))
    // Warm-up: the first requests compile, plan and cache.
    for (const subject of subjects) await measure(subject, 1)
    for (let round = 0; round < rounds; round += 1) {
      // Reverses the order every second round, against steady changes of the machine's load.
      for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
        const key = sampleKey(kind, shape, subject.filled.finished)
        const sample = await measure(subject, seconds)
        samples.set(key, [...(samples.get(key) ?? []), sample])
        process.stderr.write(`round ${round + 1}, ${key}: ${Math.round(sample.acceptedPerSecond)}/s\n`)
      }
    }
  } finally {
    for (const subject of subjects) await close(subject)
  }
}

interface Subject {
  filled: FilledStore
  installation: Installation
  clients: ChildProcess[]
  store: Store
}

async function open(filled: FilledStore, shape: Shape): Promise<Subject> {
  const installation = await startInstallation(filled.env, shape)
  const clients = installation.executionUrls.map(() => fork(new URL('./load-client.ts', import.meta.url).pathname))
  return { filled, installation, clients, store: await filled.open() }
}

async function close({ filled, installation, clients, store }: Subject): Promise<void> {
  await store.close()
  for (const client of clients) client.kill()
  await installation.stop()
  await filled.restore()
}

/** Measures an installation, and leaves its processes idle. */
async function measure({ filled, installation, clients, store }: Subject, seconds: number): Promise<Sample> {
  const apiKeys = filled.apiKeys.slice(0, callers)
  const { executionUrls: urls, apiPids, workerPids } = installation
  const database = filled.databasePid === undefined ? [] : [filled.databasePid]
  const [first] = clients
  if (!first) throw new Error('No client was started.')
  const latencies = await request<number[]>(first, { task: 'pace', urls, apiKeys, ...paced })

  const [apiBefore, databaseBefore] = [cpuSeconds(apiPids), cpuSeconds(database)]
  const loads = await requestAll(clients, urls, { apiKeys, seconds })
  const accepted = loads.reduce((sum, load) => sum + load.accepted, 0)
  const [apiCpu, databaseCpu] = [cpuSeconds(apiPids) - apiBefore, cpuSeconds(database) - databaseBefore]

  const [from, workersBefore] = [await finishedCount(store), cpuSeconds(workerPids)]
  const startedAt = performance.now()
  await waitUntilIdle(store)
  const milliseconds = performance.now() - startedAt
  const done = (await finishedCount(store)) - from
  const workersCpu = cpuSeconds(workerPids) - workersBefore
  return {
    acceptedPerSecond: accepted / seconds,
    apiMicroseconds: (apiCpu * 1e6) / accepted,
    databaseMicroseconds: (databaseCpu * 1e6) / accepted,
    responseMilliseconds: Math.max(...loads.map(({ p99 }) => p99)),
    latencies,
    finishedPerSecond: (done * 1000) / milliseconds,
    workerMicroseconds: (workersCpu * 1e6) / done,
  }
}

function requestAll(clients: ChildProcess[], urls: string[], task: { apiKeys: string[]; seconds: number }) {
  const connections = connectionCount / clients.length
  return Promise.all(
    clients.map((client, index) =>
      request<LoadResult>(client, { task: 'load', url: urls[index] ?? '', connections, ...task }),
    ),
  )
}

async function request<Result>(client: ChildProcess, task: Task): Promise<Result> {
  const responded = new AbortController()
  const { signal } = responded
  const ended = once(client, 'exit', { signal }).then(() => {
    throw new Error('A client ended.')
  })
  ended.catch(() => {})
  client.send(task)
  try {
    const [result] = await Promise.race([once(client, 'message', { signal }), ended])
    return result
  } finally {
    responded.abort()
  }
}

const openedAt = Date.now()

async function finishedCount(store: Store): Promise<number> {
  const sql = 'SELECT COUNT(*) AS count FROM runs WHERE finished_at > ?'
  const [row] = await store.read.all<{ count: number }>(sql, [openedAt])
  return row?.count ?? 0
}

async function waitUntilIdle(store: Store): Promise<void> {
  const sql = `SELECT 1 AS one FROM runs WHERE status = 'queued' AND delayed = 0 AND waiting_for = ''
    UNION ALL SELECT 1 FROM runs WHERE status = 'running' LIMIT 1`
  while ((await store.read.all(sql, [])).length > 0) await new Promise((resolve) => setTimeout(resolve, 10))
}

function formatTable(kind: StoreKind, { shapes, finished }: BenchOptions, samples: Samples): string {
  const head = [
    'APIs, workers',
    'finished',
    '202/s',
    'p99',
    'API CPU',
    'start p50',
    'start p99',
    'done/s',
    'worker CPU',
  ]
  const rows = shapes.flatMap((shape) =>
    finished.map((count) => {
      const configurationSamples = samples.get(sampleKey(kind, shape, count)) ?? []
      const figure = (member: Exclude<keyof Sample, 'latencies'>) =>
        median(configurationSamples.map((sample) => sample[member]))
      const latencies = configurationSamples.flatMap((sample) => sample.latencies)
      return [
        `${shape.apis}, ${shape.workers}`,
        count.toLocaleString('en'),
        Math.round(figure('acceptedPerSecond')),
        `${figure('responseMilliseconds').toFixed(0)} ms`,
        `${Math.round(figure('apiMicroseconds'))} µs`,
        `${median(latencies).toFixed(1)} ms`,
        `${percentile(latencies, 99).toFixed(1)} ms`,
        Math.round(figure('finishedPerSecond')),
        `${Math.round(figure('workerMicroseconds'))} µs`,
        ...(kind === 'postgres' ? [`${Math.round(figure('databaseMicroseconds'))} µs`] : []),
      ]
    }),
  )
  return table([
    [
      ...head.map((name, column) => (column === 0 ? `${kind}: ${name}` : name)),
      ...(kind === 'postgres' ? ['database CPU'] : []),
    ],
    ...rows,
  ])
}

type Measure = 'acceptedPerSecond' | 'finishedPerSecond' | 'apiMicroseconds' | 'workerMicroseconds'

/** Returns the ratios of the largest to the smallest store, per round, so that other load affects both values. */
function computeRatios(
  measure: Measure,
  kind: StoreKind,
  shape: Shape,
  { finished }: BenchOptions,
  samples: Samples,
): number[] {
  const [empty = [], full = []] = [Math.min(...finished), Math.max(...finished)].map((count) =>
    samples.get(sampleKey(kind, shape, count)),
  )
  return full.map((sample, round) => sample[measure] / (empty[round]?.[measure] ?? Number.NaN))
}

/** Combines all shapes, since the rounds of one are too few to detect a difference of a tenth. */
function formatVerdict(kind: StoreKind, options: BenchOptions, samples: Samples): string {
  const ratiosOf = (measure: Measure) =>
    options.shapes.flatMap((shape) => computeRatios(measure, kind, shape, options, samples))
  const [accepted, done] = [ratiosOf('acceptedPerSecond'), ratiosOf('finishedPerSecond')]
  const cpu = `CPU of APIs ${formatRatio(ratiosOf('apiMicroseconds'))}, of workers ${formatRatio(ratiosOf('workerMicroseconds'))}`
  const [least, most] = [Math.min(...options.finished), Math.max(...options.finished)]
  const counts = `${most.toLocaleString('en')} finished runs ÷ ${least.toLocaleString('en')}`
  const verdicts = `202/s ${formatRatio(accepted)} ${verdict(accepted)}, done/s ${formatRatio(done)} ${verdict(done)}`
  return `- ${kind}, ${counts}: ${cpu}; rates decrease by at most ${fallPercentMax} %: ${verdicts}`
}

function formatRatio(ratios: number[]): string {
  const [low, high] = confidenceInterval(ratios)
  return `${median(ratios).toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`
}

/** Returns the 95 % confidence interval of the median, by the normal approximation of the binomial distribution. */
function confidenceInterval(ratios: number[]): [number, number] {
  const sorted = ratios.toSorted((a, b) => a - b)
  const [middle, reach] = [sorted.length / 2, 0.98 * Math.sqrt(sorted.length)]
  const low = sorted.at(Math.max(0, Math.floor(middle - reach)))
  const high = sorted.at(Math.min(sorted.length, Math.ceil(middle + reach)) - 1)
  return [low ?? Number.NaN, high ?? Number.NaN]
}

function verdict(ratios: number[]): string {
  const [low, high] = confidenceInterval(ratios)
  const least = 1 - fallPercentMax / 100
  if (high < least) return 'does not hold'
  return ratios.length >= 6 && low >= least ? 'holds' : 'undecided'
}
