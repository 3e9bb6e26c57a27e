/** What time alone does to runs: delays end, runs that did not start expire; and nothing happens twice or too early. */
import { describe, expect, test, vi } from 'vitest'
import { eventsAfter } from '../../src/domain/runs/runs.sql.ts'
import { Maintenance } from '../../src/maintenance/maintenance.ts'
import { StoreUnavailable } from '../../src/storage/store.ts'
import { type Domain, newAccount, newPlace, openDomain, queueRun, retention, type Test } from '../support/domain.ts'
import { type StoreKind, stores } from '../support/store-kinds.ts'
import { waitLimits } from '../support/timeouts.ts'

/** A domain whose clock stands still until it is set. */
async function openAt(test: Test, kind: StoreKind) {
  let at = Date.now()
  const domain = await openDomain(test, { kind, now: () => at })
  const { principal } = await newAccount(domain)
  const setClock = (moment: number) => {
    at = moment
  }
  /** Sets the clock, and does what is due then. */
  const until = (moment: number) => {
    at = moment
    return domain.maintenance.once()
  }
  return { domain, principal, setClock, until }
}

async function claimed({ queue, workflows }: Domain) {
  const claims = await queue.claim('worker', workflows.list(), 10, 15)
  return claims.map(({ runId }) => runId)
}

describe.each(stores)('upkeep ($name)', (kind) => {
  test('ends a delay when its time has come, to the millisecond', async (test) => {
    const { domain, principal, until } = await openAt(test, kind)
    const run = await queueRun(domain, principal, { delaySeconds: 60 })
    const get = () => domain.runs.get(principal.accountId, run.id)
    const availableAt = run.createdAt + 60_000
    expect(run).toMatchObject({ waitingFor: 'delay', availableAt })
    expect(await until(availableAt - 1)).toBe(1)
    expect(await claimed(domain)).toEqual([])
    expect(await get()).toMatchObject({ waitingFor: 'delay', availableAt })
    const rung = vi.fn()
    domain.store.listen('queue', rung)
    await until(availableAt)
    expect(await get()).toMatchObject({ waitingFor: 'worker', availableAt })
    await vi.waitFor(() => expect(rung).toHaveBeenCalled(), waitLimits)
    expect(await claimed(domain)).toEqual([run.id])
  })

  test('expires a run that has not started in time, and one that waits for its delay too', async (test) => {
    const { domain, principal, until } = await openAt(test, kind)
    const ready = await queueRun(domain, principal, { expiresInSeconds: 10 })
    const delayed = await queueRun(domain, principal, { expiresInSeconds: 10, delaySeconds: 9 })
    const lasting = await queueRun(domain, principal)
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
    expect(await claimed(domain)).toEqual([lasting.id])
  })

  test('comes too late for nobody: a run that has not started in time is not started even before it is marked', async (test) => {
    const { domain, principal, setClock } = await openAt(test, kind)
    await queueRun(domain, principal, { expiresInSeconds: 10, priority: 5 })
    const other = await queueRun(domain, principal)
    setClock(other.createdAt + 10_000)
    expect(await claimed(domain)).toEqual([other.id])
  })

  test('does not expire a run that has started, also when it is queued again', async (test) => {
    const { domain, principal, until } = await openAt(test, kind)
    const run = await queueRun(domain, principal, { expiresInSeconds: 10 })
    const [claim] = await domain.queue.claim('worker', domain.workflows.list(), 1, 100)
    await until(run.createdAt + 20_000)
    expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status: 'running' })
    const retry = { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 1 }
    if (claim) await domain.queue.complete(claim, { kind: 'workerStopped' }, retry)
    await until(run.createdAt + 30_000)
    expect(await claimed(domain)).toEqual([run.id])
  })

  test('ends a cancelled run whose worker was lost as cancelled', async (test) => {
    const { domain, principal, until } = await openAt(test, kind)
    const run = await queueRun(domain, principal)
    await claimed(domain)
    await domain.runs.cancel(principal.accountId, run.id)
    await until(run.createdAt + 60_000)
    const ended = { status: 'cancelled', reason: 'cancelRequested' }
    expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject(ended)
  })

  test('done by two processes at the same time does everything once', async (test) => {
    const { domain, principal, until } = await openAt(test, kind)
    const started = await Promise.all(Array.from({ length: 10 }, () => queueRun(domain, principal)))
    expect(await claimed(domain)).toHaveLength(10)
    const expire = () => queueRun(domain, principal, { expiresInSeconds: 1 })
    const unstarted = await Promise.all(Array.from({ length: 10 }, expire))
    const later = Date.now() + 60_000
    const other = await openDomain(test, { kind, place: domain.place, now: () => later })
    await Promise.all([until(later), other.maintenance.once(), until(later), other.maintenance.once()])
    const statuses = async (id: string) =>
      (await eventsAfter(domain.store.read, id, 0, 10)).map(({ data }) => data.status)
    for (const { id } of started) expect(await statuses(id)).toEqual(['queued', 'running', 'queued'])
    for (const { id } of unstarted) expect(await statuses(id)).toEqual(['queued', 'expired'])
  })

  test('writes nothing and rings nobody when nothing is due', async (test) => {
    const { domain, principal, until } = await openAt(test, kind)
    await queueRun(domain, principal, { delaySeconds: 3600 })
    const write = vi.spyOn(domain.store, 'write')
    expect(await until(Date.now())).toBe(1000)
    expect(write).not.toHaveBeenCalled()
  })

  test('goes on by itself until it is stopped', async (test) => {
    const domain = await openDomain(test, { kind })
    const { principal } = await newAccount(domain)
    const run = await queueRun(domain, principal, { delaySeconds: 1 })
    domain.maintenance.start()
    test.onTestFinished(() => domain.maintenance.stop())
    const waitingFor = async () => (await domain.runs.get(principal.accountId, run.id))?.waitingFor
    await vi.waitUntil(async () => (await waitingFor()) === 'worker', waitLimits)
  })

  test('reports what fails and goes on', async (test) => {
    const place = await newPlace(test, kind)
    const store = await kind.open(place)
    const failed = vi.fn()
    const upkeep = new Maintenance(store, retention, failed)
    await store.close()
    upkeep.start()
    test.onTestFinished(() => upkeep.stop())
    await vi.waitFor(() => expect(failed).toHaveBeenCalledTimes(2), waitLimits)
    expect(failed).toHaveBeenCalledWith(expect.any(StoreUnavailable))
  })
})
