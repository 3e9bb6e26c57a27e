/** Statistics of an account's runs: counted on request, and added up by maintenance. */
import { v7 as uuid } from 'uuid'
import { describe, expect, test } from 'vitest'
import { sumCounts } from '../../../src/domain/statistics/outcome-counts.ts'
import { RunRollups } from '../../../src/domain/statistics/run-rollups.ts'
import { type RangeName, RunStatistics } from '../../../src/domain/statistics/run-statistics.ts'
import type { RunsTable } from '../../../src/storage/tables/run-tables.ts'
import { claimableOf } from '../../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, type Test } from '../../support/domain.ts'
import { newRunRow } from '../../support/run-rows.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const minute = 60_000
const hour = 60 * minute
const none = { succeeded: 0, failed: 0, timedOut: 0, cancelled: 0, expired: 0 }

/** Half past the hour, away from both ends, and in the last of the bars of six hours. */
const halfPast = Math.floor(Date.now() / hour) * hour + hour / 2

async function openAt(test: Test, kind: StoreKind) {
  let time = halfPast
  const domain = await openDomain(test, { kind })
  const statistics = new RunStatistics(domain.store, () => time)
  /** Moves the clock and adds all runs up that have finished a minute before. */
  const addUpAt = async (moment: number) => {
    time = moment
    const rollups = new RunRollups(domain.store, () => time)
    while (await rollups.once());
  }
  return { domain, statistics, addUpAt, ...(await newAccount(domain)) }
}

/** Statements have at most 32,766 values. */
const rowsPerStatement = 500

type Finished = Pick<RunsTable, 'created_at' | 'finished_at'> & Partial<RunsTable>

/** Inserts runs that succeeded after a second, except for `changes`. */
async function insertFinished({ store }: Domain, accountId: string, runs: Finished[]) {
  const rows = runs.map(({ created_at, finished_at, ...changes }) => ({
    ...newRunRow(accountId, { id: uuid({ msecs: created_at }), created_at }),
    status: 'succeeded',
    started_at: (finished_at ?? 0) - 1000,
    finished_at,
    attempts: 1,
    failures: 0,
    losses: 0,
    continues: 0 as const,
    continuations: 0,
    executed_ms: 0,
    total_executed_ms: 0,
    has_waits: 0 as const,
    cancel_requested: 0 as const,
    secrets: null,
    ...changes,
  }))
  for (let from = 0; from < rows.length; from += rowsPerStatement) {
    const some = rows.slice(from, from + rowsPerStatement)
    await store.write(({ query }) => query.insertInto('runs').values(some).execute())
  }
}

