/** What workers may rely on: the order of claims, limits, leases with their fencing token, retries. */
import { describe, expect, test } from 'vitest'
import type { Claim, RunQueue } from '../../src/runs/queue.ts'
import type { RunStatus } from '../../src/runs/state.ts'
import { lossesMax } from '../../src/runs/state.ts'
import { eventsAfter } from '../../src/runs/store.ts'
import { type Domain, newAccount, openDomain, queueRun, workflow } from '../support/store.ts'
import { stores } from '../support/stores.ts'

const leaseSeconds = 15
const noRetry = { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 2 }
const error = { name: 'Error', message: 'The far side did not answer.' }
const failed = { kind: 'failed', reason: 'workflowFailed', error } as const

/** A clock that stands still until it is told to go on. */
function stoppedClock() {
  let at = Date.now()
  return {
    now: () => at,
    advance: (seconds: number) => {
      at += seconds * 1000
    },
  }
}

async function claimAll(queue: RunQueue, { workflows }: Domain, slots = 100): Promise<Claim[]> {
  return queue.claim('worker', workflows.list(), slots, leaseSeconds)
}

async function claimOne(domain: Domain, workerId = 'worker'): Promise<Claim> {
  const [claim] = await domain.queue.claim(workerId, domain.workflows.list(), 1, leaseSeconds)
  if (!claim) throw new Error('There was no run to claim.')
  return claim
}

async function statusesOf({ store }: Domain, runId: string) {
  const events = await eventsAfter(store.read, runId, 0, 1000)
  return events.filter(({ type }) => type === 'status').map(({ data }) => [data.status, data.attempt, data.reason])
}

