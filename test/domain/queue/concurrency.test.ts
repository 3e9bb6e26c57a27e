/** Limits of concurrent runs per account and per key, and what a waiting run says about them. */
import { describe, expect, test } from 'vitest'
import type { Claim } from '../../../src/domain/queue/attempts.ts'
import { claimAll, claimableOf, createManualClock, failedAttempt, leaseSeconds, noRetry } from '../../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, request, type Test, workflow } from '../../support/domain.ts'
import { beforeNextCommit } from '../../support/interleaving.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const perKey = (limit: number) => workflow({ concurrency: { limit, per: 'key' } })
const perAccount = (limit: number) => workflow({ concurrency: { limit, per: 'account' } })
const succeeded = { kind: 'succeeded', output: null } as const

async function open(test: Test, kind: StoreKind, workflows = [perKey(1)]) {
  const clock = createManualClock()
  const domain = await openDomain(test, { kind, workflows, now: clock.now })
  const { accountId, principal } = await newAccount(domain)
  const queue = async (concurrencyKey?: string, more = {}) =>
    (await queueRun(domain, principal, { concurrencyKey, ...more })).id
  const get = (id: string) => domain.runs.getWithWaiting(accountId, id)
  return { clock, domain, accountId, principal, queue, get }
}

const idsOf = (claims: readonly Claim[]) => claims.map(({ runId }) => runId)
const end = ({ queue }: Domain, claim: Claim | undefined) => queue.complete(claim as Claim, succeeded, noRetry)

