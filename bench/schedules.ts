/** Measures how long 10,000 schedules that are due in the same minute take, and how much callers wait meanwhile. */
import { v7 as uuid } from 'uuid'
import { type Domain, newAccount, queueRun } from '../test/support/domain.ts'
import { onEachStore } from './bench-domain.ts'
import type { BenchOptions } from './bench-options.ts'
import { median, print, table } from './figures.ts'

const rounds = 3
const due = 10_000
const accounts = 20

export async function schedules({ stores }: BenchOptions): Promise<void> {
  const rows = await onEachStore(stores, measure)
  const columns = ['store', 'all queued', 'rate', 'CPU a run', 'a caller alone: median, p99', 'meanwhile: median, p99']
  print(table([columns, ...rows]))
}

async function measure(domain: Domain): Promise<string[]> {
  const ids = await createSchedules(domain)
  const { principal } = await newAccount(domain)
  const [seconds, cpu]: [number[], number[]] = [[], []]
  const latencies: Record<'alone' | 'meanwhile', number[]> = { alone: [], meanwhile: [] }
  for (let round = 0; round < rounds; round += 1) {
    for (let count = 0; count < 200; count += 1) latencies.alone.push(await callerLatency(domain, principal))
    await makeDue(domain, ids)
    const [startedAt, startedCpu] = [performance.now(), process.cpuUsage()]
    let isQueueing = true
    const queueing = queueDue(domain).finally(() => {
      isQueueing = false
    })
    while (isQueueing) latencies.meanwhile.push(await callerLatency(domain, principal))
    await queueing
    seconds.push((performance.now() - startedAt) / 1000)
    const { user, system } = process.cpuUsage(startedCpu)
    cpu.push((user + system) / due)
  }
  const time = median(seconds)
  return [
    `${time.toFixed(2)} s`,
    `${Math.round(due / time)}/s`,
    `${Math.round(median(cpu))} µs`,
    ...Object.values(latencies).map((each) => `${median(each).toFixed(1)}, ${percentile(each, 0.99).toFixed(1)} ms`),
  ]
}

function percentile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0
}

/** Copies of one schedule for each account, which is due at midnight. */
async function createSchedules(domain: Domain): Promise<string[]> {
  const { store, schedules } = domain
  const ids: string[] = []
  for (let account = 0; account < accounts; account += 1) {
    const { accountId } = await newAccount(domain)
    const wanted = { workflowId: 'anything', variables: {}, cron: '0 0 * * *', timeZone: 'UTC' }
    const created = await schedules.create(accountId, wanted, { kind: 'operator', id: null, name: 'bench' }, uuid())
    if (created.kind !== 'created') throw new Error(`The schedule was not created: ${created.kind}`)
    const { id } = created.schedule
    ids.push(id)
    await store.write(async ({ query }) => {
      const row = await query.selectFrom('schedules').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
      for (let copied = 1; copied < due / accounts; copied += 100) {
        const copies = Array.from({ length: Math.min(100, due / accounts - copied) }, () => ({ ...row, id: uuid() }))
        ids.push(...copies.map((copy) => copy.id))
        await query.insertInto('schedules').values(copies).execute()
      }
    })
  }
  return ids
}

async function makeDue({ store }: Domain, ids: readonly string[]): Promise<void> {
  const next_at = Date.now()
  await store.write(async ({ query }) => {
    for (let start = 0; start < ids.length; start += 500) {
      await query
        .updateTable('schedules')
        .set({ next_at })
        .where('id', 'in', ids.slice(start, start + 500))
        .execute()
    }
  })
}

async function queueDue({ scheduler }: Domain): Promise<void> {
  const now = Date.now()
  while (((await scheduler.once()) ?? Number.POSITIVE_INFINITY) <= now) {
    // `once` queues the runs of 1,000 schedules.
  }
}

/** Milliseconds until a caller's run is queued. */
async function callerLatency(domain: Domain, principal: Parameters<typeof queueRun>[1]): Promise<number> {
  const startedAt = performance.now()
  await queueRun(domain, principal)
  return performance.now() - startedAt
}
