/** Statistics of an account's runs, counted on request. */
import { v7 as uuid } from 'uuid'
import { describe, expect, test } from 'vitest'
import { insertRuns } from '../../src/domain/runs/enqueue-batcher.ts'
import { RunStatistics } from '../../src/domain/runs/run-statistics.ts'
import { claimableOf, noRetry } from '../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, type Test } from '../support/domain.ts'
import { newRunRow } from '../support/run-rows.ts'
import { type StoreKind, stores } from '../support/store-kinds.ts'

const hour = 60 * 60 * 1000
const noRuns = { queued: 0, running: 0, succeeded: 0, failed: 0, timedOut: 0, cancelled: 0, expired: 0 }

/** Half past the hour, away from both ends. */
const halfPast = Math.floor(Date.now() / hour) * hour + hour / 2

async function openAt(test: Test, kind: StoreKind) {
  let time = halfPast
  const domain = await openDomain(test, { kind })
  const statistics = new RunStatistics(domain.store, () => time)
  const setClock = (moment: number) => {
    time = moment
  }
  return { domain, statistics, setClock, ...(await newAccount(domain)) }
}

/** Inserts runs queued at these times; returns their ids in order. */
async function insertRunsAt({ store }: Domain, accountId: string, moments: readonly number[]) {
  const rows = moments.map((createdAt) =>
    newRunRow(accountId, { id: uuid({ msecs: createdAt }), created_at: createdAt }),
  )
  await store.write((tx) => insertRuns(tx, rows))
  return rows.map(({ id }) => id).sort()
}

describe.each(stores)('run statistics ($name)', (kind) => {
  test('count ready, delayed and running runs, and have the oldest ready one', async (test) => {
    const { domain, statistics, accountId, principal } = await openAt(test, kind)
    const empty = { ready: 0, delayed: 0, running: 0, oldestReady: null }
    expect(await statistics.count(accountId)).toMatchObject(empty)
    const theirs = await newAccount(domain)
    await queueRun(domain, principal, { priority: 1 })
    await domain.queue.claim('worker', claimableOf(domain.workflows), 1, 15)
    await queueRun(domain, theirs.principal)
    await queueRun(domain, principal, { delaySeconds: 60 })
    const oldest = await queueRun(domain, principal)
    await queueRun(domain, principal, { priority: 1 })
    const oldestReady = { id: oldest.id, workflowId: 'anything', createdAt: oldest.createdAt }
    expect(await statistics.count(accountId)).toMatchObject({ ready: 2, delayed: 1, running: 1, oldestReady })
    await domain.runs.cancel(accountId, oldest.id)
    const claims = await domain.queue.claim('worker', claimableOf(domain.workflows), 2, 15)
    expect(claims.map((claim) => claim.accountId)).toContain(theirs.accountId)
    expect(await statistics.count(accountId)).toMatchObject({ ready: 0, delayed: 1, running: 2, oldestReady: null })
  })

  test('count the runs created in each of the last 24 hours by status', async (test) => {
    const { domain, statistics, accountId } = await openAt(test, kind)
    const present = halfPast - hour / 2
    const first = present - 23 * hour
    const theirs = await newAccount(domain)
    await insertRunsAt(domain, theirs.accountId, [first, present])
    // The first is a millisecond too old.
    const moments = [first - 1, first, first + hour - 1, first + hour, present - 1, present, halfPast]
    const [, cancelled] = await insertRunsAt(domain, accountId, moments)
    await domain.runs.cancel(accountId, cancelled ?? '')
    const { hours } = await statistics.count(accountId)
    expect(hours.map(({ startsAt }) => startsAt)).toEqual(
      Array.from({ length: 24 }, (_, index) => first + index * hour),
    )
    const counted = hours.filter(({ counts }) => Object.values(counts).some((count) => count > 0))
    expect(counted).toEqual([
      { startsAt: first, counts: { ...noRuns, queued: 1, cancelled: 1 } },
      { startsAt: first + hour, counts: { ...noRuns, queued: 1 } },
      { startsAt: present - hour, counts: { ...noRuns, queued: 1 } },
      { startsAt: present, counts: { ...noRuns, queued: 2 } },
    ])
  })

  test('follow the runs of past hours until they have finished', async (test) => {
    const { domain, statistics, setClock, accountId } = await openAt(test, kind)
    await insertRunsAt(domain, accountId, [halfPast - 5 * hour, halfPast - 5 * hour, halfPast - 5 * hour])
    const counted = async () => (await statistics.count(accountId)).hours[18]?.counts
    const workflows = domain.workflows.list()
    expect(await counted()).toEqual({ ...noRuns, queued: 3 })
    const [claim, lost] = await domain.queue.claim('worker', claimableOf(workflows), 2, 15)
    expect(await counted()).toEqual({ ...noRuns, queued: 1, running: 2 })
    if (claim) await domain.queue.complete(claim, { kind: 'succeeded', output: null }, noRetry)
    expect(await counted()).toEqual({ ...noRuns, queued: 1, running: 1, succeeded: 1 })
    if (lost) await domain.queue.complete(lost, { kind: 'workerStopped' }, noRetry)
    expect(await counted()).toEqual({ ...noRuns, queued: 2, succeeded: 1 })
    for (const each of await domain.queue.claim('worker', claimableOf(workflows), 2, 15)) {
      await domain.queue.complete(each, { kind: 'timedOut' }, noRetry)
    }
    expect(await counted()).toEqual({ ...noRuns, succeeded: 1, timedOut: 2 })
    setClock(halfPast + hour)
    const { hours } = await statistics.count(accountId)
    expect(hours[17]).toEqual({ startsAt: halfPast - 5.5 * hour, counts: { ...noRuns, succeeded: 1, timedOut: 2 } })
  })

  test('include a run that is stored just after the hour of its id', async (test) => {
    const { domain, statistics, setClock, accountId } = await openAt(test, kind)
    const end = halfPast + hour / 2
    setClock(end + 1)
    expect((await statistics.count(accountId)).hours[22]?.counts).toEqual(noRuns)
    await insertRunsAt(domain, accountId, [end - 1])
    expect((await statistics.count(accountId)).hours[22]?.counts).toEqual({ ...noRuns, queued: 1 })
  })

  test('include every run queued before the request', async (test) => {
    const { domain, statistics, accountId, principal } = await openAt(test, kind)
    for (let ready = 0; ready < 5; ready += 1) {
      const before = [statistics.count(accountId), statistics.count(accountId)]
      await Promise.race(before)
      await queueRun(domain, principal)
      expect(await statistics.count(accountId)).toMatchObject({ ready: ready + 1 })
      await Promise.all(before)
    }
  })
})
