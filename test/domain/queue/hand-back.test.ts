/** Runs whose worker cannot get their deployment return to the queue, without an attempt, and say why. */
import { describe, expect, test } from 'vitest'
import { openWithContext } from '../../support/browser-contexts.ts'
import {
  claimAll,
  claimOne,
  createManualClock,
  failedAttempt,
  leaseSeconds,
  statusHistory,
} from '../../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, type Test, workflow } from '../../support/domain.ts'
import { stores } from '../../support/store-kinds.ts'

const message = 'The package "sharp", which has native code, is not installed on the worker\'s machine.'

describe.each(stores)('a run that a worker hands back ($name)', (kind) => {
  async function open(test: Test) {
    const clock = createManualClock()
    const domain = await openDomain(test, { kind, now: clock.now })
    const { principal } = await newAccount(domain)
    const read = (id: string) => domain.runs.get(principal.accountId, id)
    return { clock, domain, principal, read }
  }

  test('waits for its deployment after a growing delay, and has not used an attempt', async (test) => {
    const { clock, domain, principal, read } = await open(test)
    const { id } = await queueRun(domain, principal)
    for (const [earlier, delaySeconds] of [1, 2, 4, 300].entries()) {
      if (delaySeconds === 300) await setCount(domain, id, 9)
      const claim = await claimOne(domain)
      expect(claim).toMatchObject({ runId: id, attempt: earlier + 1, number: 1 })
      expect(await domain.queue.handBack(claim, message)).toBe(true)
      const waits = {
        status: 'queued',
        waitingFor: 'deployment',
        waitingForDetail: { kind: 'deployment', message },
        attempts: 0,
      }
      expect(await read(id)).toMatchObject({
        ...waits,
        reason: null,
        startedAt: null,
        availableAt: clock.now() + delaySeconds * 1000,
      })
      clock.advance(delaySeconds - 0.001)
      await domain.maintenance.once()
      expect(await claimAll(domain.queue, domain)).toEqual([])
      clock.advance(0.001)
      await domain.maintenance.once()
    }
    expect(await read(id)).toMatchObject({
      waitingFor: 'deployment',
      waitingForDetail: { kind: 'deployment', message },
    })
    const claim = await claimOne(domain)
    await domain.queue.complete(claim, { kind: 'succeeded', output: 1 }, workflow().retry)
    expect(await read(id)).toMatchObject({ status: 'succeeded', attempts: 1, waitingFor: null, waitingForDetail: null })
    const history = await statusHistory(domain, id)
    expect(history.slice(0, 4)).toEqual([
      ['queued', 0, null],
      ['running', 1, null],
      ['queued', 0, null],
      ['running', 1, null],
    ])
  })

  async function setCount(domain: Domain, id: string, count: number): Promise<void> {
    const problem = { deployment_problem: JSON.stringify({ message, count }) }
    await domain.store.write(({ query }) => query.updateTable('runs').set(problem).where('id', '=', id).execute())
  }

  test('keeps the attempts that it has used, and its retries', async (test) => {
    const { clock, domain, principal, read } = await open(test)
    const { id } = await queueRun(domain, principal)
    const startedAt = clock.now()
    const retry = { maxAttempts: 2, backoffSeconds: 0, backoffFactor: 1 }
    await domain.queue.complete(await claimOne(domain), failedAttempt, retry)
    await domain.queue.handBack(await claimOne(domain), message)
    expect(await read(id)).toMatchObject({ status: 'queued', attempts: 1, startedAt, waitingFor: 'deployment' })
    clock.advance(1)
    await domain.maintenance.once()
    const claim = await claimOne(domain)
    expect(claim).toMatchObject({ attempt: 3, number: 2 })
    await domain.queue.complete(claim, failedAttempt, retry)
    expect(await read(id)).toMatchObject({ status: 'failed', attempts: 2, waitingFor: null })
  })

  test('ends if it was cancelled, and stays as it is if the lease was lost', async (test) => {
    const { clock, domain, principal, read } = await open(test)
    const cancelled = await queueRun(domain, principal)
    const claim = await claimOne(domain)
    await domain.runs.cancel(principal.accountId, cancelled.id)
    expect(await domain.queue.handBack(claim, message)).toBe(true)
    expect(await read(cancelled.id)).toMatchObject({ status: 'cancelled', attempts: 1 })
    const lost = await queueRun(domain, principal)
    const late = await claimOne(domain)
    clock.advance(leaseSeconds)
    await domain.maintenance.once()
    await claimOne(domain, 'another')
    const before = await read(lost.id)
    expect(await domain.queue.handBack(late, message)).toBe(false)
    expect(await read(lost.id)).toEqual(before)
  })

  test('releases its browser context for the next run', async (test) => {
    const { domain, queue } = await openWithContext(test, { kind })
    await queue()
    const claim = await claimOne(domain)
    const next = await queue()
    expect(await claimAll(domain.queue, domain)).toEqual([])
    await domain.queue.handBack(claim, message)
    expect(await claimOne(domain)).toMatchObject({ runId: next.id })
  })
})
