/** Runs that wait: by a clock that jumps, with throttles, limits and retention, and with the runs that they call. */
import { describe, expect, test } from 'vitest'
import type { Claim } from '../../../src/domain/queue/attempts.ts'
import type { ReachedWait } from '../../../src/domain/queue/run-options.ts'
import { WaitingRunsLimit } from '../../../src/domain/queue/waits.ts'
import { stepAad } from '../../../src/domain/runs/run.ts'
import type { Workflow } from '../../../src/domain/workflows/workflow.ts'
import { callDepthMax } from '../../../src/storage/runs/wait-statements.ts'
import { claimAll, claimableOf, claimOne, createManualClock, leaseSeconds, noRetry } from '../../support/claims.ts'
import { newAccount, openDomain, queueRun, type Test, workflow } from '../../support/domain.ts'
import { beforeNextCommit } from '../../support/interleaving.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'
import { answer } from '../../support/worker.ts'

const day = 86_400

async function open(test: Test, kind: StoreKind, workflows = [workflow()], queuedRunsMax = 0) {
  const clock = createManualClock()
  const domain = await openDomain(test, { kind, now: clock.now, workflows, queuedRunsMax })
  const { principal } = await newAccount(domain)
  const run = await queueRun(domain, principal)
  /** @param executedMilliseconds if the run is to be suspended. */
  const reach = async (claim: Claim, wait: ReachedWait, executedMilliseconds?: number) => {
    const names = [wait.name]
    const suspend = executedMilliseconds === undefined ? undefined : { executedMilliseconds, names }
    const results = await domain.queue.wait(claim, { reached: [wait], names, suspend }, [])
    if (!results) throw new Error('The lease was lost.')
    return results
  }
  const approval = (): ReachedWait => {
    return { name: 'approval', kind: 'answer', deadline: clock.now() + 100 * day * 1000, title: null, shown: null }
  }
  const called = (name: string, isDetached = false): ReachedWait => {
    return { name, kind: 'run', workflowId: 'anything', variables: {}, options: {}, isDetached }
  }
  const children = () => {
    const query = domain.store.read.query.selectFrom('runs').select(['id', 'status']).orderBy('id')
    return query.where('parent_run_id', '=', run.id).execute()
  }
  return { clock, domain, principal, run, reach, approval, called, children }
}

