/** Rates: how many runs of a workflow start within a period, per key, account or workflow. */
import { describe, expect, test } from 'vitest'
import type { Claim } from '../../../src/domain/queue/attempts.ts'
import type { Workflow } from '../../../src/domain/workflows/workflow.ts'
import { claimAll, claimableOf, createManualClock, failedAttempt, leaseSeconds, noRetry } from '../../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, type Test, workflow } from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const throttled = (limit: number, per: 'key' | 'account' | 'workflow', more: Partial<Workflow> = {}) =>
  workflow({ throttle: { limit, periodSeconds: 60, per }, ...more })
const succeeded = { kind: 'succeeded', output: null } as const

async function open(test: Test, kind: StoreKind, workflows = [throttled(2, 'key')]) {
  const clock = createManualClock()
  const domain = await openDomain(test, { kind, workflows, now: clock.now })
  const { accountId, principal } = await newAccount(domain)
  const queue = async (concurrencyKey?: string, more = {}) =>
    (await queueRun(domain, principal, { concurrencyKey, ...more })).id
  const get = (id: string) => domain.runs.getWithWaiting(accountId, id)
  /** Claims runs and completes them, since leases expire within the period. */
  const claim = async () => {
    const claims = await claimAll(domain.queue, domain)
    for (const each of claims) await end(domain, each)
    return idsOf(claims)
  }
  return { clock, domain, accountId, principal, queue, get, claim }
}

const idsOf = (claims: readonly Claim[]) => claims.map(({ runId }) => runId).sort()
const end = ({ queue }: Domain, claim: Claim | undefined) => queue.complete(claim as Claim, succeeded, noRetry)

