/**
 * Measures how fast one worker executes waiting runs of many accounts, compared with the same runs of one account, and
 * what a run costs with several workers.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { Accounts } from '../src/domain/accounts/accounts.ts'
import { insertRuns } from '../src/domain/queue/enqueue-batcher.ts'
import type { Store } from '../src/storage/store.ts'
import { newRunRow } from '../test/support/run-rows.ts'
import { type Bar, formatRange } from './bars.ts'
import type { BenchOptions } from './bench-options.ts'
import { median, print, table } from './figures.ts'
import { FilledStores, type StoreKind } from './filled-store.ts'
import { cpuSeconds, processTree, startInstallation } from './separate-processes.ts'

interface Load {
  accounts: number
  runsOfEach: number
}

/** With what the rate is at least of that with one account. */
const loads: (Load & { atLeast?: number })[] = [
  { accounts: 1, runsOfEach: 4000 },
  { accounts: 20, runsOfEach: 100 },
  { accounts: 1000, runsOfEach: 4, atLeast: 0.4 },
  { accounts: 1000, runsOfEach: 1, atLeast: 0.1 },
]
/** What several workers drain together, and with what the CPU of a run is at most of that with one worker. */
const shared = { accounts: 4, runsOfEach: 3000, workers: 4, atMost: { embedded: 1.2, postgres: 1.3 } }
/** A load that would take longer is measured for this long. */
const secondsMax = 20
/** Executes the worker's code paths before they are measured. */
const warmUp: Load = { accounts: 1, runsOfEach: 1000 }

interface Sample {
  rate: number
  microseconds: number
}

export async function tenants({ stores, rounds }: BenchOptions): Promise<Bar[]> {
  const filled = new FilledStores()
  const bars: Bar[] = []
  try {
    for (const kind of stores) {
      const { env, databasePid, open, restore } = await filled.get(kind, 0)
      const store = await open()
      const database = databasePid === undefined ? [] : [databasePid]
      try {
        const accountIds = await createAccounts(store, Math.max(...loads.map(({ accounts }) => accounts)))
        const start = async (workers: number) => {
          const { workerPids, stop } = await startInstallation(env, { apis: 0, workers })
          const drainOf = (load: Load) => drain(store, accountIds, load, workerPids, database)
          await drainOf(warmUp)
          return { drainOf, stop }
        }
        print(`${kind}, ${rounds} rounds\n`)
        bars.push(...(await compareAccounts(kind, start, rounds)), await compareWorkers(kind, start, rounds))
      } finally {
        await store.close()
        await restore()
      }
    }
  } finally {
    await filled.close()
  }
  return bars
}

/** Starts workers that have executed runs. */
type Start = (workers: number) => Promise<{ drainOf(load: Load): Promise<Sample>; stop(): Promise<void> }>

async function compareAccounts(kind: StoreKind, start: Start, rounds: number): Promise<Bar[]> {
  const { drainOf, stop } = await start(1)
  const samples = loads.map((): Sample[] => [])
  try {
    for (let round = 0; round < rounds; round += 1)
      for (const [index, load] of loads.entries()) samples[index]?.push(await drainOf(load))
  } finally {
    await stop()
  }
  print(formatTable(samples))
  return loads.flatMap(({ accounts, runsOfEach, atLeast }, index) => {
    const name = `runs a second of ${accounts} accounts, ${runsOfEach} each ÷ one account`
    return atLeast === undefined ? [] : [{ name, store: kind, values: ratiosToFirst(samples, index), atLeast }]
  })
}

