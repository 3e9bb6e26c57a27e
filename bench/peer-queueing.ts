/** What queueing a run costs the server, compared with other queues and with the least that HTTP and a durable insert can cost. */
import { type Bar, formatRange } from './bars.ts'
import type { BenchOptions } from './bench-options.ts'
import { median, print, table } from './figures.ts'
import type { StoreName, Subject } from './peer-subjects.ts'
import { type Accepted, asPoisson, byWrk, hasWrk, inLockstep, type Load } from './queue-load.ts'
import { cpuSeconds } from './separate-processes.ts'

/** Callers of the service share its load, so that none reaches a limit. */
const callers = 4
const lockstepConnections = [1, 32, 64, 256]
/** With what the rate is at least of node:http's, for clients that know nothing of each other. */
const wrkBars = [
  { connections: 32, SQLite: 0.5, PostgreSQL: 0.6 },
  { connections: 64, SQLite: 0.5, PostgreSQL: 0.6 },
  { connections: 256, SQLite: 0.6, PostgreSQL: 0.6 },
]
const poisson = { connections: 64, rate: 2000, atLeast: { SQLite: 0.5, PostgreSQL: 0.6 } }
const manyKeys = { connections: 64, atLeast: { SQLite: 0.9, PostgreSQL: 0.85 } }

/** Subjects whose rate is the limit for each store. */
export const limits: Record<StoreName, string> = {
  SQLite: 'node:http, SQLite',
  PostgreSQL: 'node:http, PostgreSQL',
  Redis: '',
}

type Rounds = Pick<BenchOptions, 'rounds' | 'seconds'>

interface QueueSample {
  rate: number
  serverMicroseconds: number
  databaseMicroseconds: number
}

type Samples = Map<Subject, QueueSample[]>

export async function compareQueueing(all: readonly Subject[], { rounds, seconds }: Rounds): Promise<Bar[]> {
  const subjects = all.filter(({ isQueueing }) => isQueueing)
  for (const subject of subjects) await measure(subject, inLockstep, { connections: 32, seconds: 2 })
  for (const connections of lockstepConnections) {
    const samples = await measureAll(subjects, rounds, inLockstep, { connections, seconds })
    print(formatRates(`${connections} in lockstep`, samples))
  }
  const compared = subjects.filter(({ name }) => name === 'execution-service' || Object.values(limits).includes(name))
  const bars: Bar[] = []
  if (!hasWrk()) print('Independent clients are left out: install wrk.\n')
  for (const { connections, ...atLeast } of hasWrk() ? wrkBars : []) {
    const samples = await measureAll(compared, rounds, byWrk, { connections, seconds })
    print(formatRates(`${connections} of wrk`, samples))
    bars.push(...barsOf(`queue ÷ node:http, ${connections} of wrk`, samples, ({ rate }) => rate, atLeast))
  }
  const arrive = (load: Load) => asPoisson(load, poisson.rate)
  const samples = await measureAll(compared, rounds, arrive, { connections: poisson.connections, seconds })
  print(formatRates(`${poisson.rate} a second at random`, samples))
  bars.push(...barsOf('queue: CPU of node:http ÷ CPU, at random', samples, perCpuSecond, poisson.atLeast))
  const services = subjects.filter(({ name }) => name === 'execution-service')
  return [...bars, ...(await compareKeys(services, rounds, seconds))]
}

const perCpuSecond = (sample: QueueSample) => 1 / (sample.serverMicroseconds + sample.databaseMicroseconds)

async function measureAll(
  subjects: readonly Subject[],
  rounds: number,
  apply: (load: Load) => Promise<Accepted>,
  load: Pick<Load, 'connections' | 'seconds'>,
): Promise<Samples> {
  const samples: Samples = new Map(subjects.map((subject) => [subject, []]))
  for (let round = 0; round < rounds; round += 1) {
    for (const subject of subjects) {
      samples.get(subject)?.push(await measure(subject, apply, load))
      await subject.clear()
    }
  }
  return samples
}