describe.each(stores)('throttles ($name)', (kind) => {
  test('runs of a key above its rate wait until its period permits them, and delay no other key', async (test) => {
    const { clock, domain, queue, get, claim } = await open(test, kind)
    const a = [await queue('a'), await queue('a'), await queue('a'), await queue('a'), await queue('a')]
    const b = await queue('b')
    expect(await claim()).toEqual([...a.slice(0, 2), b].sort())
    const until = new Date(clock.now() + 60_000).toISOString()
    expect(await get(a[2] as string)).toMatchObject({
      waitingFor: 'throttle',
      waitingForDetail: {
        kind: 'throttle',
        message: `This workflow starts at most 2 runs in 60 s for each concurrency key. The next one starts at ${until}.`,
      },
      queuePosition: 1,
    })
    clock.advance(59.9)
    await domain.maintenance.once()
    expect(await claim()).toEqual([])
    clock.advance(0.1)
    await domain.maintenance.once()
    expect(await claim()).toEqual(a.slice(2, 4))
    await domain.maintenance.once()
    expect(await claim()).toEqual([])
    clock.advance(60)
    await domain.maintenance.once()
    expect(await claim()).toEqual([a[4]])
  })

  test.for(['account', 'workflow'] as const)('a rate per %s counts its starts only', async (per, test) => {
    const { clock, domain, queue, get, claim } = await open(test, kind, [throttled(2, per), workflow({ id: 'other' })])
    const mine = [await queue(), await queue(), await queue()]
    const other = await queue(undefined, { workflowId: 'other' })
    const theirs = (await queueRun(domain, (await newAccount(domain)).principal)).id
    const started = await claim()
    expect(started).toContain(other)
    expect(started.filter((id) => mine.includes(id))).toHaveLength(
      per === 'account' ? 2 : started.includes(theirs) ? 1 : 2,
    )
    expect(started).toHaveLength(per === 'account' ? 4 : 3)
    const scope = per === 'account' ? ' in this account' : ''
    const detail = `This workflow starts at most 2 runs in 60 s${scope}. The next one starts at `
    expect(await get(mine[2] as string)).toMatchObject({ waitingFor: 'throttle' })
    expect((await get(mine[2] as string))?.waitingForDetail?.message).toContain(detail)
    // The runs are ready: they start in the millisecond that permits it, without maintenance.
    clock.advance(60)
    expect(await claim()).toHaveLength(per === 'account' ? 1 : 2)
  })

  test('no period has more starts than the rate allows, whenever they were', async (test) => {
    const { clock, domain, queue } = await open(test, kind, [throttled(3, 'key')])
    for (let run = 0; run < 12; run += 1) await queue('a')
    const starts: number[] = []
    while (starts.length < 12) {
      for (const claim of await claimAll(domain.queue, domain, starts.length % 2 ? 1 : 2)) {
        starts.push(clock.now())
        await end(domain, claim)
      }
      clock.advance(7)
      await domain.maintenance.once()
    }
    for (const [index, at] of starts.entries()) {
      const inPeriod = starts.slice(0, index + 1).filter((each) => each > at - 60_000)
      expect(inPeriod.length).toBeLessThanOrEqual(3)
    }
  })

  test('many workers in two processes never exceed a rate together, and every run starts once', async (test) => {
    const { clock, domain, queue } = await open(test, kind)
    const other = await openDomain(test, {
      kind,
      workflows: [throttled(2, 'key')],
      location: domain.location,
      now: clock.now,
    })
    for (let run = 0; run < 12; run += 1) await queue(`key-${run % 2}`)
    const started: string[] = []
    for (let period = 0; period < 3; period += 1) {
      const claiming = Array.from({ length: 6 }, (_, index) => claimAll((index % 2 ? domain : other).queue, domain, 2))
      const claims = (await Promise.all(claiming)).flat()
      expect(claims).toHaveLength(4)
      started.push(...idsOf(claims))
      for (const claim of claims) await end(domain, claim)
      clock.advance(60)
      await domain.maintenance.once()
      await other.maintenance.once()
    }
    expect(new Set(started).size).toBe(12)
  })

  test('each attempt counts as a start, and the end of a run lets no other start before its time', async (test) => {
    const { clock, domain, queue, claim } = await open(test, kind, [throttled(1, 'key')])
    const [first, second] = [await queue('a'), await queue('a')]
    const [claimed] = await claimAll(domain.queue, domain)
    expect(claimed?.runId).toBe(first)
    await domain.queue.complete(claimed as Claim, failedAttempt, {
      maxAttempts: 2,
      backoffSeconds: 0,
      backoffFactor: 1,
    })
    await domain.maintenance.once()
    expect(await claim()).toEqual([])
    clock.advance(60)
    await domain.maintenance.once()
    expect(await claim()).toEqual([first])
    clock.advance(60)
    await domain.maintenance.once()
    expect(await claim()).toEqual([second])
  })

  test('a limit and a rate per key apply together', async (test) => {
    const concurrency = { limit: 1, per: 'key' } as const
    const { clock, domain, queue, get } = await open(test, kind, [throttled(2, 'key', { concurrency })])
    const runs = [await queue('a'), await queue('a'), await queue('a')]
    const [first] = await claimAll(domain.queue, domain)
    expect(await claimAll(domain.queue, domain)).toEqual([])
    expect(await get(runs[1] as string)).toMatchObject({ waitingFor: 'concurrencyLimit' })
    await end(domain, first)
    const [second] = await claimAll(domain.queue, domain)
    await end(domain, second)
    expect(await claimAll(domain.queue, domain)).toEqual([])
    expect(await get(runs[2] as string)).toMatchObject({ waitingFor: 'throttle' })
    clock.advance(60)
    await domain.maintenance.once()
    expect(idsOf(await claimAll(domain.queue, domain))).toEqual([runs[2]])
  })

  test('after a deployment that raises the rate, waiting runs start at once', async (test) => {
    const { domain, queue } = await open(test, kind, [throttled(1, 'key')])
    for (let run = 0; run < 5; run += 1) await queue('a')
    expect(await claimAll(domain.queue, domain)).toHaveLength(1)
    const raised = await openDomain(test, { kind, workflows: [throttled(3, 'key')], location: domain.location })
    await raised.maintenance.once()
    expect(await raised.queue.claim('worker', claimableOf(raised.workflows), 10, leaseSeconds)).toHaveLength(2)
  })

  test('starts that count no more are purged', async (test) => {
    const { clock, domain, queue, claim } = await open(test, kind)
    await queue('a')
    await claim()
    const count = async () => (await domain.store.read.all('SELECT 1 AS one FROM throttle_starts', [])).length
    expect(await count()).toBe(1)
    clock.advance(60 + 3600)
    await domain.maintenance.once()
    expect(await count()).toBe(0)
  })
})