describe.each(stores)('the queue of runs ($name)', (kind) => {
  test('gives out the highest priority first, and among equals the oldest, over all workflows', async (test) => {
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

  test('gives out no run of a workflow that the worker does not have', async (test) => {
    const domain = await openDomain(test, { kind, workflows: [workflow(), workflow({ id: 'elsewhere' })] })
    const { principal } = await newAccount(domain)
    const run = await queueRun(domain, principal, { workflowId: 'elsewhere' })
    expect(await domain.queue.claim('worker', [workflow()], 10, leaseSeconds)).toEqual([])
    expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status: 'queued', waitingFor: 'worker' })
  })

  test('gives a run to one worker alone, however many ask at the same time', async (test) => {
    const domain = await openDomain(test, { kind })
    const other = await openDomain(test, { kind, place: domain.place })
    const { principal } = await newAccount(domain)
    const queued = await Promise.all(Array.from({ length: 40 }, () => queueRun(domain, principal)))
    const claims = await Promise.all(
      Array.from({ length: 20 }, (_, index) => claimAll((index % 2 ? domain : other).queue, domain, 3)),
    )
    const claimed = claims.flat().map(({ runId }) => runId)
    expect(claimed.sort()).toEqual(queued.map(({ id }) => id).sort())
  })

  test('tells the workflow version that the worker has, and when the run first started', async (test) => {
    const clock = stoppedClock()
    const domain = await openDomain(test, { kind, now: clock.now })
    const { principal } = await newAccount(domain)
    const run = await queueRun(domain, principal)
    clock.advance(10)
    const startedAt = clock.now()
    const [claim] = await domain.queue.claim('worker', [workflow({ version: '2.0.0' })], 1, leaseSeconds)
    expect(claim).toMatchObject({ runId: run.id, attempt: 1, accountId: principal.accountId, workerId: 'worker' })
    const started = { status: 'running', workflowVersion: '2.0.0', attempts: 1, startedAt, waitingFor: null }
    expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject(started)
    if (claim) await domain.queue.settle(claim, { kind: 'workerStopped' }, noRetry)
    clock.advance(10)
    await claimOne(domain)
    expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ attempts: 2, startedAt })
  })

  describe('a concurrency limit', () => {
    test('is never exceeded, by however many workers on however many stores', async (test) => {
      const limit = 3
      const workflows = [workflow({ concurrencyLimit: limit })]
      const domain = await openDomain(test, { kind, workflows })
      const other = await openDomain(test, { kind, workflows, place: domain.place })
      const [first, second] = [await newAccount(domain), await newAccount(domain)]
      for (const { principal } of [first, second]) {
        await Promise.all(Array.from({ length: 10 }, () => queueRun(domain, principal)))
      }
      const finished: string[] = []
      while (finished.length < 20) {
        const asked = Array.from({ length: 8 }, (_, index) => claimAll((index % 2 ? domain : other).queue, domain, 2))
        const claims = (await Promise.all(asked)).flat()
        expect(claims).toHaveLength(Math.min(limit, 20 - finished.length))
        for (const claim of claims) {
          await other.queue.settle(claim, { kind: 'succeeded', output: null }, noRetry)
          finished.push(claim.runId)
        }
      }
      expect(new Set(finished).size).toBe(20)
    })

    test('holds up its own workflow alone, and the run says so', async (test) => {
      const workflows = [workflow({ concurrencyLimit: 1 }), workflow({ id: 'free' })]
      const domain = await openDomain(test, { kind, workflows })
      const { principal } = await newAccount(domain)
      await queueRun(domain, principal, { priority: 10 })
      const held = await queueRun(domain, principal, { priority: 10 })
      const free = await queueRun(domain, principal, { workflowId: 'free' })
      const claims = await claimAll(domain.queue, domain)
      expect(claims.map(({ workflowId }) => workflowId)).toEqual(['anything', 'free'])
      const waitingFor = async (id: string) => (await domain.runs.get(principal.accountId, id))?.waitingFor
      expect(await waitingFor(held.id)).toBe('concurrencyLimit')
      expect(await waitingFor(free.id)).toBeNull()
    })
  })

  describe('a lease', () => {
    test('that has run out lets another worker have the run, and fences the first one off', async (test) => {
      const clock = stoppedClock()
      const domain = await openDomain(test, { kind, now: clock.now })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      const paused = await claimOne(domain, 'paused')
      clock.advance(leaseSeconds + 1)
      await domain.upkeep.once()
      const taken = await claimOne(domain, 'taker')
      expect(taken).toMatchObject({ runId: run.id, attempt: 2 })

      const before = await eventsAfter(domain.store.read, run.id, 0, 100)
      const report = { at: clock.now(), type: 'log', data: { level: 'info', message: 'still here' } } as const
      expect(await domain.queue.renew('paused', leaseSeconds)).toEqual([])
      expect(await domain.queue.report(paused, [report])).toBe(false)
      expect(await domain.queue.finishStep(paused, 'a step', Buffer.from('value'), [report])).toBe(false)
      expect(await domain.queue.settle(paused, { kind: 'succeeded', output: 'late' }, noRetry, [report])).toBe(false)
      expect(await eventsAfter(domain.store.read, run.id, 0, 100)).toEqual(before)

      expect(await domain.queue.settle(taken, { kind: 'succeeded', output: 'right' }, noRetry)).toBe(true)
      expect(await domain.queue.settle(taken, { kind: 'succeeded', output: 'again' }, noRetry)).toBe(false)
      expect(await domain.queue.settle(paused, failed, noRetry)).toBe(false)
      expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status: 'succeeded', output: 'right' })
      expect(await statusesOf(domain, run.id)).toEqual([
        ['queued', 0, null],
        ['running', 1, null],
        ['queued', 1, 'workerLost'],
        ['running', 2, null],
        ['succeeded', 2, null],
      ])
    })

    test('fences off the first attempt also when the same worker has the run again', async (test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      await queueRun(domain, principal)
      const first = await claimOne(domain)
      await domain.queue.settle(first, { kind: 'workerStopped' }, noRetry)
      const second = await claimOne(domain)
      expect(await domain.queue.settle(first, failed, noRetry)).toBe(false)
      expect(await domain.queue.settle({ ...second, workerId: 'impostor' }, failed, noRetry)).toBe(false)
      expect(await domain.queue.settle(second, { kind: 'succeeded', output: null }, noRetry)).toBe(true)
    })

    test('that is renewed in time does not run out, and the worker is told which ones it holds', async (test) => {
      const clock = stoppedClock()
      const domain = await openDomain(test, { kind, now: clock.now })
      const { principal } = await newAccount(domain)
      await queueRun(domain, principal)
      await queueRun(domain, principal)
      const [first, second] = [await claimOne(domain, 'one'), await claimOne(domain, 'two')]
      for (let renewal = 0; renewal < 3; renewal += 1) {
        clock.advance(leaseSeconds - 1)
        const { runId, attempt, workerId } = first
        expect(await domain.queue.renew('one', leaseSeconds)).toEqual([{ runId, attempt, workerId }])
        await domain.upkeep.once()
      }
      const status = async ({ runId }: Claim) => (await domain.runs.get(principal.accountId, runId))?.status
      expect(await status(first)).toBe('running')
      expect(await status(second)).toBe('queued')
    })

    test('that is lost is counted, and the run fails when it is lost too often', async (test) => {
      const clock = stoppedClock()
      const domain = await openDomain(test, { kind, now: clock.now })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      for (let loss = 1; loss <= lossesMax; loss += 1) {
        expect(await claimOne(domain)).toMatchObject({ runId: run.id, attempt: loss })
        clock.advance(leaseSeconds)
        await domain.upkeep.once()
        const lost =
          loss < lossesMax ? { status: 'queued', finishedAt: null } : { status: 'failed', finishedAt: clock.now() }
        const now = await domain.runs.get(principal.accountId, run.id)
        expect(now).toMatchObject({ ...lost, reason: 'workerLost', attempts: loss })
      }
      expect(await claimAll(domain.queue, domain)).toEqual([])
    })
  })

  describe('an attempt', () => {
    test('that fails is repeated after its backoff, as often as the policy allows', async (test) => {
      const clock = stoppedClock()
      const domain = await openDomain(test, { kind, now: clock.now })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      const retry = { maxAttempts: 4, backoffSeconds: 0.5, backoffFactor: 3 }
      const get = () => domain.runs.get(principal.accountId, run.id)
      for (const backoffSeconds of [0.5, 1.5, 4.5]) {
        const claim = await claimOne(domain)
        await domain.queue.settle(claim, failed, retry)
        const availableAt = clock.now() + backoffSeconds * 1000
        const waiting = { status: 'queued', reason: 'attemptFailed', waitingFor: 'delay', availableAt, error }
        expect(await get()).toMatchObject(waiting)
        clock.advance(backoffSeconds - 0.001)
        await domain.upkeep.once()
        expect(await claimAll(domain.queue, domain)).toEqual([])
        clock.advance(0.001)
        await domain.upkeep.once()
        expect(await get()).toMatchObject({ status: 'queued', waitingFor: 'worker' })
      }
      await domain.queue.settle(await claimOne(domain), failed, retry)
      const finishedAt = clock.now()
      expect(await get()).toMatchObject({ status: 'failed', reason: 'workflowFailed', attempts: 4, error, finishedAt })
    })

    test('that succeeds after others failed leaves no error behind', async (test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      await domain.queue.settle(await claimOne(domain), failed, { ...noRetry, maxAttempts: 2, backoffSeconds: 0 })
      await domain.queue.settle(await claimOne(domain), { kind: 'succeeded', output: { words: 3 } }, noRetry)
      const finished = { status: 'succeeded', reason: null, output: { words: 3 }, error: null, attempts: 2 }
      expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject(finished)
    })

    test.for<[RunStatus, string, Parameters<RunQueue['settle']>[1]]>([
      ['failed', 'outputInvalid', { kind: 'failed', reason: 'outputInvalid', error }],
      ['failed', 'workflowExited', { kind: 'failed', reason: 'workflowExited', error }],
      ['timedOut', 'timeLimit', { kind: 'timedOut' }],
      ['cancelled', 'cancelRequested', { kind: 'cancelled' }],
    ])('ends the run as %s (%s)', async ([status, reason, outcome], test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      await domain.queue.settle(await claimOne(domain), outcome, noRetry)
      expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status, reason })
      expect((await statusesOf(domain, run.id)).at(-1)).toEqual([status, 1, reason])
    })

    test('that is handed back is queued again at once, in its old place, whatever the policy', async (test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      const [first, second] = [await queueRun(domain, principal), await queueRun(domain, principal)]
      const claim = await claimOne(domain)
      await domain.queue.settle(claim, { kind: 'workerStopped' }, noRetry)
      const waiting = { status: 'queued', reason: 'workerStopped', waitingFor: 'worker', finishedAt: null }
      expect(await domain.runs.get(principal.accountId, first.id)).toMatchObject(waiting)
      const claims = await claimAll(domain.queue, domain)
      expect(claims.map(({ runId, attempt }) => [runId, attempt])).toEqual([
        [first.id, 2],
        [second.id, 1],
      ])
    })

    test('finds the steps that earlier ones finished, and nothing is kept of them when the run has ended', async (test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      const [run, cancelled] = [await queueRun(domain, principal), await queueRun(domain, principal)]
      const again = { ...noRetry, maxAttempts: 2, backoffSeconds: 0 }
      for (const claim of await claimAll(domain.queue, domain)) {
        expect(claim.steps).toEqual([])
        const step = { at: Date.now(), type: 'step', data: { name: 'fetch', state: 'finished' } } as const
        expect(await domain.queue.finishStep(claim, 'fetch', Buffer.from(claim.runId), [step])).toBe(true)
        await domain.queue.settle(claim, failed, again)
      }
      await domain.runs.cancel(principal.accountId, cancelled.id)
      const second = await claimOne(domain)
      expect(second.steps.map(({ name, value }) => [name, Buffer.from(value).toString()])).toEqual([['fetch', run.id]])
      await domain.queue.settle(second, { kind: 'succeeded', output: null }, noRetry)
      expect(await domain.store.read.all('SELECT * FROM run_steps', [])).toEqual([])
    })

    test('may finish a step of a name once', async (test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      await queueRun(domain, principal)
      const claim = await claimOne(domain)
      const [first, second] = [Buffer.from('first'), Buffer.from('second')]
      await domain.queue.finishStep(claim, 'fetch', first, [])
      await expect(domain.queue.finishStep(claim, 'fetch', second, [])).rejects.toThrow()
      await domain.queue.settle(claim, { kind: 'workerStopped' }, noRetry)
      const [step] = (await claimOne(domain)).steps
      expect(Buffer.from(step?.value ?? []).toString()).toBe('first')
    })
  })

  describe('events', () => {
    test('are numbered from 1 without a gap, whoever writes them at the same time', async (test) => {
      const domain = await openDomain(test, { kind })
      const other = await openDomain(test, { kind, place: domain.place })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      const claim = await claimOne(domain)
      const log = (message: string) => ({ at: Date.now(), type: 'log', data: { level: 'info', message } }) as const
      await Promise.all([
        ...Array.from({ length: 30 }, (_, index) =>
          (index % 2 ? domain : other).queue.report(claim, [log(`${index} a`), log(`${index} b`)]),
        ),
        other.runs.cancel(principal.accountId, run.id),
      ])
      await domain.queue.settle(claim, { kind: 'cancelled' }, noRetry, [log('last words')])
      const events = await eventsAfter(other.store.read, run.id, 0, 1000)
      expect(events.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 65 }, (_, index) => index + 1))
      expect(events.at(-1)?.data).toEqual({ status: 'cancelled', attempt: 1, reason: 'cancelRequested' })
      const messages = events.filter(({ type }) => type === 'log').map(({ data }) => String(data.message))
      expect(messages.at(-1)).toBe('last words')
      // What was reported together stands together.
      for (const [index, message] of messages.entries()) {
        if (message.endsWith(' a')) expect(messages[index + 1]).toBe(message.replace(' a', ' b'))
      }
    })

    test('set the progress of the run to the last one told', async (test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      const claim = await claimOne(domain)
      const progress = (percent: number) =>
        ({ at: 1, type: 'progress', data: { attempt: 1, percent, message: `${percent} of 100` } }) as const
      const log = { at: 1, type: 'log', data: { level: 'info', message: 'between' } } as const
      await domain.queue.report(claim, [progress(10), log, progress(40), log])
      const now = await domain.runs.get(principal.accountId, run.id)
      expect(now?.progress).toEqual({ percent: 40, message: '40 of 100' })
    })
  })
})