async function measure(
  subject: Subject,
  apply: (load: Load) => Promise<Accepted>,
  load: Pick<Load, 'connections' | 'seconds'>,
  apiKeys: readonly string[] = subject.apiKeys.slice(0, callers),
): Promise<QueueSample> {
  const { url, serverPids, databasePids } = subject
  const [server, database] = [cpuSeconds(serverPids), cpuSeconds(databasePids)]
  const { count, seconds } = await apply({ url, apiKeys, ...load }).catch((error: Error) => {
    throw new Error(`${subject.name}: ${error.message}`, { cause: error })
  })
  const perRequest = (cpu: number) => (cpu * 1e6) / count
  return {
    rate: count / seconds,
    serverMicroseconds: perRequest(cpuSeconds(serverPids) - server),
    databaseMicroseconds: perRequest(cpuSeconds(databasePids) - database),
  }
}

function limitOf({ store }: Subject, samples: Samples): QueueSample[] {
  return [...samples].find(([{ name }]) => name === limits[store])?.[1] ?? []
}

function ratiosOf(subject: Subject, samples: Samples, figure: (sample: QueueSample) => number): number[] {
  const limit = limitOf(subject, samples)
  return (samples.get(subject) ?? []).map((own, round) => figure(own) / figure(limit[round] as QueueSample))
}

function barsOf(
  name: string,
  samples: Samples,
  figure: (sample: QueueSample) => number,
  atLeast: Record<'SQLite' | 'PostgreSQL', number>,
): Bar[] {
  return [...samples.keys()].flatMap((subject) => {
    if (subject.name !== 'execution-service' || subject.store === 'Redis') return []
    const values = ratiosOf(subject, samples, figure)
    return [{ name, store: subject.store, values, atLeast: atLeast[subject.store] }]
  })
}

function formatRates(title: string, samples: Samples): string {
  const rows = [...samples].map(([subject, own]) => {
    const figure = (member: keyof QueueSample) => Math.round(median(own.map((sample) => sample[member])))
    return [
      subject.name,
      subject.store,
      figure('rate'),
      limits[subject.store] ? formatRange(ratiosOf(subject, samples, ({ rate }) => rate)) : '',
      `${figure('serverMicroseconds')} µs`,
      subject.databasePids.length > 0 ? `${figure('databaseMicroseconds')} µs` : '',
    ]
  })
  return table([[title, 'store', '202/s', '÷ node:http', 'server CPU', 'database CPU'], ...rows])
}

/** Many keys of many accounts, alternately with one key. */
async function compareKeys(services: readonly Subject[], rounds: number, seconds: number): Promise<Bar[]> {
  const load = { connections: manyKeys.connections, seconds }
  const rows: (string | number)[][] = []
  const bars: Bar[] = []
  for (const subject of services) {
    const samples: [one: QueueSample, many: QueueSample][] = []
    for (let round = 0; round < rounds; round += 1) {
      const one = await measure(subject, inLockstep, load, subject.apiKeys.slice(0, 1))
      await subject.clear()
      samples.push([one, await measure(subject, inLockstep, load, subject.allKeys)])
      await subject.clear()
    }
    const figure = (index: 0 | 1, member: keyof QueueSample) =>
      Math.round(median(samples.map((pair) => pair[index][member])))
    const values = samples.map(([one, many]) => many.rate / one.rate)
    rows.push([
      subject.store,
      figure(0, 'rate'),
      figure(1, 'rate'),
      formatRange(values),
      `${figure(0, 'serverMicroseconds')} µs`,
      `${figure(1, 'serverMicroseconds')} µs`,
    ])
    const { store } = subject
    if (store === 'Redis') continue
    bars.push({ name: 'queue, 100 keys ÷ 1 key', store, values, atLeast: manyKeys.atLeast[store] })
  }
  print(table([['keys', '1 key', '100 keys', 'ratio', 'CPU, 1 key', 'CPU, 100 keys'], ...rows]))
  return bars
}