/** Alternately with one worker and several, so each round starts both. */
async function compareWorkers(kind: StoreKind, start: Start, rounds: number): Promise<Bar> {
  const samples: [one: Sample, several: Sample][] = []
  for (let round = 0; round < rounds; round += 1) {
    const pair: Sample[] = []
    for (const workers of [1, shared.workers]) {
      const { drainOf, stop } = await start(workers)
      pair.push(await drainOf(shared).finally(stop))
    }
    samples.push(pair as [Sample, Sample])
  }
  const figure = (index: 0 | 1, member: keyof Sample) => Math.round(median(samples.map((pair) => pair[index][member])))
  const rows = ([0, 1] as const).map((index) => [
    index === 0 ? 1 : shared.workers,
    figure(index, 'rate'),
    `${figure(index, 'microseconds')} µs`,
  ])
  print(table([['workers, 4 accounts with 3,000 runs each', 'runs/s', 'CPU per run'], ...rows]))
  const values = samples.map(([one, several]) => several.microseconds / one.microseconds)
  return { name: `CPU of a run, ${shared.workers} workers ÷ 1`, store: kind, values, atMost: shared.atMost[kind] }
}

/** The worker is paused while the runs are inserted. */
async function drain(
  store: Store,
  accountIds: readonly string[],
  { accounts, runsOfEach }: Load,
  workers: readonly number[],
  database: readonly number[],
): Promise<Sample> {
  const processes = processTree(workers)
  await pause(store, processes)
  const runs = accountIds
    .slice(0, accounts)
    .flatMap((id) => Array.from({ length: runsOfEach }, () => newRunRow(id, { workflow_id: 'first-line' })))
  for (let from = 0; from < runs.length; from += 500)
    await store.write((tx) => insertRuns(tx, runs.slice(from, from + 500)))
  const before = cpuSeconds([...workers, ...database])
  const startedAt = performance.now()
  for (const pid of processes) process.kill(pid, 'SIGCONT')
  store.notify('queue')
  const left = await untilFinished(store, startedAt + secondsMax * 1000)
  const seconds = (performance.now() - startedAt) / 1000
  const cpu = cpuSeconds([...workers, ...database]) - before
  const executed = runs.length - left
  await store.write((tx) => tx.all("DELETE FROM runs WHERE status = 'queued'", []))
  await untilFinished(store, Number.POSITIVE_INFINITY)
  return { rate: executed / seconds, microseconds: (cpu * 1e6) / executed }
}

/** Within a write, so that none of them stops while it has the lock of the embedded store. */
export async function pause(store: Store, pids: readonly number[]): Promise<void> {
  await store.write(async () => {
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
  })
}

/** Returns how many runs are left at the deadline. */
async function untilFinished(store: Store, deadline: number): Promise<number> {
  const unfinished = "FROM runs WHERE status IN ('queued', 'running')"
  while ((await store.read.all(`SELECT 1 AS one ${unfinished} LIMIT 1`, [])).length > 0) {
    if (performance.now() <= deadline) await delay(20)
    else return (await store.read.all<{ count: number }>(`SELECT COUNT(*) AS count ${unfinished}`, []))[0]?.count ?? 0
  }
  return 0
}

async function createAccounts(store: Store, count: number): Promise<string[]> {
  const accounts = new Accounts(store)
  const ids: string[] = []
  for (let number = 0; number < count; number += 1)
    ids.push((await accounts.create({ name: `Tenant ${number}`, scopesEnabled: false })).id)
  return ids
}

function ratiosToFirst(samples: readonly Sample[][], index: number): number[] {
  return (samples[index] ?? []).map(({ rate }, round) => rate / (samples[0]?.[round]?.rate ?? Number.NaN))
}

function formatTable(samples: readonly Sample[][]): string {
  const rows = loads.map(({ accounts, runsOfEach }, index) => [
    accounts,
    runsOfEach,
    Math.round(median((samples[index] ?? []).map(({ rate }) => rate))),
    formatRange(ratiosToFirst(samples, index)),
    `${Math.round(median((samples[index] ?? []).map(({ microseconds }) => microseconds)))} µs`,
  ])
  return table([['accounts', 'runs of each', 'runs/s', '÷ one account', 'CPU per run'], ...rows])
}
