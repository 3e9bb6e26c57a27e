/** Each change of a run notifies the processes that wait for it, so that none waits until it next reads the store. */
import { describe, expect, test } from 'vitest'
import { claimableOf, claimOne, createManualClock, failedAttempt, noRetry } from '../../support/claims.ts'
import { newAccount, openDomain, queueRun, type Test, workflow } from '../../support/domain.ts'
import { recordNotifications } from '../../support/interleaving.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const succeeded = { kind: 'succeeded', output: null } as const

async function open(test: Test, kind: StoreKind, workflows = [workflow()]) {
  const clock = createManualClock()
  const domain = await openDomain(test, { kind, workflows, now: clock.now })
  const { principal, accountId } = await newAccount(domain)
  const queue = (options?: Parameters<typeof queueRun>[2]) => queueRun(domain, principal, options)
  /** The status of the newest run that a listener reads at the first notification of each topic. */
  const statuses = async (act: () => Promise<unknown>) => {
    const runs = domain.store.read.query.selectFrom('runs').selectAll().orderBy('id', 'desc').limit(1)
    const notified = recordNotifications(domain.store, async () => {
      const run = await runs.executeTakeFirst()
      return run?.cancel_requested === 1 ? 'cancelled' : run?.status
    })
    await act()
    return notified()
  }
  return { clock, domain, accountId, queue, statuses }
}

describe.each(stores)('notifications ($name)', (kind) => {
  test('workers learn of new runs, and followers of claimed ones', async (test) => {
    const { domain, queue, statuses } = await open(test, kind)
    expect(await statuses(() => queue())).toEqual({ queue: 'queued' })
    expect(await statuses(() => claimOne(domain))).toEqual({ runs: 'running' })
  })

  test('followers learn of the end of a run, and workers too if others may start then', async (test) => {
    const { domain, queue, statuses } = await open(test, kind)
    await queue()
    const first = await claimOne(domain)
    expect(await statuses(() => domain.queue.complete(first, succeeded, noRetry))).toEqual({ runs: 'succeeded' })
    await queue()
    const second = await claimOne(domain)
    const failed = await statuses(() => domain.queue.complete(second, failedAttempt, noRetry))
    expect(failed).toEqual({ runs: 'failed', queue: 'failed' })
  })

  test('workers learn of the end of a run of a workflow with a limit', async (test) => {
    const { domain, queue, statuses } = await open(test, kind, [
      workflow({ concurrency: { limit: 1, per: 'workflow' } }),
    ])
    await queue()
    const [claim] = await domain.queue.claim('worker', claimableOf(domain.workflows), 1, 15)
    if (!claim) throw new Error('No run was claimed.')
    const ended = await statuses(() => domain.queue.complete(claim, succeeded, noRetry))
    expect(ended).toEqual({ runs: 'succeeded', queue: 'succeeded' })
  })

  test('workers learn of the end of a run whose caller waits for it', async (test) => {
    const { domain, queue, statuses } = await open(test, kind)
    await queue()
    const call = {
      kind: 'run',
      name: 'one',
      workflowId: 'anything',
      variables: {},
      options: {},
      isDetached: false,
    } as const
    const suspend = { executedMilliseconds: 1, names: ['one'] }
    await domain.queue.wait(await claimOne(domain), { reached: [call], names: ['one'], suspend }, [])
    const called = await claimOne(domain)
    const ended = await statuses(() => domain.queue.complete(called, succeeded, noRetry))
    expect(ended).toEqual({ runs: 'succeeded', queue: 'succeeded' })
  })

  test('workers and followers learn of a run that a worker hands back', async (test) => {
    const { domain, queue, statuses } = await open(test, kind)
    await queue()
    const claim = await claimOne(domain)
    const handed = await statuses(() => domain.queue.handBack(claim, 'The deployment is unavailable.'))
    expect(handed).toEqual({ runs: 'queued', queue: 'queued' })
  })

  test('workers and followers learn of a cancellation', async (test) => {
    const { domain, accountId, queue, statuses } = await open(test, kind)
    const { id } = await queue()
    await claimOne(domain)
    const cancelled = await statuses(() => domain.runs.cancel(accountId, id))
    expect(cancelled).toEqual({ cancellations: 'cancelled', runs: 'cancelled' })
  })

  test('workers and followers learn of what became due', async (test) => {
    const { clock, domain, queue, statuses } = await open(test, kind)
    await queue({ expiresInSeconds: 60 })
    clock.advance(61)
    expect(await statuses(() => domain.maintenance.once())).toEqual({ queue: 'expired', runs: 'expired' })
  })
})
