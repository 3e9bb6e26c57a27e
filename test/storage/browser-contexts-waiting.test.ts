/** Runs that change one browser context take turns: one holds it at a time, the others wait and say so. */
import { describe, expect, test, vi } from 'vitest'
import type { Claim } from '../../src/domain/runs/attempts.ts'
import type { Run } from '../../src/domain/runs/run.ts'
import type { Outcome } from '../../src/domain/runs/run-state.ts'
import { StoreUnavailable } from '../../src/storage/store.ts'
import { openWithContext } from '../support/browser-contexts.ts'
import { claimAll, claimOne, createManualClock, failedAttempt, leaseSeconds, noRetry } from '../support/claims.ts'
import { openDomain, queueRun } from '../support/domain.ts'
import { stores } from '../support/store-kinds.ts'

const succeeded = { kind: 'succeeded', output: null } as const
const idsOf = (claims: readonly Claim[]) => claims.map(({ runId }) => runId)

describe.each(stores)('the turns of runs at a browser context ($name)', (kind) => {
  test('come by priority and age, one at a time, and for everyone, however many workers ask at once', async (test) => {
    const { domain, contextId, createContext, queue } = await openWithContext(test, { kind })
    const { place, workflows } = domain
    const other = await openDomain(test, { kind, place, workflows: workflows.list() })
    const contexts = [contextId, await createContext()]
    const queued: Run[] = []
    // One after the other: among those that arrive together, none is older.
    for (let index = 0; index < 24; index += 1) {
      queued.push(await queue({ id: contexts[index % 2] as string, priority: index % 5 }))
    }
    const order = queued.toSorted((a, b) => b.priority - a.priority || (a.id < b.id ? -1 : 1))
    const holders = new Map<string | null, string>()
    const turns: Claim[] = []
    // Nothing passes a context on here but the end of the run that had it.
    while (turns.length < queued.length) {
      const asked = Array.from({ length: 6 }, (_, index) => claimAll((index % 2 ? domain : other).queue, domain, 2))
      const claims = (await Promise.all(asked)).flat()
      expect(claims).not.toEqual([])
      for (const { browserContextId, runId } of claims) {
        expect(holders.has(browserContextId)).toBe(false)
        holders.set(browserContextId, runId)
      }
      await Promise.all(
        claims.map(async (claim, index) => {
          holders.delete(claim.browserContextId)
          turns.push(claim)
          expect(await (index % 2 ? other : domain).queue.complete(claim, succeeded, noRetry)).toBe(true)
        }),
      )
    }
    for (const id of contexts) {
      const expected = order.filter(({ browserContextId }) => browserContextId === id)
      expect(idsOf(turns.filter(({ contextLease }) => contextLease?.contextId === id))).toEqual(
        expected.map((run) => run.id),
      )
    }
  })

  test('are waited for aloud by writers, and not at all by readers', async (test) => {
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
    expect(await claimAll(domain.queue, domain)).toMatchObject([{ runId: reader.id, contextLease: null }])
    expect(await run(late)).toMatchObject({ status: 'queued', waitingFor: 'browserContext', attempts: 0 })
    // A reader neither had it nor gives it away.
    const [readerClaim] = await claimAll(domain.queue, domain)
    expect(readerClaim).toBeUndefined()
    expect(await context()).toMatchObject({ heldByRunId: first.id })
  })

  test('keep no other run back that is queued behind those that wait', async (test) => {
    const { domain, principal, queue } = await openWithContext(test, { kind })
    await Promise.all(Array.from({ length: 120 }, () => queue({ priority: 5 })))
    const [holder] = await claimAll(domain.queue, domain, 1)
    const free = await queueRun(domain, principal)
    expect(idsOf(await claimAll(domain.queue, domain, 5))).toEqual([free.id])
    expect(holder?.contextLease).not.toBeNull()
  })

  test('lose no run that was claimed, when the store fails while others are passed over', async (test) => {
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
    expect(idsOf(await claimAll(domain.queue, domain, 5))).toEqual([free.id])
    expect(writes).toBe(1)
    expect(await run(free)).toMatchObject({ status: 'running' })
  })

  const retry = { maxAttempts: 2, backoffSeconds: 60, backoffFactor: 1 }
  test.for<[string, Outcome, typeof noRetry]>([
    ['succeeds', succeeded, noRetry],
    ['fails for good', failedAttempt, noRetry],
    ['fails and is tried again later', failedAttempt, retry],
    ['reaches its time limit', { kind: 'timedOut' }, noRetry],
    ['is cancelled', { kind: 'cancelled' }, noRetry],
    ['is handed back by a worker that stops', { kind: 'workerStopped' }, noRetry],
    ['loses its worker', { kind: 'workerLost' }, noRetry],
  ])('end when the run %s', async ([, outcome, policy], test) => {
    const { domain, queue, run, context } = await openWithContext(test, { kind })
    await queue({ priority: 1 })
    const claim = await claimOne(domain)
    const waiting = [await queue(), await queue()]
    expect(await domain.queue.complete(claim, outcome, policy)).toBe(true)
    expect(await context()).toMatchObject({ status: 'empty', heldByRunId: null })
    const waitingFor = await Promise.all(waiting.map(async (each) => (await run(each))?.waitingFor))
    expect(waitingFor).toEqual(['worker', 'browserContext'])
  })

  test('end when a lost worker is found out, and nothing that it still says counts', async (test) => {
    const clock = createManualClock()
    const { domain, queue, run, context } = await openWithContext(test, { kind, now: clock.now })
    const lost = await queue()
    const claim = await claimOne(domain, 'lost')
    const next = await queue({ priority: 5 })
    clock.advance(leaseSeconds + 1)
    await domain.maintenance.once()
    expect(await run(next)).toMatchObject({ waitingFor: 'worker' })
    const taken = await claimOne(domain, 'next')
    expect(taken).toMatchObject({ runId: next.id, contextLease: { fence: 2 } })
    expect(await domain.queue.complete(claim, succeeded, noRetry)).toBe(false)
    expect(await context()).toMatchObject({ heldByRunId: next.id })
    // The run that was lost takes its turn behind it.
    expect(await claimAll(domain.queue, domain)).toEqual([])
    expect(await run(lost)).toMatchObject({ waitingFor: 'browserContext' })
  })

  test('are given up by runs that are cancelled or expire while they wait, and by those whose turn it was', async (test) => {
    const clock = createManualClock()
    const { domain, queue, run, accountId } = await openWithContext(test, { kind, now: clock.now })
    await queue()
    const holder = await claimOne(domain)
    const cancelled = await queue({ priority: 4 })
    const expiring = await queue({ priority: 3, expiresInSeconds: 1 })
    const leaving = await queue({ priority: 2 })
    const last = await queue()
    expect(await domain.runs.cancel(accountId, cancelled.id)).toMatchObject({ status: 'cancelled', waitingFor: null })
    clock.set(expiring.expiresAt)
    await domain.maintenance.once()
    expect(await run(expiring)).toMatchObject({ status: 'expired' })
    await domain.queue.complete(holder, succeeded, noRetry)
    expect(await run(leaving)).toMatchObject({ waitingFor: 'worker' })
    await domain.runs.cancel(accountId, leaving.id)
    await domain.maintenance.once()
    expect(idsOf(await claimAll(domain.queue, domain))).toEqual([last.id])
  })

  test('pass to the next run when the one whose turn it is cannot start', async (test) => {
    const { domain, queue, run } = await openWithContext(test, { kind })
    await queue()
    const holder = await claimOne(domain)
    const runs = [await queue(), await queue()]
    await domain.store.write(({ query }) =>
      query
        .updateTable('runs')
        .set({ workflow_id: 'gone', job_id: null })
        .where('id', '=', runs[0]?.id ?? '')
        .execute(),
    )
    await domain.queue.complete(holder, succeeded, noRetry)
    expect(await claimAll(domain.queue, domain)).toEqual([])
    await domain.maintenance.once()
    expect(idsOf(await claimAll(domain.queue, domain))).toEqual([runs[1]?.id])
    expect(await run({ id: runs[0]?.id ?? '' })).toMatchObject({ status: 'queued', waitingFor: 'worker' })
  })

  test('are over when the context is deleted: all that waited go on, and hold nothing', async (test) => {
    const { domain, accountId, contextId, queue } = await openWithContext(test, { kind })
    await queue()
    const holder = await claimOne(domain)
    const waiting = [await queue(), await queue(), await queue()]
    expect(await domain.browserContexts.delete(accountId, contextId)).toBe(true)
    await domain.maintenance.once()
    const claims = await claimAll(domain.queue, domain)
    expect(idsOf(claims)).toEqual(waiting.map(({ id }) => id))
    expect(claims.map(({ contextLease }) => contextLease)).toEqual([null, null, null])
    expect(await domain.queue.complete(holder, succeeded, noRetry)).toBe(true)
  })

  test('of a run that is delayed begin when its time has come', async (test) => {
    const clock = createManualClock()
    const { domain, principal, contextId, queue, run } = await openWithContext(test, { kind, now: clock.now })
    await queue()
    const holder = await claimOne(domain)
    const browserContext = { id: contextId, persist: 'always' } as const
    const delayed = await queueRun(domain, principal, { workflowId: 'browse', browserContext, delaySeconds: 1 })
    expect(delayed.waitingFor).toBe('delay')
    clock.set(delayed.availableAt)
    await domain.maintenance.once()
    expect(await claimAll(domain.queue, domain)).toEqual([])
    expect(await run(delayed)).toMatchObject({ waitingFor: 'browserContext' })
    await domain.queue.complete(holder, succeeded, noRetry)
    expect(idsOf(await claimAll(domain.queue, domain))).toEqual([delayed.id])
  })
})
