/** Maintenance: delays end, unstarted runs expire, and leases of lost workers expire, once and on time. */
import { describe, expect, test, vi } from 'vitest'
import { eventsAfter } from '../../src/domain/queue/runs.sql.ts'
import { Maintenance } from '../../src/maintenance/maintenance.ts'
import { type Store, StoreUnavailable, type Transaction } from '../../src/storage/store.ts'
import { claimableOf, claimOne, createManualClock, noRetry } from '../support/claims.ts'
import {
  type Domain,
  newAccount,
  newStoreLocation,
  openDomain,
  queueRun,
  retention,
  type Test,
} from '../support/domain.ts'
import { postgres } from '../support/postgres.ts'
import { sqlText } from '../support/run-rows.ts'
import { type StoreKind, stores } from '../support/store-kinds.ts'
import { waitLimits } from '../support/timeouts.ts'

/** A domain with a clock that the test sets. */
async function openAt(test: Test, kind: StoreKind) {
  let time = Date.now()
  const domain = await openDomain(test, { kind, now: () => time })
  const { principal } = await newAccount(domain)
  const setClock = (moment: number) => {
    time = moment
  }
  /** Sets the clock and runs maintenance. */
  const until = (moment: number) => {
    time = moment
    return domain.maintenance.once()
  }
  return { domain, principal, setClock, until }
}

async function claimIds({ queue, workflows }: Domain) {
  const claims = await queue.claim('worker', claimableOf(workflows), 10, 15)
  return claims.map(({ runId }) => runId)
}

