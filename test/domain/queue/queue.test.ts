/** What workers rely on: the order of claims, concurrency limits, leases and fencing tokens. */
import { describe, expect, test } from 'vitest'
import type { Claim } from '../../../src/domain/queue/attempts.ts'
import { eventsAfter } from '../../../src/domain/queue/runs.sql.ts'
import { lossesMax } from '../../../src/domain/runs/run-state.ts'
import {
  claimAll,
  claimableOf,
  claimOne,
  createManualClock,
  failedAttempt,
  leaseSeconds,
  noRetry,
  statusHistory,
} from '../../support/claims.ts'
import { newAccount, openDomain, queueRun, workflow } from '../../support/domain.ts'
import { stores } from '../../support/store-kinds.ts'

describe.each(stores)('the queue ($name)', (kind) => {
  test('is claimed by priority, then age, across all workflows', async (test) => {
    const workflows = [workflow({ id: 'one' }), workflow({ id: 'two' })]
    const domain = await openDomain(test, { kind, workflows })
    const { principal } = await newAccount(domain)
    const queue = async (workflowId: string, priority: number) =>
      (await queueRun(domain, principal, { workflowId, priority })).id
    const normal = [await queue('one', 0), await queue('two', 0), await queue('one', 0)]
    const low = await queue('one', -10)
    const high = [await queue('two', 10), await queue('one', 10)]
    const order = [...high, ...normal, low]
    const first = await claimAll(domain.queue, domain, 2)
    const rest = await claimAll(domain.queue, domain)
    expect([...first, ...rest].map(({ runId }) => runId)).toEqual(order)
  })

  test('gives a worker no run of a workflow that it does not have', async (test) => {
    const domain = await openDomain(test, { kind, workflows: [workflow(), workflow({ id: 'missing' })] })
    const { principal } = await newAccount(domain)
    const run = await queueRun(domain, principal, { workflowId: 'missing' })
    expect(await domain.queue.claim('worker', claimableOf([workflow()]), 10, leaseSeconds)).toEqual([])
    expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status: 'queued', waitingFor: 'worker' })
  })

  test('gives each run to one worker when many claim at the same time', async (test) => {
    const domain = await openDomain(test, { kind })
    const other = await openDomain(test, { kind, location: domain.location })
    const { principal } = await newAccount(domain)
    const queued = await Promise.all(Array.from({ length: 40 }, () => queueRun(domain, principal)))
    const claims = await Promise.all(
      Array.from({ length: 20 }, (_, index) => claimAll((index % 2 ? domain : other).queue, domain, 3)),
    )
    const claimed = claims.flat().map(({ runId }) => runId)
    expect(claimed.sort()).toEqual(queued.map(({ id }) => id).sort())
  })

  test('fills slots that become free while a claim waits for its transaction', async (test) => {
    const domain = await openDomain(test, { kind })
    const { principal } = await newAccount(domain)
    await Promise.all(Array.from({ length: 5 }, () => queueRun(domain, principal)))
    let commits = 0
    domain.store.observe(() => {
      commits += 1
    })
    let isWaiting = false
    const write = domain.store.write.bind(domain.store)
    domain.store.write = (work, options) => {
      isWaiting = true
      return write(work, options)
    }
    const free = () => (isWaiting ? 3 : 1)
    expect(await domain.queue.claim('worker', claimableOf(domain.workflows), free, leaseSeconds)).toHaveLength(3)
    expect(commits).toBe(1)
  })

  test("records the start of the first attempt, and keeps the version of the run's deployment", async (test) => {
    const clock = createManualClock()
    const domain = await openDomain(test, { kind, now: clock.now })
    const { principal } = await newAccount(domain)
    const run = await queueRun(domain, principal)
    clock.advance(10)
    const startedAt = clock.now()
    const [claim] = await domain.queue.claim('worker', claimableOf([workflow({ version: '2.0.0' })]), 1, leaseSeconds)
    expect(claim).toMatchObject({ runId: run.id, attempt: 1, accountId: principal.accountId, workerId: 'worker' })
    const started = { status: 'running', workflowVersion: '1.0.0', attempts: 1, startedAt, waitingFor: null }
    expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject(started)
    if (claim) await domain.queue.complete(claim, { kind: 'workerStopped' }, noRetry)
    clock.advance(10)
    await claimOne(domain)
    expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ attempts: 2, startedAt })
  })

  test('does not start a run in the millisecond in which it expires', async (test) => {
    const clock = createManualClock()
    const domain = await openDomain(test, { kind, now: clock.now })
    const { principal } = await newAccount(domain)
    const { expiresAt } = await queueRun(domain, principal, { expiresInSeconds: 10 })
    clock.set(expiresAt)
    expect(await claimAll(domain.queue, domain)).toEqual([])
    clock.set(Number(expiresAt) - 1)
    expect(await claimAll(domain.queue, domain)).toHaveLength(1)
  })

  describe('a concurrency limit', () => {
    test('is never exceeded by many workers in two processes', async (test) => {
      const limit = 3
      const workflows = [workflow({ concurrency: { limit, per: 'workflow' } })]
      const domain = await openDomain(test, { kind, workflows })
      const other = await openDomain(test, { kind, workflows, location: domain.location })
      const [first, second] = [await newAccount(domain), await newAccount(domain)]
      for (const { principal } of [first, second]) {
        await Promise.all(Array.from({ length: 10 }, () => queueRun(domain, principal)))
      }
      const finished: string[] = []
      while (finished.length < 20) {
        const claiming = Array.from({ length: 8 }, (_, index) =>
          claimAll((index % 2 ? domain : other).queue, domain, 2),
        )
        const claims = (await Promise.all(claiming)).flat()
        expect(claims).toHaveLength(Math.min(limit, 20 - finished.length))
        for (const claim of claims) {
          await other.queue.complete(claim, { kind: 'succeeded', output: null }, noRetry)
          finished.push(claim.runId)
        }
      }
      expect(new Set(finished).size).toBe(20)
    })

    test('delays only its own workflow, and shows as waitingFor', async (test) => {
      const workflows = [workflow({ concurrency: { limit: 1, per: 'workflow' } }), workflow({ id: 'free' })]
      const domain = await openDomain(test, { kind, workflows })
      const { principal } = await newAccount(domain)
      await queueRun(domain, principal, { priority: 10 })
      const limited = await queueRun(domain, principal, { priority: 10 })
      const free = await queueRun(domain, principal, { workflowId: 'free' })
      const claims = await claimAll(domain.queue, domain)
      expect(claims.map(({ workflowId }) => workflowId)).toEqual(['anything', 'free'])
      const waitingFor = async (id: string) => (await domain.runs.get(principal.accountId, id))?.waitingFor
      expect(await waitingFor(limited.id)).toBe('concurrencyLimit')
      expect(await waitingFor(free.id)).toBeNull()
    })
  })

  describe('a lease', () => {
    test('that has expired lets another worker claim the run, and fences off the first one', async (test) => {
      const clock = createManualClock()
      const domain = await openDomain(test, { kind, now: clock.now })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      const paused = await claimOne(domain, 'paused')
      clock.advance(leaseSeconds + 1)
      await domain.maintenance.once()
      const secondClaim = await claimOne(domain, 'taker')
      expect(secondClaim).toMatchObject({ runId: run.id, attempt: 2 })

      const before = await eventsAfter(domain.store.read, run.id, 0, 100)
      const report = { at: clock.now(), type: 'log', data: { level: 'info', message: 'still running' } } as const
      expect(await domain.queue.renew('paused', [paused], leaseSeconds)).toEqual([])
      expect(await domain.queue.report(paused, [report])).toBe(false)
      expect(
        await domain.queue.finishStep(paused, { name: 'a step', position: 1 }, () => Buffer.from('value'), [report]),
      ).toBe(false)
      expect(await domain.queue.complete(paused, { kind: 'succeeded', output: 'late' }, noRetry, [report])).toBe(false)
      expect(await eventsAfter(domain.store.read, run.id, 0, 100)).toEqual(before)

      expect(await domain.queue.complete(secondClaim, { kind: 'succeeded', output: 'right' }, noRetry)).toBe(true)
      expect(await domain.queue.complete(secondClaim, { kind: 'succeeded', output: 'again' }, noRetry)).toBe(false)
      expect(await domain.queue.complete(paused, failedAttempt, noRetry)).toBe(false)
      expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status: 'succeeded', output: 'right' })
      expect(await statusHistory(domain, run.id)).toEqual([
        ['queued', 0, null],
        ['running', 1, null],
        ['queued', 1, 'workerLost'],
        ['running', 2, null],
        ['succeeded', 2, null],
      ])
    })

    test('fences off the first attempt even if the same worker claims the run again', async (test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      await queueRun(domain, principal)
      const first = await claimOne(domain)
      await domain.queue.complete(first, { kind: 'workerStopped' }, noRetry)
      const second = await claimOne(domain)
      expect(await domain.queue.complete(first, failedAttempt, noRetry)).toBe(false)
      expect(await domain.queue.complete(first, { kind: 'succeeded', output: null }, noRetry)).toBe(false)
      expect(await domain.queue.complete({ ...second, workerId: 'impostor' }, failedAttempt, noRetry)).toBe(false)
      expect(await domain.queue.complete(second, { kind: 'succeeded', output: null }, noRetry)).toBe(true)
    })

    test('fences off the first attempt even if both attempts succeed at the same time', async (test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      const first = await claimOne(domain)
      await domain.queue.complete(first, { kind: 'workerStopped' }, noRetry)
      const second = await claimOne(domain)
      const succeed = (claim: Claim) =>
        domain.queue.complete(claim, { kind: 'succeeded', output: claim.attempt }, noRetry)
      expect(await Promise.all([succeed(first), succeed(second)])).toEqual([false, true])
      expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status: 'succeeded', output: 2 })
      expect((await statusHistory(domain, run.id)).slice(-2)).toEqual([
        ['running', 2, null],
        ['succeeded', 2, null],
      ])
    })

    test('that is renewed in time does not expire, and renewing returns the leases still valid', async (test) => {
      const clock = createManualClock()
      const domain = await openDomain(test, { kind, now: clock.now })
      const { principal } = await newAccount(domain)
      await queueRun(domain, principal)
      await queueRun(domain, principal)
      const [first, second] = [await claimOne(domain, 'one'), await claimOne(domain, 'two')]
      for (let renewal = 0; renewal < 3; renewal += 1) {
        clock.advance(leaseSeconds - 1)
        const { runId, attempt, workerId } = first
        expect(await domain.queue.renew('one', [first], leaseSeconds)).toEqual([{ runId, attempt, workerId }])
        await domain.maintenance.once()
      }
      const status = async ({ runId }: Claim) => (await domain.runs.get(principal.accountId, runId))?.status
      expect(await status(first)).toBe('running')
      expect(await status(second)).toBe('queued')
    })

    test('that expires counts as a loss, and too many losses fail the run', async (test) => {
      const clock = createManualClock()
      const domain = await openDomain(test, { kind, now: clock.now })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      for (let loss = 1; loss <= lossesMax; loss += 1) {
        expect(await claimOne(domain)).toMatchObject({ runId: run.id, attempt: loss })
        clock.advance(leaseSeconds)
        await domain.maintenance.once()
        const lost =
          loss < lossesMax ? { status: 'queued', finishedAt: null } : { status: 'failed', finishedAt: clock.now() }
        const now = await domain.runs.get(principal.accountId, run.id)
        expect(now).toMatchObject({ ...lost, reason: 'workerLost', attempts: loss })
      }
      expect(await claimAll(domain.queue, domain)).toEqual([])
    })
  })
})