describe.each(stores)('run statistics ($name)', (kind) => {
  test('measure what runs that waited have executed in their last attempt', async (test) => {
    const { domain, statistics, accountId } = await openAt(test, kind)
    const finished_at = halfPast
    const waited = { created_at: finished_at - 30 * minute, finished_at, started_at: finished_at - 30 * minute }
    const parts = { has_waits: 1 as const, attempt_started_at: finished_at - 2000, executed_ms: 3000 }
    await insertFinished(domain, accountId, [
      { ...waited, ...parts, workflow_id: 'succeeded', continues: 1 },
      { ...waited, ...parts, workflow_id: 'failed', status: 'failed' },
      { ...waited, ...parts, workflow_id: 'cancelled', status: 'cancelled', continues: 1 },
      { ...waited, workflow_id: 'without' },
    ])
    const { workflows } = await statistics.history(accountId, '1h')
    const seconds = Object.fromEntries(workflows.map(({ workflowId, p50 }) => [workflowId, (p50 ?? 0) / 1000]))
    for (const [id, expected] of Object.entries({ succeeded: 5, failed: 5, cancelled: 3, without: 30 * 60 }))
      expect(Math.abs((seconds[id] ?? 0) / expected - 1), id).toBeLessThan(0.1)
  })

  test('count ready, delayed and running runs, and have the oldest ready one', async (test) => {
    const { domain, statistics, accountId, principal } = await openAt(test, kind)
    const empty = { ready: 0, delayed: 0, running: 0, oldestReady: null }
    expect(await statistics.current(accountId)).toMatchObject(empty)
    const theirs = await newAccount(domain)
    await queueRun(domain, principal, { priority: 1 })
    await domain.queue.claim('worker', claimableOf(domain.workflows), 1, 15)
    await queueRun(domain, theirs.principal)
    await queueRun(domain, principal, { delaySeconds: 60 })
    const oldest = await queueRun(domain, principal)
    await queueRun(domain, principal, { priority: 1 })
    const oldestReady = { id: oldest.id, workflowId: 'anything', createdAt: oldest.createdAt }
    expect(await statistics.current(accountId)).toMatchObject({ ready: 2, delayed: 1, running: 1, oldestReady })
    await domain.runs.cancel(accountId, oldest.id)
    const claims = await domain.queue.claim('worker', claimableOf(domain.workflows), 2, 15)
    expect(claims.map((claim) => claim.accountId)).toContain(theirs.accountId)
    expect(await statistics.current(accountId)).toMatchObject({ ready: 0, delayed: 1, running: 2, oldestReady: null })
  })

  test('count each finished run once, by when it was queued, before and after it is added up', async (test) => {
    const { domain, statistics, addUpAt, accountId } = await openAt(test, kind)
    const theirs = await newAccount(domain)
    const [old, recent] = [halfPast - 5 * hour, halfPast - minute]
    const bars = async (range: RangeName) => {
      const { buckets } = await statistics.history(accountId, range)
      return buckets.flatMap(({ startsAt, counts }, index) =>
        sumCounts(counts) > 0 ? [[index, startsAt, counts]] : [],
      )
    }
    await insertFinished(domain, theirs.accountId, [{ created_at: recent, finished_at: halfPast }])
    const finished = halfPast - minute / 2
    await insertFinished(domain, accountId, [
      { created_at: old, finished_at: finished, status: 'failed' },
      { created_at: recent, finished_at: finished, status: 'timedOut' },
      { created_at: recent, finished_at: finished },
      { created_at: recent, finished_at: finished, status: 'deleted' },
    ])
    const expected = [
      [18, halfPast - 5.5 * hour, { ...none, failed: 1 }],
      [23, halfPast - 0.5 * hour, { ...none, timedOut: 1, succeeded: 1 }],
    ]
    const lastMinutes = [[10, halfPast - 5 * minute, { ...none, timedOut: 1, succeeded: 1 }]]
    expect(await bars('24h')).toEqual(expected)
    expect(await bars('1h')).toEqual(lastMinutes)
    await addUpAt(halfPast)
    expect(await bars('24h')).toEqual(expected)
    await addUpAt(halfPast + 4 * minute)
    expect(await domain.store.read.query.selectFrom('run_rollups').selectAll().execute()).toHaveLength(5)
    expect(await bars('24h')).toEqual(expected)
    await addUpAt(halfPast + 4.5 * minute)
    expect(await bars('24h')).toEqual(expected)
    expect(await bars('1h')).toEqual(lastMinutes)
    // More of the same periods.
    await insertFinished(domain, accountId, [{ created_at: recent, finished_at: halfPast + 4 * minute }])
    await addUpAt(halfPast + 9 * minute)
    expect((await bars('24h')).at(-1)).toEqual([23, halfPast - 0.5 * hour, { ...none, timedOut: 1, succeeded: 2 }])
    const week = await statistics.history(accountId, '7d')
    expect(week.buckets.reduce((sum, { counts }) => sum + sumCounts(counts), 0)).toBe(4)
  })

  test('have the counts, percentiles and history of each workflow, most runs first', async (test) => {
    const { domain, statistics, addUpAt, accountId } = await openAt(test, kind)
    const durations = Array.from({ length: 100 }, (_, index) => (index + 1) * 1000)
    const finished_at = halfPast - 10 * minute
    const created_at = halfPast - hour
    await insertFinished(domain, accountId, [
      ...durations.map((each) => ({ created_at, finished_at, started_at: finished_at - each })),
      { created_at, finished_at, status: 'expired', started_at: null, workflow_id: 'rare' },
    ])
    const before = await statistics.history(accountId, '24h')
    expect(before).toMatchObject({ isIncomplete: true, workflows: [] })
    await addUpAt(halfPast)
    const { isIncomplete, workflows } = await statistics.history(accountId, '24h')
    expect(isIncomplete).toBe(false)
    expect(workflows).toMatchObject([
      { workflowId: 'anything', counts: { ...none, succeeded: 100 }, lastFinishedAt: finished_at },
      { workflowId: 'rare', counts: { ...none, expired: 1 }, p50: null, p95: null },
    ])
    const [{ p50, p95, history } = { p50: 0, p95: 0, history: [] }] = workflows
    expect(Math.abs((p50 ?? 0) / 50_000 - 1)).toBeLessThan(0.1)
    expect(Math.abs((p95 ?? 0) / 95_000 - 1)).toBeLessThan(0.1)
    expect(history.map(sumCounts)).toEqual([...Array(22).fill(0), 100, 0])
  })

  test('add a backlog up in batches, in one of several processes, and delete what no range shows', async (test) => {
    const { domain, statistics, accountId } = await openAt(test, kind)
    const backlog = Array.from({ length: 4100 }, (_, index) => halfPast - 2 * 24 * hour + index)
    const longAgo = halfPast - 20 * 24 * hour
    await insertFinished(domain, accountId, [
      { created_at: longAgo, finished_at: longAgo },
      ...backlog.map((at) => ({ created_at: at, finished_at: at })),
    ])
    const processes = [1, 2].map(() => new RunRollups(domain.store, () => halfPast))
    while ((await Promise.all(processes.map((each) => each.once()))).includes(true));
    const [first] = (await statistics.history(accountId, '7d')).workflows
    expect(first?.counts).toEqual({ ...none, succeeded: 4100 })
    const later = halfPast + 20 * 24 * hour
    await insertFinished(domain, accountId, [{ created_at: later, finished_at: later }])
    const rollups = new RunRollups(domain.store, () => later + 2 * minute)
    while (await rollups.once());
    const left = await domain.store.read.query.selectFrom('run_rollups').select('starts_at').execute()
    expect(left.map(({ starts_at }) => Number(starts_at) > halfPast)).toEqual([true, true])
  })

  test('include every run queued before the request', async (test) => {
    const { domain, statistics, accountId, principal } = await openAt(test, kind)
    for (let ready = 0; ready < 5; ready += 1) {
      const before = [statistics.current(accountId), statistics.current(accountId)]
      await Promise.race(before)
      await queueRun(domain, principal)
      expect(await statistics.current(accountId)).toMatchObject({ ready: ready + 1 })
      await Promise.all(before)
    }
  })
})
