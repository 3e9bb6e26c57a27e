/**
 * Measures what waiting runs cost callers and memory, how late 10,000 sleeps that end in one second are, how soon a run
 * goes on after its answer, and what a call costs.
 */
import { v7 as uuid } from 'uuid'
import { Maintenance } from '../src/maintenance/maintenance.ts'
import { type Domain, newAccount, queueRun, type Test } from '../test/support/domain.ts'
import { onEachStore } from './bench-domain.ts'
import type { BenchOptions } from './bench-options.ts'
import { median, percentile, print, table } from './figures.ts'
import { measureGoingOn, residentMegabytes, startOn } from './going-on.ts'

const due = 10_000
const rounds = 400
const memoryRounds = 3
const rowsPerStatement = 200

export async function waits({ stores, waiting }: BenchOptions): Promise<void> {
  const rows = await onEachStore(stores, (domain, test) => measure(domain, test, waiting))
  const columns = [
    'store',
    'queue: median',
    `with ${waiting.toLocaleString('en')} waiting`,
    'ratio',
    'memory of new processes',
    '10,000 sleeps: median late',
    'p99',
  ]
  print(table([columns, ...rows]))
  const goingOn = await onEachStore(stores, measureGoingOn)
  const head = [
    'store',
    '202 to first line',
    'answer to next line',
    'ratio',
    'a call: CPU',
    'time',
    '20 calls: CPU',
    'time',
  ]
  print(table([head, ...goingOn]))
}

async function measure(domain: Domain, test: Test, waiting: number): Promise<string[]> {
  const { principal } = await newAccount(domain)
  const template = (await queueRun(domain, principal)).id
  const before = await newProcesses(domain, test)
  const without = await queueMedian(domain, principal)
  await insertWaiting(domain, template, waiting, () => Date.now() + 86_400_000)
  const withWaiting = await queueMedian(domain, principal)
  const after = await newProcesses(domain, test)
  const late = await measureSleeps(domain, template)
  return [
    `${without.toFixed(2)} ms`,
    `${withWaiting.toFixed(2)} ms`,
    (withWaiting / without).toFixed(2),
    `${(after - before).toFixed(0)} MB`,
    `${median(late).toFixed(0)} ms`,
    `${percentile(late, 99).toFixed(0)} ms`,
  ]
}

async function queueMedian(domain: Domain, principal: Parameters<typeof queueRun>[1]): Promise<number> {
  const milliseconds: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const startedAt = performance.now()
    await queueRun(domain, principal)
    milliseconds.push(performance.now() - startedAt)
  }
  return median(milliseconds)
}

/** The median memory of an API process and a worker that have opened the store, in megabytes. */
async function newProcesses(domain: Domain, test: Test): Promise<number> {
  const megabytes: number[] = []
  for (let start = 0; start < memoryRounds; start += 1) {
    const installation = await startOn(domain, test)
    megabytes.push(await residentMegabytes(installation).finally(() => installation.stop()))
  }
  return median(megabytes)
}

/** Copies of a run, each with a sleep. @param deadline of the next one. */
async function insertWaiting({ store }: Domain, id: string, count: number, deadline: () => number): Promise<void> {
  const row = await store.read.query.selectFrom('runs').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  const state = { status: 'waiting', reason: 'waiting', waiting_for: 'sleep', has_waits: 1, attempts: 1 } as const
  const { account_id, workflow_id } = row
  const wait = { account_id, workflow_id, name: 'pause', kind: 'sleep', status: 'open', delivered: 0 } as const
  const unset = { completed_at: null, completed_by: null, child_run_id: null, title: null, shown: null, value: null }
  for (let done = 0; done < count; done += rowsPerStatement) {
    const runs = Array.from({ length: rowsPerStatement }, () => ({ ...row, ...state, id: uuid() }))
    const sleeps = runs.map(({ id: run_id }) => {
      return {
        ...wait,
        ...unset,
        run_id,
        id: uuid(),
        is_detached: 0,
        reached_at: Date.now(),
        deadline: deadline(),
      } as const
    })
    await store.write(async ({ query }) => {
      await query.insertInto('runs').values(runs).execute()
      await query.insertInto('run_waits').values(sleeps).execute()
    })
  }
}

/** By how much each sleep ends too late, with the maintenance of a service. */
async function measureSleeps(domain: Domain, template: string): Promise<number[]> {
  const { store } = domain
  const retention = { runs: 30, artifacts: 30, auditLog: 365 }
  const begin = Date.now() + 20_000
  let next = 0
  await insertWaiting(domain, template, due, () => begin + Math.floor((next++ / due) * 1000))
  const maintenance = new Maintenance({ store, retention, log: { warn: fail } })
  maintenance.start()
  const isLeft = async () => {
    const open = store.read.query.selectFrom('run_waits').select('id').where('status', '=', 'open')
    return (
      (await open
        .where('deadline', '<', begin + 1000)
        .limit(1)
        .executeTakeFirst()) !== undefined
    )
  }
  while (await isLeft()) await new Promise((resolve) => setTimeout(resolve, 200))
  await maintenance.stop()
  const ended = store.read.query.selectFrom('run_waits').select(['deadline', 'completed_at'])
  const rows = await ended.where('status', '=', 'completed').execute()
  return rows.map(({ deadline, completed_at }) => Number(completed_at) - Number(deadline))
}

function fail(error: unknown): never {
  throw error
}
