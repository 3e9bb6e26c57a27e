/** Runs that may store to the same browser context run one at a time; the others wait for its lease. */
import { describe, expect, test, vi } from 'vitest'
import type { Claim } from '../../../src/domain/queue/attempts.ts'
import type { Run } from '../../../src/domain/runs/run.ts'
import type { Outcome } from '../../../src/domain/runs/run-state.ts'
import { StoreUnavailable } from '../../../src/storage/store.ts'
import { openWithContext } from '../../support/browser-contexts.ts'
import { claimAll, claimOne, createManualClock, failedAttempt, leaseSeconds, noRetry } from '../../support/claims.ts'
import { openDomain, queueRun } from '../../support/domain.ts'
import { stores } from '../../support/store-kinds.ts'

const succeeded = { kind: 'succeeded', output: null } as const
const runIds = (claims: readonly Claim[]) => claims.map(({ runId }) => runId)

describe.each(stores)('runs with a browser context ($name)', (kind) => {
  test('run one at a time, by priority and age, when many workers claim at once', async (test) => {
    const { domain, contextId, createContext, queue } = await openWithContext(test, { kind })
    const { location, workflows } = domain
    const other = await openDomain(test, { kind, location, workflows: workflows.list() })
    const contexts = [contextId, await createContext()]
    const queued: Run[] = []
    // Sequentially: runs that are queued together have no order of age.
    for (let index = 0; index < 24; index += 1) {
      queued.push(await queue({ id: contexts[index % 2] as string, priority: index % 5 }))
    }
    const order = queued.toSorted((a, b) => b.priority - a.priority || (a.id < b.id ? -1 : 1))
    const holders = new Map<string | null, string>()
    const completed: Claim[] = []
    // Maintenance does not run here: completing a run must resume the next one.
    while (completed.length < queued.length) {
      const claiming = Array.from({ length: 6 }, (_, index) => claimAll((index % 2 ? domain : other).queue, domain, 2))
      const claims = (await Promise.all(claiming)).flat()
      expect(claims).not.toEqual([])
      for (const { browserContextId, runId } of claims) {
        expect(holders.has(browserContextId)).toBe(false)
        holders.set(browserContextId, runId)
      }
      await Promise.all(
        claims.map(async (claim, index) => {
          holders.delete(claim.browserContextId)
          completed.push(claim)
          expect(await (index % 2 ? other : domain).queue.complete(claim, succeeded, noRetry)).toBe(true)
        }),
      )
    }
    for (const id of contexts) {
      const expected = order.filter(({ browserContextId }) => browserContextId === id)
      expect(runIds(completed.filter(({ contextLease }) => contextLease?.contextId === id))).toEqual(
        expected.map((run) => run.id),
      )
    }
  })

  test('wait for the lease if they may store to the context, but not if they only read it', async (test) => {
    const { queue, run, context, domain } = await openWithContext(test, { kind })
    const first = await queue({ persist: 'always' })
    const claimed = await claimAll(domain.queue, domain)
    expect(claimed).toMatchObject([
      { runId: first.id, persistContext: 'always', contextLease: { runId: first.id, fence: 1 } },
    ])
    expect(await context()).toMatchObject({ status: 'inUse', heldByRunId: first.id, lastUsedAt: expect.any(Number) })
    const late = await queue()
    const reader = await queue({ persist: 'never' })
    expect([late.waitingFor, reader.waitingFor]).toEqual(['browserContext', 'worker'])
    const reading = await claimOne(domain)
    expect(reading).toMatchObject({ runId: reader.id, contextLease: null })
    // The end of a run that only reads does not release the other run's lease.
    await domain.queue.complete(reading, succeeded, noRetry)
    expect(await run(late)).toMatchObject({ status: 'queued', waitingFor: 'browserContext', attempts: 0 })
    expect(await claimAll(domain.queue, domain)).toEqual([])
    expect(await context()).toMatchObject({ heldByRunId: first.id })
  })

  test('do not block other runs while they wait', async (test) => {
    const { domain, principal, queue } = await openWithContext(test, { kind })
    await Promise.all(Array.from({ length: 120 }, () => queue({ priority: 5 })))
    const [leaseholder] = await claimAll(domain.queue, domain, 1)
    const free = await queueRun(domain, principal)
    expect(runIds(await claimAll(domain.queue, domain, 5))).toEqual([free.id])
    expect(leaseholder?.contextLease).not.toBeNull()
  })

  test('do not make a claim lost when the store fails while they are skipped', async (test) => {
    const { domain, principal, queue, run } = await openWithContext(test, { kind })
    await Promise.all(Array.from({ length: 120 }, () => queue()))
    await claimOne(domain)
    const free = await queueRun(domain, principal, { priority: 10 })
    const write = domain.store.write
    let writes = 0
    vi.spyOn(domain.store, 'write').mockImplementation(async (work, options) => {
      if (writes === 1) throw new StoreUnavailable('disk full')
      const written = await write(work, options)
      writes += 1
      return written
    })
    expect(runIds(await claimAll(domain.queue, domain, 5))).toEqual([free.id])
    expect(writes).toBe(1)
    expect(await run(free)).toMatchObject({ status: 'running' })
  })

  const retry = { maxAttempts: 2, backoffSeconds: 60, backoffFactor: 1 }
  test.for<[string, Outcome, typeof noRetry]>([
    ['succeeds', succeeded, noRetry],
    ['fails', failedAttempt, noRetry],
    ['fails and is retried later', failedAttempt, retry],
    ['reaches its time limit', { kind: 'timedOut' }, noRetry],
    ['is cancelled', { kind: 'cancelled' }, noRetry],
    ['is returned by a stopping worker', { kind: 'workerStopped' }, noRetry],
    ['loses its worker', { kind: 'workerLost' }, noRetry],
  ])('release the context when the run %s', async ([, outcome, policy], test) => {
    const { domain, queue, run, context } = await openWithContext(test, { kind })
    await queue({ priority: 1 })
    const claim = await claimOne(domain)
    const waiting = [await queue(), await queue()]
    expect(await domain.queue.complete(claim, outcome, policy)).toBe(true)
    expect(await context()).toMatchObject({ status: 'empty', heldByRunId: null })
    const waitingFor = await Promise.all(waiting.map(async (each) => (await run(each))?.waitingFor))
    expect(waitingFor).toEqual(['worker', 'browserContext'])
  })

  test('release the context when their worker is lost, and its late reports are rejected', async (test) => {
    const clock = createManualClock()
    const { domain, queue, run, context } = await openWithContext(test, { kind, now: clock.now })
    const lost = await queue()
    const claim = await claimOne(domain, 'lost')
    const next = await queue({ priority: 5 })
    clock.advance(leaseSeconds + 1)
    await domain.maintenance.once()
    expect(await run(next)).toMatchObject({ waitingFor: 'worker' })
    const nextClaim = await claimOne(domain, 'next')
    expect(nextClaim).toMatchObject({ runId: next.id, contextLease: { fence: 2 } })
    expect(await domain.queue.complete(claim, succeeded, noRetry)).toBe(false)
    expect(await context()).toMatchObject({ heldByRunId: next.id })
    // The lost run waits for the next one.
    expect(await claimAll(domain.queue, domain)).toEqual([])
    expect(await run(lost)).toMatchObject({ waitingFor: 'browserContext' })
  })

  test('leave the order when they are cancelled or expire', async (test) => {
    const clock = createManualClock()
    const { domain, queue, run, accountId } = await openWithContext(test, { kind, now: clock.now })
    await queue()
    const holder = await claimOne(domain)
    const cancelled = await queue({ priority: 4 })
    const expiring = await queue({ priority: 3, expiresInSeconds: 1 })
    const cancelledRun = await queue({ priority: 2 })
    const last = await queue()
    expect(await domain.runs.cancel(accountId, cancelled.id)).toMatchObject({ status: 'cancelled', waitingFor: null })
    clock.set(expiring.expiresAt)
    await domain.maintenance.once()
    expect(await run(expiring)).toMatchObject({ status: 'expired' })
    await domain.queue.complete(holder, succeeded, noRetry)
    expect(await run(cancelledRun)).toMatchObject({ waitingFor: 'worker' })
    await domain.runs.cancel(accountId, cancelledRun.id)
    await domain.maintenance.once()
    expect(runIds(await claimAll(domain.queue, domain))).toEqual([last.id])
  })

  test('do not block the next run when no worker can run the first', async (test) => {
    const { domain, queue, run } = await openWithContext(test, { kind })
    await queue()
    const holder = await claimOne(domain)
    const runs = [await queue(), await queue()]
    await domain.store.write(({ query }) =>
      query
        .updateTable('runs')
        .set({ workflow_id: 'gone' })
        .where('id', '=', runs[0]?.id ?? '')
        .execute(),
    )
    await domain.queue.complete(holder, succeeded, noRetry)
    expect(await claimAll(domain.queue, domain)).toEqual([])
    await domain.maintenance.once()
    expect(runIds(await claimAll(domain.queue, domain))).toEqual([runs[1]?.id])
    expect(await run({ id: runs[0]?.id ?? '' })).toMatchObject({ status: 'queued', waitingFor: 'worker' })
  })

  test('start without a lease when the context is deleted', async (test) => {
    const { domain, accountId, contextId, queue } = await openWithContext(test, { kind })
    await queue()
    const holder = await claimOne(domain)
    const waiting = [await queue(), await queue(), await queue()]
    expect(await domain.browserContexts.delete(accountId, contextId)).toBe(true)
    await domain.maintenance.once()
    const claims = await claimAll(domain.queue, domain)
    expect(runIds(claims)).toEqual(waiting.map(({ id }) => id))
    expect(claims.map(({ contextLease }) => contextLease)).toEqual([null, null, null])
    expect(await domain.queue.complete(holder, succeeded, noRetry)).toBe(true)
  })

  test('wait for the lease after their delay', async (test) => {
    const clock = createManualClock()
    const { domain, principal, contextId, queue, run } = await openWithContext(test, { kind, now: clock.now })
    await queue()
    const holder = await claimOne(domain)
    const onContext = { browserContextId: contextId, persistContext: 'always' } as const
    const delayed = await queueRun(domain, principal, { workflowId: 'browse', ...onContext, delaySeconds: 1 })
    expect(delayed.waitingFor).toBe('delay')
    clock.set(delayed.availableAt)
    await domain.maintenance.once()
    expect(await claimAll(domain.queue, domain)).toEqual([])
    expect(await run(delayed)).toMatchObject({ waitingFor: 'browserContext' })
    await domain.queue.complete(holder, succeeded, noRetry)
    expect(runIds(await claimAll(domain.queue, domain))).toEqual([delayed.id])
  })
})
