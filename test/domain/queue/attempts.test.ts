/** Attempts: retries, outcomes, stored steps, and the events that record them. */
import { describe, expect, test, vi } from 'vitest'
import type { Claim } from '../../../src/domain/queue/attempts.ts'
import type { RunQueue } from '../../../src/domain/queue/run-queue.ts'
import { eventsAfter } from '../../../src/domain/queue/runs.sql.ts'
import type { FinishedRun, RunStatus } from '../../../src/domain/runs/run-state.ts'
import {
  claimAll,
  claimOne,
  createManualClock,
  failedAttempt,
  leaseSeconds,
  noRetry,
  statusHistory,
} from '../../support/claims.ts'
import { newAccount, openDomain, queueRun } from '../../support/domain.ts'
import { sqlText } from '../../support/run-rows.ts'
import { stores } from '../../support/store-kinds.ts'

const { error } = failedAttempt

describe.each(stores)('runs ($name)', (kind) => {
  describe('an attempt', () => {
    test('that fails is retried after its backoff until the retry policy is exhausted', async (test) => {
      const clock = createManualClock()
      const domain = await openDomain(test, { kind, now: clock.now })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      const retry = { maxAttempts: 4, backoffSeconds: 0.5, backoffFactor: 3 }
      const get = () => domain.runs.get(principal.accountId, run.id)
      for (const backoffSeconds of [0.5, 1.5, 4.5]) {
        const claim = await claimOne(domain)
        await domain.queue.complete(claim, failedAttempt, retry)
        const availableAt = clock.now() + backoffSeconds * 1000
        const waiting = { status: 'queued', reason: 'attemptFailed', waitingFor: 'delay', availableAt, error }
        expect(await get()).toMatchObject(waiting)
        clock.advance(backoffSeconds - 0.001)
        await domain.maintenance.once()
        expect(await claimAll(domain.queue, domain)).toEqual([])
        clock.advance(0.001)
        await domain.maintenance.once()
        expect(await get()).toMatchObject({ status: 'queued', waitingFor: 'worker' })
      }
      await domain.queue.complete(await claimOne(domain), failedAttempt, retry)
      const finishedAt = clock.now()
      expect(await get()).toMatchObject({ status: 'failed', reason: 'workflowFailed', attempts: 4, error, finishedAt })
    })

    test('of a run that has waited is observed without the time of its waits', async (test) => {
      const clock = createManualClock()
      const seconds: (number | undefined)[] = []
      const observer = { finished: (run: FinishedRun) => void seconds.push(run.seconds), leasesExpired() {} }
      const domain = await openDomain(test, { kind, now: clock.now, observer })
      const { principal, accountId } = await newAccount(domain)
      /** Three seconds of execution, and a day of waiting, before the part that has just started. */
      const addEarlierParts = (id: string, status: string) =>
        domain.store.write((tx) =>
          tx.all(
            `UPDATE runs SET started_at = started_at - 86403000, executed_ms = 3000, has_waits = 1, continues = 1,
              status = ? WHERE id = ?`,
            [status, id],
          ),
        )
      for (const outcome of [{ kind: 'succeeded', output: null }, failedAttempt] as const) {
        await queueRun(domain, principal)
        const claim = await claimOne(domain)
        await addEarlierParts(claim.runId, 'running')
        clock.advance(2)
        await domain.queue.complete(claim, outcome, noRetry)
      }
      const waiting = await queueRun(domain, principal)
      await claimOne(domain)
      await addEarlierParts(waiting.id, 'waiting')
      clock.advance(1000)
      await domain.runs.cancel(accountId, waiting.id)
      expect(seconds).toEqual([5, 5, 3])
    })

    test('that succeeds after failed ones clears the error', async (test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      await domain.queue.complete(await claimOne(domain), failedAttempt, {
        ...noRetry,
        maxAttempts: 2,
        backoffSeconds: 0,
      })
      await domain.queue.complete(await claimOne(domain), { kind: 'succeeded', output: { words: 3 } }, noRetry)
      const finished = { status: 'succeeded', reason: null, output: { words: 3 }, error: null, attempts: 2 }
      expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject(finished)
    })

    test('stays in the history of its run with its outcome and error', async (test) => {
      const clock = createManualClock()
      const domain = await openDomain(test, { kind, now: clock.now })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      const again = { ...noRetry, maxAttempts: 2, backoffSeconds: 0 }
      const thrown = { ...error, stack: 'at run (talk.ts:3:5)', step: 'speak' }
      const times: number[] = []
      const attempt = async (end: (claim: Claim) => Promise<unknown>) => {
        clock.advance(1)
        const claim = await claimOne(domain)
        times.push(clock.now())
        clock.advance(1)
        await end(claim)
        times.push(clock.now())
      }
      await attempt((claim) => domain.queue.complete(claim, { ...failedAttempt, error: thrown }, again))
      await attempt((claim) => domain.queue.complete(claim, { kind: 'workerStopped' }, again))
      await attempt(() => {
        clock.advance(leaseSeconds)
        return domain.maintenance.once()
      })
      const running = await claimOne(domain)
      times.push(clock.now())
      const history = async () => (await domain.runs.get(principal.accountId, run.id))?.attemptHistory
      const workerLost = { name: 'WorkerLost', message: expect.any(String), stack: null, step: null }
      const ended = [
        { number: 1, startedAt: times[0], finishedAt: times[1], outcome: 'failed', error: thrown },
        { number: 2, startedAt: times[2], finishedAt: times[3], outcome: 'workerStopped', error: null },
        { number: 3, startedAt: times[4], finishedAt: times[5], outcome: 'workerLost', error: workerLost },
      ]
      const last = { number: 4, startedAt: times[6], finishedAt: null, outcome: null, error: null }
      expect(await history()).toEqual([...ended, last])
      await domain.queue.complete(running, { kind: 'succeeded', output: null }, again)
      expect(await history()).toEqual([...ended, { ...last, finishedAt: clock.now(), outcome: 'succeeded' }])
      expect((await domain.runs.list(principal.accountId, { limit: 1 }))?.runs[0]?.attemptHistory).toBeUndefined()
      const events = await eventsAfter(domain.store.read, run.id, 0, 100)
      expect(events.map(({ data }) => data.error)).toContainEqual(thrown)
    })

    test('that succeeds at once writes nothing for the history', async (test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      await domain.queue.complete(await claimOne(domain), { kind: 'succeeded', output: null }, noRetry)
      expect(await domain.store.read.all('SELECT attempt_ends FROM runs', [])).toEqual([{ attempt_ends: null }])
      const all = vi.spyOn(domain.store.read, 'all')
      const read = await domain.runs.get(principal.accountId, run.id)
      expect(all.mock.calls.map(([sql]) => sqlText(sql)).join()).not.toContain('run_events')
      const { startedAt, finishedAt } = read ?? {}
      expect(read?.attemptHistory).toEqual([{ number: 1, startedAt, finishedAt, outcome: 'succeeded', error: null }])
    })

    test('beyond the fiftieth before the latest one is in the events only', async (test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      for (let count = 0; count < 52; count += 1) {
        await domain.queue.complete(await claimOne(domain), { kind: 'workerStopped' }, noRetry)
      }
      await claimOne(domain)
      const history = (await domain.runs.get(principal.accountId, run.id))?.attemptHistory
      expect(history?.map(({ number }) => number)).toEqual(Array.from({ length: 50 }, (_, index) => index + 4))
    })

    test('whose error has a name that is no text is read with a text', async (test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      const outcome = { kind: 'failed', reason: 'workflowFailed', error: { name: { a: 1 }, message: null } } as never
      await domain.queue.complete(await claimOne(domain), outcome, noRetry)
      const text = { name: '[object Object]', message: 'null' }
      expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status: 'failed', error: text })
    })

    test.for<[RunStatus, string, Parameters<RunQueue['complete']>[1]]>([
      ['failed', 'outputInvalid', { kind: 'failed', reason: 'outputInvalid', error }],
      ['timedOut', 'timeLimit', { kind: 'timedOut' }],
    ])('ends the run as %s (%s)', async ([status, reason, outcome], test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      const run = await queueRun(domain, principal)
      await domain.queue.complete(await claimOne(domain), outcome, noRetry)
      expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status, reason })
      expect((await statusHistory(domain, run.id)).at(-1)).toEqual([status, 1, reason])
    })

    test('returned by a stopping worker is queued again at once, at its former position, regardless of the retry policy', async (test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      const [first, second] = [await queueRun(domain, principal), await queueRun(domain, principal)]
      const claim = await claimOne(domain)
      await domain.queue.complete(claim, { kind: 'workerStopped' }, noRetry)
      const waiting = { status: 'queued', reason: 'workerStopped', waitingFor: 'worker', finishedAt: null }
      expect(await domain.runs.get(principal.accountId, first.id)).toMatchObject(waiting)
      const claims = await claimAll(domain.queue, domain)
      expect(claims.map(({ runId, attempt }) => [runId, attempt])).toEqual([
        [first.id, 2],
        [second.id, 1],
      ])
    })

    test('gets the finished steps of earlier attempts, which are deleted when the run succeeds', async (test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      const [run, cancelled] = [await queueRun(domain, principal), await queueRun(domain, principal)]
      const again = { ...noRetry, maxAttempts: 2, backoffSeconds: 0 }
      for (const claim of await claimAll(domain.queue, domain)) {
        expect(claim.steps).toEqual([])
        const step = { at: Date.now(), type: 'step', data: { name: 'fetch', state: 'finished' } } as const
        expect(
          await domain.queue.finishStep(claim, { name: 'fetch', position: 1 }, () => Buffer.from(claim.runId), [step]),
        ).toBe(true)
        await domain.queue.complete(claim, failedAttempt, again)
      }
      await domain.runs.cancel(principal.accountId, cancelled.id)
      const second = await claimOne(domain)
      expect(second.steps.map(({ name, value }) => [name, Buffer.from(value).toString()])).toEqual([['fetch', run.id]])
      await domain.queue.complete(second, { kind: 'succeeded', output: null }, noRetry)
      const kept = await domain.store.read.all('SELECT run_id FROM run_steps', [])
      expect(kept).toEqual([{ run_id: cancelled.id }])
    })

    test('cannot finish the same step twice', async (test) => {
      const domain = await openDomain(test, { kind })
      const { principal } = await newAccount(domain)
      await queueRun(domain, principal)
      const claim = await claimOne(domain)
      const [first, second] = [() => Buffer.from('first'), () => Buffer.from('second')]
      await domain.queue.finishStep(claim, { name: 'fetch', position: 1 }, first, [])
      await expect(domain.queue.finishStep(claim, { name: 'fetch', position: 1 }, second, [])).rejects.toThrow()
      await domain.queue.complete(claim, { kind: 'workerStopped' }, noRetry)
      const [step] = (await claimOne(domain)).steps
      expect(Buffer.from(step?.value ?? []).toString()).toBe('first')
    })
  })

  describe('events', () => {
    test('are numbered from 1 without gaps when several processes write at the same time', async (test) => {
      const domain = await openDomain(test, { kind })
      const other = await openDomain(test, { kind, location: domain.location })
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
      await domain.queue.complete(claim, { kind: 'cancelled' }, noRetry, [log('last line')])
      const events = await eventsAfter(other.store.read, run.id, 0, 1000)
      expect(events.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 65 }, (_, index) => index + 1))
      expect(events.at(-1)?.data).toEqual({ status: 'cancelled', attempt: 1, reason: 'cancelRequested' })
      const messages = events.filter(({ type }) => type === 'log').map(({ data }) => String(data.message))
      expect(messages.at(-1)).toBe('last line')
      // Reports of one call stay adjacent.
      for (const [index, message] of messages.entries()) {
        if (message.endsWith(' a')) expect(messages[index + 1]).toBe(message.replace(' a', ' b'))
      }
    })

    test("set the run's progress to the last reported one", async (test) => {
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