describe.each(stores)('concurrency ($name)', (kind) => {
  test('a limit per account lets no account wait for another', async (test) => {
    const { domain, queue, get } = await open(test, kind, [perAccount(2)])
    const mine = [await queue(), await queue(), await queue()]
    const theirs = await queueRun(domain, (await newAccount(domain)).principal)
    const claims = await claimAll(domain.queue, domain)
    expect(idsOf(claims).sort()).toEqual([...mine.slice(0, 2), theirs.id].sort())
    expect(await get(mine[2] as string)).toMatchObject({
      waitingFor: 'concurrencyLimit',
      waitingForDetail: {
        kind: 'concurrencyLimit',
        name: 'anything',
        message: 'This workflow runs at most 2 at a time in this account.',
      },
      queuePosition: 1,
    })
    await end(domain, claims[0])
    await end(domain, claims[1])
    await end(domain, claims[2])
    expect(idsOf(await claimAll(domain.queue, domain))).toEqual([mine[2]])
  })

  test.for([
    ['account', perAccount(1)],
    ['key', perKey(1)],
    ['workflow', workflow({ concurrency: { limit: 1, per: 'workflow' } })],
    ['throttle', workflow({ throttle: { limit: 1, periodSeconds: 60, per: 'workflow' } })],
  ] as const)('two workers that claim at the same time keep the limit per %s', async ([per, limited], test) => {
    const { domain, queue } = await open(test, kind, [limited])
    const second = await openDomain(test, { kind, location: domain.location, workflows: [limited] })
    for (const _ of [1, 2]) await queue(per === 'key' ? 'a' : undefined)
    let claims: Claim[] = []
    const ended = beforeNextCommit(domain.store, async () => {
      claims = await claimAll(second.queue, second)
    })
    const first = await claimAll(domain.queue, domain)
    await ended
    expect([...first, ...claims]).toHaveLength(1)
  })

  test('a limit per key holds up runs with the same key only, and starts them by priority and age', async (test) => {
    const { domain, queue, get } = await open(test, kind)
    const [a1, a2, a3] = [await queue('a'), await queue('a'), await queue('a', { priority: 1 })]
    const [b1, none1, none2] = [await queue('b'), await queue(), await queue()]
    const claims = await claimAll(domain.queue, domain)
    // The run with the highest priority of each key.
    expect(idsOf(claims).sort()).toEqual([a3, b1, none1].sort())
    const waiting = { waitingFor: 'concurrencyLimit', concurrencyKey: 'a' }
    const message = 'This workflow runs one at a time for each concurrency key.'
    const waitingForDetail = { kind: 'concurrencyLimit', name: 'a', message }
    expect(await get(a1)).toMatchObject({ ...waiting, waitingForDetail, queuePosition: 1 })
    expect(await get(a2)).toMatchObject({ ...waiting, waitingForDetail, queuePosition: 2 })
    expect(await get(none2)).toMatchObject({ waitingFor: 'concurrencyLimit', concurrencyKey: null })
    expect(await claimAll(domain.queue, domain)).toEqual([])
    const claimOf = (id: string) => claims.find(({ runId }) => runId === id)
    await domain.queue.complete(claimOf(a3) as Claim, failedAttempt, noRetry)
    const [next, ...others] = await claimAll(domain.queue, domain)
    expect([next?.runId, others]).toEqual([a1, []])
    await end(domain, next)
    await end(domain, claimOf(none1))
    expect(idsOf(await claimAll(domain.queue, domain)).sort()).toEqual([a2, none2].sort())
  })

  test('a limit per key is never exceeded by many workers in two processes, and every run starts once', async (test) => {
    const limit = 2
    const { domain, queue } = await open(test, kind, [perKey(limit)])
    const other = await openDomain(test, { kind, workflows: [perKey(limit)], location: domain.location })
    for (let run = 0; run < 12; run += 1) await queue(`key-${run % 2}`)
    const running = new Map<string, Claim>()
    const finished: string[] = []
    while (finished.length < 12) {
      const claiming = Array.from({ length: 6 }, (_, index) => claimAll((index % 2 ? domain : other).queue, domain, 2))
      for (const claim of (await Promise.all(claiming)).flat()) running.set(claim.runId, claim)
      const keys = await Promise.all(
        [...running.keys()].map(async (id) => (await domain.runs.get(claimAccount(running), id))?.concurrencyKey),
      )
      for (const key of ['key-0', 'key-1'])
        expect(keys.filter((each) => each === key).length).toBeLessThanOrEqual(limit)
      expect(running.size).toBeGreaterThan(0)
      const [first] = running.values()
      await end(other, first)
      running.delete((first as Claim).runId)
      finished.push((first as Claim).runId)
      await domain.maintenance.once()
    }
    expect(new Set(finished).size).toBe(12)
  })

  test('a lost worker counts until its lease expires; then the next run of the key starts', async (test) => {
    const { clock, domain, queue, get } = await open(test, kind)
    const [lost, next] = [await queue('a'), await queue('a')]
    await claimAll(domain.queue, domain)
    expect(await claimAll(domain.queue, domain)).toEqual([])
    clock.advance(leaseSeconds + 1)
    await domain.maintenance.once()
    expect(await get(lost)).toMatchObject({ status: 'queued', reason: 'workerLost' })
    expect(await claimAll(domain.queue, domain)).toHaveLength(1)
    expect(await get(next)).toMatchObject({ waitingFor: 'concurrencyLimit' })
  })

  test('the next run starts although the one that was to start before it was cancelled', async (test) => {
    const { domain, accountId, queue } = await open(test, kind)
    const [first, second, third] = [await queue('a'), await queue('a'), await queue('a')]
    const [claim] = await claimAll(domain.queue, domain)
    await claimAll(domain.queue, domain)
    expect(claim?.runId).toBe(first)
    await end(domain, claim)
    await domain.runs.cancel(accountId, second)
    await domain.maintenance.once()
    expect(idsOf(await claimAll(domain.queue, domain))).toEqual([third])
  })

  test.for(['cancelled', 'expired'])(
    'while others run, a run starts although the one before it is %s',
    async (status, test) => {
      const { clock, domain, accountId, queue, get } = await open(test, kind, [perKey(2)])
      await queue('a')
      await queue('a')
      const next = await queue('a', status === 'expired' ? { expiresInSeconds: 5 } : {})
      const last = await queue('a')
      const claims = await claimAll(domain.queue, domain)
      expect(await claimAll(domain.queue, domain)).toEqual([])
      await end(domain, claims[0])
      clock.set((await get(next))?.expiresAt ?? clock.now())
      if (status === 'cancelled') await domain.runs.cancel(accountId, next)
      await domain.maintenance.once()
      expect(await get(next)).toMatchObject({ status })
      expect(idsOf(await claimAll(domain.queue, domain))).toEqual([last])
    },
  )

  test('after a deployment that removes the limit, waiting runs start beside each other', async (test) => {
    const { domain, queue } = await open(test, kind)
    for (let run = 0; run < 5; run += 1) await queue('a')
    const [claim] = await claimAll(domain.queue, domain)
    expect(await claimAll(domain.queue, domain)).toEqual([])
    await end(domain, claim)
    const started: Claim[] = []
    for (let round = 0; round < 5; round += 1) {
      started.push(...(await domain.queue.claim('worker', claimableOf([workflow()]), 10, leaseSeconds)))
    }
    expect(started).toHaveLength(4)
  })

  test('a run that waits for its browser context holds up no other run of its key', async (test) => {
    const { domain, accountId, queue } = await open(test, kind, [
      workflow({ usesBrowser: true, concurrency: { limit: 2, per: 'key' } }),
    ])
    const context = await domain.browserContexts.create(accountId, undefined)
    const onContext = { browserContextId: context?.id ?? '' }
    for (const key of ['a', 'a']) await queue(key)
    const running = await claimAll(domain.queue, domain)
    const onSameContext = await queue('a', { ...onContext, priority: 1 })
    const last = await queue('a')
    expect(await claimAll(domain.queue, domain)).toEqual([])
    const holder = await queue('b', onContext)
    expect(idsOf(await claimAll(domain.queue, domain))).toEqual([holder])
    await end(domain, running[0])
    expect(idsOf(await claimAll(domain.queue, domain))).toEqual([last])
    expect(await domain.runs.get(accountId, onSameContext)).toMatchObject({ waitingFor: 'browserContext' })
  })

  test('a run that waits for its key holds up no other run of its browser context', async (test) => {
    const { domain, accountId, queue } = await open(test, kind, [
      workflow({ usesBrowser: true, concurrency: { limit: 1, per: 'key' } }),
    ])
    const context = await domain.browserContexts.create(accountId, undefined)
    const onContext = { browserContextId: context?.id ?? '' }
    const claim = async () => [...(await claimAll(domain.queue, domain)), ...(await claimAll(domain.queue, domain))]
    const [holder, ofKey] = [await queue('a', onContext), await queue('b')]
    const running = await claim()
    expect(idsOf(running).sort()).toEqual([holder, ofKey].sort())
    const onBoth = await queue('b', onContext)
    const last = await queue('c', onContext)
    expect(await claim()).toEqual([])
    // The run waits for its context after its key, and another run of the key starts meanwhile.
    const next = await queue('b')
    await end(
      domain,
      running.find(({ runId }) => runId === ofKey),
    )
    expect(idsOf(await claim())).toEqual([next])
    await end(
      domain,
      running.find(({ runId }) => runId === holder),
    )
    expect(idsOf(await claim())).toEqual([last])
    expect(await domain.runs.get(accountId, onBoth)).toMatchObject({ status: 'queued' })
  })

  test('after a deployment that raises the limit, waiting runs start up to it', async (test) => {
    const { domain, queue } = await open(test, kind)
    for (let run = 0; run < 5; run += 1) await queue('a')
    const [claim] = await claimAll(domain.queue, domain)
    await claimAll(domain.queue, domain)
    await end(domain, claim)
    const raised = () => domain.queue.claim('worker', claimableOf([perKey(3)]), 10, leaseSeconds)
    expect(await raised()).toHaveLength(3)
  })

  test('after a deployment that raises the limit, waiting runs start although none of their key ends', async (test) => {
    const { domain, queue } = await open(test, kind)
    for (let run = 0; run < 5; run += 1) await queue('a')
    expect(await claimAll(domain.queue, domain)).toHaveLength(1)
    const raised = await openDomain(test, { kind, workflows: [perKey(3)], location: domain.location })
    await raised.maintenance.once()
    expect(await claimAll(raised.queue, raised)).toHaveLength(2)
  })

  test('a run that waits although its key has a free place starts while others of the key run', async (test) => {
    const { domain, queue } = await open(test, kind, [perKey(2)])
    const [, , last] = [await queue('a'), await queue('a'), await queue('a')]
    const [first] = await claimAll(domain.queue, domain)
    await end(domain, first)
    // On PostgreSQL, a claim can put a run aside whose counterpart ends in a transaction that is not committed yet.
    await domain.store.write((tx) => tx.all(tx.statements.waitForGroup, [last as string]))
    expect(await claimAll(domain.queue, domain)).toEqual([])
    await domain.maintenance.once()
    expect(idsOf(await claimAll(domain.queue, domain))).toEqual([last])
  })

  test('a key is refused for a workflow without a limit per key, and belongs to the request', async (test) => {
    const { domain, principal } = await open(test, kind, [perKey(1), workflow({ id: 'other' })])
    const queueWith = (changes: object) =>
      domain.runs.queue(principal, { ...request, idempotencyKey: 'once', ...changes })
    expect(await queueWith({ workflowId: 'other', concurrencyKey: 'a' })).toEqual({ kind: 'usesNoConcurrencyKey' })
    expect(await queueWith({ concurrencyKey: 'a' })).toMatchObject({ kind: 'queued', replayed: false })
    expect(await queueWith({ concurrencyKey: 'a' })).toMatchObject({ kind: 'queued', replayed: true })
    expect(await queueWith({ concurrencyKey: 'b' })).toEqual({ kind: 'idempotencyConflict' })
  })

  test('a place in the queue counts runs of a higher priority, and earlier ones of the same', async (test) => {
    const { queue, get } = await open(test, kind, [workflow()])
    const [one, two, three] = [await queue(), await queue(undefined, { priority: 5 }), await queue()]
    const places = await Promise.all([one, two, three].map(async (id) => (await get(id))?.queuePosition))
    expect(places).toEqual([2, 1, 3])
    const delayed = await queue(undefined, { delaySeconds: 60 })
    expect((await get(delayed))?.queuePosition).toBeUndefined()
  })
})

function claimAccount(running: ReadonlyMap<string, Claim>): string {
  return [...running.values()][0]?.accountId ?? ''
}
