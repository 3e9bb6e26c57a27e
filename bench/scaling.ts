/** How many runs are acknowledged, started and finished with more processes, and with more finished runs in the store. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Store } from '../src/storage/store.ts'
import type { Choice } from './choice.ts'
import { median, percentile, print, table } from './figures.ts'
import { type FilledStore, FilledStores, type StoreKind } from './filled-store.ts'
import type { LoadResult, Task } from './load-client.ts'
import { cpuSeconds, type Installation, type Shape, startInstallation } from './processes.ts'

const connectionCount = 64
/** As many accounts call at the same time. */
const callers = 4
const paced = { count: 50, intervalMilliseconds: 20 }
/** Own rates fall by so much at most, from an empty to a full store. */
const fallPercentMax = 10

interface Sample {
  acceptedPerSecond: number
  /** Of the API processes for each run that they accepted. */
  apiMicroseconds: number
  /** Of the database for each run that was accepted, with what workers ask of it meanwhile. */
  databaseMicroseconds: number
  answerMilliseconds: number
  latencies: number[]
  finishedPerSecond: number
  /** Of the workers for each run that they executed. */
  workerMicroseconds: number
}

type Samples = Map<string, Sample[]>

const keyOf = (kind: StoreKind, { apis, workers }: Shape, finished: number) => `${kind} ${apis}x${workers} ${finished}`

export async function scaling(choice: Choice): Promise<void> {
  const stores = new FilledStores()
  const samples: Samples = new Map()
  try {
    for (const kind of choice.stores) for (const finished of choice.finished) await stores.get(kind, finished)
    for (const kind of choice.stores) {
      for (const shape of choice.shapes) await compare(stores, { ...choice, kind, shape }, samples)
    }
  } finally {
    await stores.close()
  }
  for (const kind of choice.stores) {
    print(tableOf(kind, choice, samples))
    print(`${verdictOf(kind, choice, samples)}\n`)
  }
}

type Comparison = Choice & { kind: StoreKind; shape: Shape }