describe.each(stores)('a run that waits ($name)', (kind) => {
  test('has executed for as long as its worker has measured, when the clock jumps', async (test) => {
    const { clock, domain, run, reach, approval } = await open(test, kind)
    const claim = await claimOne(domain)
    clock.advance(day)
    expect(await reach(claim, approval(), 700)).toMatchObject({ isSuspended: true })
    clock.advance(-day)
    await answer(domain, run, 'approval', 1)
    const second = await claimOne(domain)
    clock.advance(-1)
    const wait: ReachedWait = { name: 'pause', kind: 'sleep', deadline: clock.now() + 1000 }
    expect(await reach(second, wait, 300)).toMatchObject({ isSuspended: true })
    clock.advance(1)
    await domain.maintenance.once()
    expect(await claimOne(domain)).toMatchObject({ executedMilliseconds: 1000, number: 1 })
  })

  test('goes on with an answer that comes while its browser is saved, although the clock jumps back', async (test) => {
    const { clock, domain, run, reach, approval } = await open(test, kind)
    clock.advance(day)
    const claim = await claimOne(domain)
    expect(await reach(claim, approval())).toMatchObject({ isSuspended: false, ended: [] })
    clock.advance(-day)
    await answer(domain, run, 'approval', 1)
    await domain.queue.complete(claim, { kind: 'waiting', executedMilliseconds: 1, names: ['approval'] }, noRetry)
    expect(await claimAll(domain.queue, domain)).toHaveLength(1)
  })

  test('has the answer among its results when it goes on', async (test) => {
    const { domain, run, reach, approval } = await open(test, kind)
    await reach(await claimOne(domain), approval(), 1)
    await answer(domain, run, 'approval', 1)
    const [step, ...others] = (await claimOne(domain)).steps
    expect([step?.name, others]).toEqual(['approval', []])
    const outcome = domain.encryption.decrypt(step?.value as Uint8Array, stepAad(run.id, 'approval'))
    expect(JSON.parse(outcome)).toEqual({ ok: true, value: 1 })
  })

  test.for(['key', 'account', 'workflow'] as const)('is no second start of a throttle per %s', async (per, test) => {
    const throttled = workflow({ throttle: { limit: 2, periodSeconds: 60, per } })
    const { domain, principal, run, reach, approval } = await open(test, kind, [throttled])
    expect(await reach(await claimOne(domain), approval(), 1)).toMatchObject({ isSuspended: true })
    await answer(domain, run, 'approval', 1)
    const continued = await claimOne(domain)
    expect(continued.runId).toBe(run.id)
    expect(await reach(continued, { ...approval(), name: 'second' }, 1)).toMatchObject({ isSuspended: true })
    const other = await queueRun(domain, principal)
    expect((await claimOne(domain)).runId).toBe(other.id)
    const late = await queueRun(domain, principal)
    expect(await claimAll(domain.queue, domain)).toEqual([])
    // The throttle is at its rate.
    await answer(domain, run, 'second', 2)
    expect((await claimAll(domain.queue, domain)).map(({ runId }) => runId)).toEqual([run.id])
    expect(await domain.runs.getWithWaiting(principal.accountId, late.id)).toMatchObject({ waitingFor: 'throttle' })
  })

  test.for(['key', 'account', 'workflow'] as const)(
    'goes on before a run of higher priority that waits for a throttle per %s',
    async (per, test) => {
      const throttled = workflow({ throttle: { limit: 1, periodSeconds: 60, per } })
      const { domain, principal, run, reach, approval } = await open(test, kind, [throttled])
      await reach(await claimOne(domain), approval(), 1)
      const urgent = await queueRun(domain, principal, { priority: 10 })
      expect(await claimAll(domain.queue, domain)).toEqual([])
      await answer(domain, run, 'approval', 1)
      const shown = await domain.runs.getWithWaiting(principal.accountId, run.id)
      expect(shown?.waitingFor).not.toBe('throttle')
      expect(await domain.runs.getWithWaiting(principal.accountId, urgent.id)).toMatchObject({ waitingFor: 'throttle' })
      expect((await claimAll(domain.queue, domain)).map(({ runId }) => runId)).toEqual([run.id])
    },
  )

  test('is kept beyond the retention while it waits, and is purged with its waits after it has ended', async (test) => {
    const { clock, domain, principal, run, reach, approval } = await open(test, kind)
    await reach(await claimOne(domain), approval(), 1)
    const purge = async () => {
      while ((await domain.maintenance.once()) < 1000);
      return domain.runs.get(principal.accountId, run.id)
    }
    clock.advance(99 * day)
    expect(await purge()).toMatchObject({ waitingFor: 'answer' })
    await domain.runs.cancel(principal.accountId, run.id)
    clock.advance(90 * day)
    expect(await purge()).toBe(undefined)
    expect(await domain.store.read.all('SELECT name FROM run_waits', [])).toEqual([])
  })

  test('gets what has ended when it asks, also while no process does the maintenance', async (test) => {
    const { clock, domain, reach } = await open(test, kind)
    const claim = await claimOne(domain)
    await reach(claim, { name: 'pause', kind: 'sleep', deadline: clock.now() + 1000 })
    const ask = () => domain.queue.wait(claim, { reached: [], names: ['pause'], suspend: undefined }, [])
    expect(await ask()).toMatchObject({ ended: [] })
    clock.advance(1)
    expect(await ask()).toMatchObject({ ended: [{ name: 'pause', outcome: 'null' }] })
  })

  test('goes on when its wait ends while it is being suspended', async (test) => {
    const { clock, domain, run, reach } = await open(test, kind)
    const claim = await claimOne(domain)
    const deadline = clock.now() + 1000
    await reach(claim, { name: 'pause', kind: 'sleep', deadline })
    const end = () => {
      clock.advance(1000)
      return domain.maintenance.once()
    }
    const ending = beforeNextCommit(domain.store, end)
    const suspend = { executedMilliseconds: 1, names: ['pause'] }
    const results = await domain.queue.wait(claim, { reached: [], names: ['pause'], suspend }, [])
    expect(results).toMatchObject({ isSuspended: true })
    await ending
    clock.advance(1)
    expect((await claimAll(domain.queue, domain)).map(({ runId }) => runId)).toEqual([run.id])
  })

  test('takes no answer after the deadline of its wait', async (test) => {
    const { clock, domain, run, reach, approval } = await open(test, kind)
    await reach(await claimOne(domain), approval(), 1)
    clock.advance(100 * day)
    await domain.maintenance.once()
    expect(await answer(domain, run, 'approval', 1)).toMatchObject({ kind: 'timedOut' })
    const [step] = (await claimOne(domain)).steps
    const outcome = step && domain.encryption.decrypt(step.value, stepAad(run.id, 'approval'))
    expect([undefined, '{"ok":false}']).toContain(outcome)
  })

  const limit = { limit: 10, per: 'workflow' } as const
  const throttle = { limit: 10, periodSeconds: 60, per: 'workflow' } as const
  test.for<[string, Partial<Workflow>, Partial<Workflow>, starts: boolean]>([
    ['starts in the slot of its caller without limits', {}, {}, true],
    ['does not start there with a limit of its caller', { concurrency: limit }, {}, false],
    ['does not start there with a limit of its own', {}, { concurrency: limit }, false],
    ['does not start there with a throttle', {}, { throttle }, false],
  ])('and calls one run: this %s', async ([, ofCaller, ofCalled, starts], test) => {
    const workflows = [workflow(ofCaller), workflow({ id: 'called', ...ofCalled })]
    const { domain, called } = await open(test, kind, workflows)
    const reached = [{ ...called('one'), workflowId: 'called' } as ReachedWait]
    const suspend = { executedMilliseconds: 1, names: ['one'] }
    const slot = { workflows: claimableOf(domain.workflows), leaseSeconds }
    const results = await domain.queue.wait(await claimOne(domain), { reached, names: ['one'], suspend, slot }, [])
    expect(results).toMatchObject({ isSuspended: !starts, refused: [] })
    expect(results?.started?.claim.workflowId).toBe(starts ? 'called' : undefined)
  })

  test('is cancelled with the runs that it has called, unless they are detached', async (test) => {
    const { domain, principal, run, reach, called, children } = await open(test, kind)
    const claim = await claimOne(domain)
    await reach(claim, called('attached'))
    await reach(claim, called('detached', true))
    const [attached] = await children()
    expect(await reach(claim, called('ended'), 1)).toMatchObject({ isSuspended: true })
    for (const child of await claimAll(domain.queue, domain, 1)) {
      expect(child.runId).toBe(attached?.id)
      await reach(child, called('below'), 1)
    }
    await domain.runs.cancel(principal.accountId, run.id)
    expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status: 'cancelled' })
    expect((await children()).map(({ status }) => status)).toEqual(['cancelled', 'queued', 'cancelled'])
    const below = domain.store.read.query.selectFrom('runs').select('status')
    expect(await below.where('parent_run_id', '=', attached?.id as string).execute()).toEqual([{ status: 'cancelled' }])
  })

  test('may call others when the queue is full, and these count for others', async (test) => {
    const { domain, principal, reach, called, children } = await open(test, kind, [workflow()], 2)
    const claim = await claimOne(domain)
    await queueRun(domain, principal)
    await reach(claim, called('first'))
    await expect(queueRun(domain, principal)).rejects.toThrow('tooManyQueuedRuns')
    expect(await reach(claim, called('second'), 1)).toMatchObject({ isSuspended: true, refused: [] })
    expect(await children()).toHaveLength(2)
  })

  test('takes no answer after it has ended, whether it has reached the wait or not', async (test) => {
    const { domain, principal, run, reach, approval } = await open(test, kind)
    await reach(await claimOne(domain), approval(), 1)
    await domain.runs.cancel(principal.accountId, run.id)
    for (const name of ['approval', 'second'])
      expect(await answer(domain, run, name, 1)).toMatchObject({ kind: 'ended' })
  })

  test('keeps the kind and the deadline with which it has first reached a wait', async (test) => {
    const { clock, domain, reach, approval } = await open(test, kind)
    const claim = await claimOne(domain)
    const deadline = clock.now() + 100 * day * 1000
    const [first, pause] = [approval(), { name: 'approval', kind: 'sleep', deadline: clock.now() } as const]
    await reach(claim, first)
    clock.advance(1)
    expect(await reach(claim, approval())).toMatchObject({ refused: [] })
    expect(await reach(claim, pause)).toMatchObject({ refused: [{ name: 'approval', errorName: 'WaitMismatch' }] })
    const waits = domain.store.read.query.selectFrom('run_waits').select(['kind', 'deadline'])
    expect(await waits.execute()).toEqual([{ kind: 'answer', deadline }])
  })

  test('reaches no wait after it was cancelled', async (test) => {
    const { domain, principal, run, reach, called, children } = await open(test, kind)
    const claim = await claimOne(domain)
    await domain.runs.cancel(principal.accountId, run.id)
    expect(await reach(claim, called('late'), 1)).toMatchObject({ isSuspended: false, refused: [] })
    expect(await children()).toEqual([])
  })

  test('gets an outcome again when its worker has lost the response', async (test) => {
    const { clock, domain, reach } = await open(test, kind)
    const claim = await claimOne(domain)
    await reach(claim, { name: 'pause', kind: 'sleep', deadline: clock.now() })
    const ask = () => domain.queue.wait(claim, { reached: [], names: ['pause'], suspend: undefined }, [])
    for (const _ of [1, 2]) expect(await ask()).toMatchObject({ ended: [{ name: 'pause', outcome: 'null' }] })
  })

  test('calls runs as deep as is allowed, and no deeper', async (test) => {
    const { domain, reach, called } = await open(test, kind)
    for (let depth = 0; depth < callDepthMax; depth++)
      expect(await reach(await claimOne(domain), called('below'), 1)).toMatchObject({ refused: [], isSuspended: true })
    const refused = [{ name: 'below', errorName: 'CallRefused' }]
    expect(await reach(await claimOne(domain), called('below'), 1)).toMatchObject({ refused, isSuspended: false })
  })

  test('counts for the limit of waiting runs of its account', async (test) => {
    const { domain, principal, reach, approval } = await open(test, kind)
    const isReached = () => domain.store.write((tx) => new WaitingRunsLimit(1).isReached(tx, principal.accountId))
    expect(await isReached()).toBe(false)
    await reach(await claimOne(domain), approval(), 1)
    expect(await isReached()).toBe(true)
  })
})
