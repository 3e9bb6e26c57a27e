/** Measures how fast one worker executes waiting runs of many accounts, compared with the same runs of one account. */
import { setTimeout as delay } from 'node:timers/promises'
import { Accounts } from '../src/domain/accounts/accounts.ts'
import { insertRuns } from '../src/domain/queue/enqueue-batcher.ts'
import type { Store } from '../src/storage/store.ts'
import { newRunRow } from '../test/support/run-rows.ts'
import type { BenchOptions } from './bench-options.ts'
import { median, print, table } from './figures.ts'
import { FilledStores } from './filled-store.ts'
import { cpuSeconds, processTree, startInstallation } from './separate-processes.ts'

interface Load {
  accounts: number
  runsOfEach: number
}

const loads: Load[] = [
  { accounts: 1, runsOfEach: 4000 },
  { accounts: 20, runsOfEach: 100 },
  { accounts: 1000, runsOfEach: 4 },
  { accounts: 1000, runsOfEach: 1 },
]
/** Executes the worker's code paths before they are measured. */
const warmUp: Load = { accounts: 1, runsOfEach: 1000 }

interface Sample {
  rate: number
  microseconds: number
}

export async function tenants({ stores, rounds }: BenchOptions): Promise<void> {
  const filled = new FilledStores()
  try {
    for (const kind of stores) {
      const { env, databasePid, open, restore } = await filled.get(kind, 0)
      const store = await open()
      const installation = await startInstallation(env, { apis: 1, workers: 1 })
      const { workerPids: workers } = installation
      const database = databasePid === undefined ? [] : [databasePid]
      const samples = loads.map((): Sample[] => [])
      try {
        const accountIds = await createAccounts(store, Math.max(...loads.map(({ accounts }) => accounts)))
        const drainOf = (load: Load) => drain(store, accountIds, load, workers, database)
        await drainOf(warmUp)
        for (let round = 0; round < rounds; round += 1)
          for (const [index, load] of loads.entries()) samples[index]?.push(await drainOf(load))
      } finally {
        await installation.stop()
        await store.close()
        await restore()
      }
      print(`${kind}, ${rounds} rounds\n`)
      print(formatTable(samples))
    }
  } finally {
    await filled.close()
  }
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
  for (const pid of processes) process.kill(pid, 'SIGSTOP')
  const runs = accountIds
    .slice(0, accounts)
    .flatMap((id) => Array.from({ length: runsOfEach }, () => newRunRow(id, { workflow_id: 'first-line' })))
  for (let from = 0; from < runs.length; from += 500)
    await store.write((tx) => insertRuns(tx, runs.slice(from, from + 500)))
  const before = cpuSeconds([...workers, ...database])
  const startedAt = performance.now()
  for (const pid of processes) process.kill(pid, 'SIGCONT')
  store.notify('queue')
  await untilFinished(store)
  const seconds = (performance.now() - startedAt) / 1000
  const cpu = cpuSeconds([...workers, ...database]) - before
  return { rate: runs.length / seconds, microseconds: (cpu * 1e6) / runs.length }
}

async function untilFinished(store: Store): Promise<void> {
  const sql = "SELECT 1 AS one FROM runs WHERE status IN ('queued', 'running') LIMIT 1"
  while ((await store.read.all(sql, [])).length > 0) await delay(20)
}

async function createAccounts(store: Store, count: number): Promise<string[]> {
  const accounts = new Accounts(store)
  const ids: string[] = []
  for (let number = 0; number < count; number += 1)
    ids.push((await accounts.create({ name: `Tenant ${number}`, scopesEnabled: false })).id)
  return ids
}

function formatTable(samples: readonly Sample[][]): string {
  const rateOf = (index: number, round: number) => samples[index]?.[round]?.rate ?? Number.NaN
  const rows = loads.map(({ accounts, runsOfEach }, index) => {
    const ratios = (samples[index] ?? []).map(({ rate }, round) => rate / rateOf(0, round))
    const [low, high] = [Math.min(...ratios), Math.max(...ratios)]
    return [
      accounts,
      runsOfEach,
      Math.round(median((samples[index] ?? []).map(({ rate }) => rate))),
      `${median(ratios).toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`,
      `${Math.round(median((samples[index] ?? []).map(({ microseconds }) => microseconds)))} µs`,
    ]
  })
  return table([['accounts', 'runs of each', 'runs/s', '÷ one account', 'CPU per run'], ...rows])
}