/** All installations of a shape are there all the time, and those that are compared take turns of seconds. */
async function compare(stores: FilledStores, choice: Comparison, samples: Samples): Promise<void> {
  const { kind, shape, finished, rounds, seconds } = choice
  const subjects: Subject[] = []
  try {
    for (const count of finished) subjects.push(await open(await stores.get(kind, count), shape))
    // Not counted: what is compiled, planned and cached at the first requests.
    for (const subject of subjects) await measure(subject, 1)
    for (let round = 0; round < rounds; round += 1) {
      // In the other order every second time: what changes steadily meanwhile hits all alike.
      for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
        const key = keyOf(kind, shape, subject.filled.finished)
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

/** Its processes have nothing to do afterwards, while others are measured. */
async function measure({ filled, installation, clients, store }: Subject, seconds: number): Promise<Sample> {
  const apiKeys = filled.apiKeys.slice(0, callers)
  const { executionUrls: urls, apiPids, workerPids } = installation
  const database = filled.databasePid === undefined ? [] : [filled.databasePid]
  const [first] = clients
  if (!first) throw new Error('There is no client.')
  const latencies = await ask<number[]>(first, { task: 'pace', urls, apiKeys, ...paced })

  const [apiBefore, databaseBefore] = [cpuSeconds(apiPids), cpuSeconds(database)]
  const loads = await askAll(clients, urls, { apiKeys, seconds })
  const accepted = loads.reduce((sum, load) => sum + load.accepted, 0)
  const [apiCpu, databaseCpu] = [cpuSeconds(apiPids) - apiBefore, cpuSeconds(database) - databaseBefore]

  const [from, workersBefore] = [await finishedCount(store), cpuSeconds(workerPids)]
  const begun = performance.now()
  await untilNothingWaits(store)
  const milliseconds = performance.now() - begun
  const done = (await finishedCount(store)) - from
  const workersCpu = cpuSeconds(workerPids) - workersBefore
  return {
    acceptedPerSecond: accepted / seconds,
    apiMicroseconds: (apiCpu * 1e6) / accepted,
    databaseMicroseconds: (databaseCpu * 1e6) / accepted,
    answerMilliseconds: Math.max(...loads.map(({ p99 }) => p99)),
    latencies,
    finishedPerSecond: (done * 1000) / milliseconds,
    workerMicroseconds: (workersCpu * 1e6) / done,
  }
}

function askAll(clients: ChildProcess[], urls: string[], task: { apiKeys: string[]; seconds: number }) {
  const connections = connectionCount / clients.length
  return Promise.all(
    clients.map((client, index) =>
      ask<LoadResult>(client, { task: 'load', url: urls[index] ?? '', connections, ...task }),
    ),
  )
}

async function ask<Result>(client: ChildProcess, task: Task): Promise<Result> {
  const answered = new AbortController()
  const { signal } = answered
  const ended = once(client, 'exit', { signal }).then(() => {
    throw new Error('A client ended.')
  })
  ended.catch(() => {})
  client.send(task)
  try {
    const [result] = await Promise.race([once(client, 'message', { signal }), ended])
    return result
  } finally {
    answered.abort()
  }
}

const openedAt = Date.now()

async function finishedCount(store: Store): Promise<number> {
  const sql = 'SELECT COUNT(*) AS count FROM runs WHERE finished_at > ?'
  const [row] = await store.read.all<{ count: number }>(sql, [openedAt])
  return row?.count ?? 0
}

async function untilNothingWaits(store: Store): Promise<void> {
  const sql = `SELECT 1 AS one FROM runs WHERE status = 'queued' AND delayed = 0 AND waits_for_context = 0
    UNION ALL SELECT 1 FROM runs WHERE status = 'running' LIMIT 1`
  while ((await store.read.all(sql, [])).length > 0) await new Promise((resolve) => setTimeout(resolve, 10))
}

function tableOf(kind: StoreKind, { shapes, finished }: Choice, samples: Samples): string {
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
      const of = samples.get(keyOf(kind, shape, count)) ?? []
      const figure = (member: Exclude<keyof Sample, 'latencies'>) => median(of.map((sample) => sample[member]))
      const latencies = of.flatMap((sample) => sample.latencies)
      return [
        `${shape.apis}, ${shape.workers}`,
        count.toLocaleString('en'),
        Math.round(figure('acceptedPerSecond')),
        `${figure('answerMilliseconds').toFixed(0)} ms`,
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

/** By pairs of one round, which follow each other: what else the machine does hits both alike. */
function ratiosOf(measure: Measure, kind: StoreKind, shape: Shape, { finished }: Choice, samples: Samples): number[] {
  const [empty = [], full = []] = [Math.min(...finished), Math.max(...finished)].map((count) =>
    samples.get(keyOf(kind, shape, count)),
  )
  return full.map((sample, round) => sample[measure] / (empty[round]?.[measure] ?? Number.NaN))
}

/** Over all shapes, since the rounds of one are too few to tell a tenth. */
function verdictOf(kind: StoreKind, choice: Choice, samples: Samples): string {
  const over = (measure: Measure) => choice.shapes.flatMap((shape) => ratiosOf(measure, kind, shape, choice, samples))
  const [accepted, done] = [over('acceptedPerSecond'), over('finishedPerSecond')]
  const cpu = `CPU of APIs ${told(over('apiMicroseconds'))}, of workers ${told(over('workerMicroseconds'))}`
  const [least, most] = [Math.min(...choice.finished), Math.max(...choice.finished)]
  const counts = `${most.toLocaleString('en')} finished runs ÷ ${least.toLocaleString('en')}`
  const verdicts = `202/s ${told(accepted)} ${verdict(accepted)}, done/s ${told(done)} ${verdict(done)}`
  return `- ${kind}, ${counts}: ${cpu}; own rates fall by at most ${fallPercentMax} %: ${verdicts}`
}

function told(ratios: number[]): string {
  const [low, high] = boundsOf(ratios)
  return `${median(ratios).toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`
}

/** Between which the median of many more rounds is, with 95 %: by the normal approximation of the binomial. */
function boundsOf(ratios: number[]): [number, number] {
  const sorted = ratios.toSorted((a, b) => a - b)
  const [middle, reach] = [sorted.length / 2, 0.98 * Math.sqrt(sorted.length)]
  const low = sorted.at(Math.max(0, Math.floor(middle - reach)))
  const high = sorted.at(Math.min(sorted.length, Math.ceil(middle + reach)) - 1)
  return [low ?? Number.NaN, high ?? Number.NaN]
}

function verdict(ratios: number[]): string {
  const [low, high] = boundsOf(ratios)
  const least = 1 - fallPercentMax / 100
  if (high < least) return 'does not hold'
  return ratios.length >= 6 && low >= least ? 'holds' : 'cannot be told'
}