describe.each(stores)('maintenance ($name)', (kind) => {
  test('ends a delay on time, to the millisecond', async (test) => {
    const { domain, principal, until } = await openAt(test, kind)
    const run = await queueRun(domain, principal, { delaySeconds: 60 })
    const get = () => domain.runs.get(principal.accountId, run.id)
    const availableAt = run.createdAt + 60_000
    expect(run).toMatchObject({ waitingFor: 'delay', availableAt })
    expect(await until(availableAt - 1)).toBe(1)
    expect(await claimIds(domain)).toEqual([])
    expect(await get()).toMatchObject({ waitingFor: 'delay', availableAt })
    const notified = vi.fn()
    domain.store.listen('queue', notified)
    await until(availableAt)
    expect(await get()).toMatchObject({ waitingFor: 'worker', availableAt })
    await vi.waitFor(() => expect(notified).toHaveBeenCalled(), waitLimits)
    expect(await claimIds(domain)).toEqual([run.id])
  })

  test('expires a run that has not started in time, even a delayed one', async (test) => {
    const { domain, principal, until } = await openAt(test, kind)
    const ready = await queueRun(domain, principal, { expiresInSeconds: 10 })
    const delayed = await queueRun(domain, principal, { expiresInSeconds: 10, delaySeconds: 9 })
    const unlimited = await queueRun(domain, principal)
    const expiresAt = delayed.createdAt + 10_000
    expect(delayed.expiresAt).toBe(expiresAt)
    await until(ready.createdAt + 9_999)
    expect(await domain.runs.get(principal.accountId, ready.id)).toMatchObject({ status: 'queued' })
    await until(expiresAt)
    for (const { id } of [ready, delayed]) {
      const expired = {
        status: 'expired',
        reason: 'notStartedInTime',
        finishedAt: expiresAt,
        startedAt: null,
        attempts: 0,
      }
      expect(await domain.runs.get(principal.accountId, id)).toMatchObject(expired)
      const last = (await eventsAfter(domain.store.read, id, 0, 10)).at(-1)
      expect(last).toMatchObject({
        sequence: 2,
        at: expiresAt,
        data: { status: 'expired', reason: 'notStartedInTime' },
      })
    }
    expect(await claimIds(domain)).toEqual([unlimited.id])
  })

  test('is not needed to keep an expired run from starting', async (test) => {
    const { domain, principal, setClock } = await openAt(test, kind)
    await queueRun(domain, principal, { expiresInSeconds: 10, priority: 5 })
    const other = await queueRun(domain, principal)
    setClock(other.createdAt + 10_000)
    expect(await claimIds(domain)).toEqual([other.id])
  })

  test('does not expire a run that has started, even when it is queued again', async (test) => {
    const { domain, principal, until } = await openAt(test, kind)
    const run = await queueRun(domain, principal, { expiresInSeconds: 10 })
    const [claim] = await domain.queue.claim('worker', claimableOf(domain.workflows), 1, 100)
    await until(run.createdAt + 20_000)
    expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status: 'running' })
    const retry = { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 1 }
    if (claim) await domain.queue.complete(claim, { kind: 'workerStopped' }, retry)
    await until(run.createdAt + 30_000)
    expect(await claimIds(domain)).toEqual([run.id])
  })

  test('changes each run once when two processes run it at the same time', async (test) => {
    const { domain, principal, until } = await openAt(test, kind)
    const started = await Promise.all(Array.from({ length: 10 }, () => queueRun(domain, principal)))
    expect(await claimIds(domain)).toHaveLength(10)
    const expire = () => queueRun(domain, principal, { expiresInSeconds: 1 })
    const unstarted = await Promise.all(Array.from({ length: 10 }, expire))
    const later = Date.now() + 60_000
    const other = await openDomain(test, { kind, location: domain.location, now: () => later })
    await Promise.all([until(later), other.maintenance.once(), until(later), other.maintenance.once()])
    const statuses = async (id: string) =>
      (await eventsAfter(domain.store.read, id, 0, 10)).map(({ data }) => data.status)
    for (const { id } of started) expect(await statuses(id)).toEqual(['queued', 'running', 'queued'])
    for (const { id } of unstarted) expect(await statuses(id)).toEqual(['queued', 'expired'])
  })

  test('writes nothing when nothing is due', async (test) => {
    const { domain, principal, until } = await openAt(test, kind)
    await queueRun(domain, principal, { delaySeconds: 3600 })
    // Measures the new run.
    await until(Date.now())
    const write = vi.spyOn(domain.store, 'write')
    expect(await until(Date.now() + 60_000)).toBe(5000)
    expect(write).not.toHaveBeenCalled()
  })

  test('repeats until it is stopped', async (test) => {
    const domain = await openDomain(test, { kind })
    const { principal } = await newAccount(domain)
    const run = await queueRun(domain, principal, { delaySeconds: 1 })
    domain.maintenance.start()
    test.onTestFinished(() => domain.maintenance.stop())
    const waitingFor = async () => (await domain.runs.get(principal.accountId, run.id))?.waitingFor
    await vi.waitUntil(async () => (await waitingFor()) === 'worker', waitLimits)
  })

  test('reports an error and continues', async (test) => {
    const location = await newStoreLocation(test, kind)
    const store = await kind.open(location)
    const failed = vi.fn()
    const maintenance = new Maintenance({ store, retention, log: { warn: failed } })
    await store.close()
    maintenance.start()
    test.onTestFinished(() => maintenance.stop())
    await vi.waitFor(() => expect(failed).toHaveBeenCalledTimes(2), waitLimits)
    expect(failed).toHaveBeenCalledWith({ err: expect.any(StoreUnavailable) }, 'maintenance failed; retrying')
  })
})

test('a run that starts while maintenance looks for expired runs does not expire (postgres)', async (test) => {
  const clock = createManualClock()
  const slowTime = clock.now()
  const domain = await openDomain(test, { kind: postgres, now: clock.now })
  const other = await openDomain(test, { kind: postgres, location: domain.location, now: () => slowTime })
  const { principal } = await newAccount(domain)
  const run = await queueRun(domain, principal, { expiresInSeconds: 10 })
  clock.advance(60)
  const { store } = domain
  const write: Store['write'] = (work, options) =>
    store.write(async (tx) => {
      const all: Transaction['all'] = async (sql, values) => {
        const rows = await tx.all(sql, values)
        if (/^SELECT id FROM runs\s+WHERE status = 'queued' AND expires_at/.test(sqlText(sql))) {
          const claim = await claimOne(other)
          await other.queue.complete(claim, { kind: 'workerStopped' }, noRetry)
        }
        return rows as never
      }
      return work({ ...tx, all })
    }, options)
  await new Maintenance({ store: { ...store, write }, retention, log: { warn() {} }, now: clock.now }).once()
  expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status: 'queued', attempts: 1 })
})
