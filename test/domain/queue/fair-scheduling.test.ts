/** Fair scheduling: what an account can rely on, whatever other accounts have queued. */
import { v7 as uuid } from 'uuid'
import { describe, expect, test } from 'vitest'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import { Deployments } from '../../../src/domain/deployments/deployments.ts'
import type { Claim } from '../../../src/domain/queue/attempts.ts'
import type { OwnAttempts } from '../../../src/domain/queue/claim.ts'
import { insertRuns, type NewRun } from '../../../src/domain/queue/enqueue-batcher.ts'
import { claimAll, claimableOf, claimOne, leaseSeconds, noRetry } from '../../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, type Test, workflow } from '../../support/domain.ts'
import { newRunRow } from '../../support/run-rows.ts'
import { writtenSnapshot } from '../../support/snapshots.ts'
import { stores } from '../../support/store-kinds.ts'

/** With two accounts that have a run of each, more queue heads than one snapshot has. */
const otherWorkflows = Array.from({ length: 300 }, (_, index) => workflow({ id: `other-${index}` }))

const knowsNothing: OwnAttempts = { ended: () => [], withinQuantum: () => [], keeping: () => [], endQuantum: () => {} }

const succeeded = { kind: 'succeeded', output: null } as const

async function flood(domain: Domain, runs: number, changes = {}) {
  const account = await newAccount(domain)
  await Promise.all(Array.from({ length: runs }, () => queueRun(domain, account.principal, changes)))
  return account
}

const accountsOf = (claims: readonly Claim[]) => claims.map(({ accountId }) => accountId)

describe.each(stores)('fair scheduling ($name)', (kind) => {
  /** With n accounts that have ready runs, the first run of an account is among the next n claims. */
  test('starts the first run of an account within as many claims as there are accounts', async (test) => {
    const domain = await openDomain(test, { kind })
    const floods = [await flood(domain, 300, { priority: 10 }), await flood(domain, 100)]
    for (let count = 0; count < 10; count += 1) await domain.queue.complete(await claimOne(domain), succeeded, noRetry)
    const late = await newAccount(domain)
    const run = await queueRun(domain, late.principal, { priority: -10 })
    const started: Claim[] = []
    while (!started.some(({ runId }) => runId === run.id)) {
      const claim = await claimOne(domain)
      started.push(claim)
      await domain.queue.complete(claim, succeeded, noRetry)
    }
    expect(started.length).toBeLessThanOrEqual(floods.length + 1)
  })

  test('gives each account the same share of the slots', async (test) => {
    const domain = await openDomain(test, { kind })
    const accounts = [await flood(domain, 50), await flood(domain, 50), await flood(domain, 50)]
    const claims = [...(await claimAll(domain.queue, domain, 4)), ...(await claimAll(domain.queue, domain, 5))]
    for (const { accountId } of accounts)
      expect(accountsOf(claims).filter((each) => each === accountId)).toHaveLength(3)
  })

  test('compares the first runs of the workflows of an account by priority and by the minutes they have waited', async (test) => {
    const start = Date.now()
    const clock = { now: start }
    const workflows = [workflow({ id: 'urgent' }), workflow({ id: 'plain' })]
    const domain = await openDomain(test, { kind, workflows, now: () => clock.now })
    const { principal } = await newAccount(domain)
    const { accountId } = principal
    // By id, since ids of a process never go back in time.
    const queueAt = async (at: number, changes: Partial<NewRun>) => {
      const run = newRunRow(accountId, { id: uuid({ msecs: start + at }), ...changes })
      await domain.store.write((tx) => insertRuns(tx, [run]))
      return run.id
    }
    const names = new Map([
      [await queueAt(0, { workflow_id: 'plain' }), 'plain'],
      [await queueAt(30_000, { workflow_id: 'urgent', priority: 1 }), 'urgent, after half a minute'],
      [await queueAt(90_000, { workflow_id: 'urgent', priority: 1 }), 'urgent, after a minute and a half'],
      [await queueAt(100_000, { workflow_id: 'plain', priority: -10 }), 'plain, of the lowest priority'],
    ])
    clock.now = start + 120_000
    const started: (string | undefined)[] = []
    for (let count = 0; count < 4; count += 1) {
      const [claim] = await claimAll(domain.queue, domain, 1)
      started.push(names.get(claim?.runId ?? ''))
    }
    expect(started).toEqual([
      'urgent, after half a minute',
      'plain',
      'urgent, after a minute and a half',
      'plain, of the lowest priority',
    ])
  })

  describe('by what a worker knows', () => {
    /** Two accounts: one has three runs that are running and four that wait, the other four that wait. */
    async function openTwo(test: Test) {
      const clock = { now: Date.now() }
      const domain = await openDomain(test, { kind, now: () => clock.now })
      const busy = await flood(domain, 3)
      const claimed = await claimAll(domain.queue, domain, 3)
      for (let count = 0; count < 4; count += 1) await queueRun(domain, busy.principal)
      const other = await flood(domain, 4)
      const claim = (own: Partial<OwnAttempts>) => {
        const known = { ...knowsNothing, ...own }
        return domain.queue.claim('worker', claimableOf(domain.workflows), 1, leaseSeconds, known)
      }
      return { domain, clock, busy, other, claimed, claim }
    }

    test('an account keeps a process during its quantum, unless another account has no running run', async (test) => {
      const { busy, other, claim } = await openTwo(test)
      const withinQuantum = () => [busy.accountId]
      expect(accountsOf(await claim({ withinQuantum }))).toEqual([other.accountId])
      expect(accountsOf(await claim({ withinQuantum }))).toEqual([busy.accountId])
      expect(accountsOf(await claim({}))).toEqual([other.accountId])
    })

    test('a quantum lasts when the only run of another account has just ended, and for 100 ms at most', async (test) => {
      const { domain, clock, busy, other, claim } = await openTwo(test)
      const withinQuantum = () => [busy.accountId]
      const [claimed] = await claim({ withinQuantum })
      if (claimed?.accountId !== other.accountId) throw new Error('The other account has no running run.')
      expect(accountsOf(await claim({ withinQuantum }))).toEqual([busy.accountId])
      await domain.queue.complete(claimed, succeeded, noRetry)
      clock.now += 99
      expect(accountsOf(await claim({ withinQuantum }))).toEqual([busy.accountId])
      clock.now += 1
      expect(accountsOf(await claim({ withinQuantum }))).toEqual([other.accountId])
    })

    test('an account without running runs goes before one within its quantum, also if another with runs is next', async (test) => {
      const { domain, busy, other, claim } = await openTwo(test)
      const withinQuantum = () => [busy.accountId]
      expect(accountsOf([...(await claim({ withinQuantum })), ...(await claim({ withinQuantum }))])).toEqual([
        other.accountId,
        busy.accountId,
      ])
      const newcomer = await flood(domain, 1)
      // The only run of the other account has ended, so that it has as many running runs as the newcomer.
      expect(accountsOf(await claim({ withinQuantum, ended: () => [other.accountId] }))).toEqual([newcomer.accountId])
    })

    test('an account within its quantum is among those that a claim chooses from', async (test) => {
      const domain = await openDomain(test, { kind })
      const accounts: string[] = []
      for (let count = 0; count < 4; count += 1) accounts.push((await flood(domain, 5)).accountId)
      await claimAll(domain.queue, domain, 4)
      const own = { ...knowsNothing, withinQuantum: () => accounts.slice(0, 1) }
      const claimed: Claim[] = []
      while (claimed.length < 4) {
        claimed.push(...(await domain.queue.claim('worker', claimableOf(domain.workflows), 1, leaseSeconds, own)))
      }
      expect(new Set(accountsOf(claimed))).toEqual(new Set(own.withinQuantum()))
    })

    test('an account keeps its only process while others wait, also if they are next in the rotation', async (test) => {
      const domain = await openDomain(test, { kind })
      const accounts: string[] = []
      for (let count = 0; count < 12; count += 1) accounts.push((await flood(domain, 3)).accountId)
      const claimNext = (own: Partial<OwnAttempts>) =>
        domain.queue.claim('worker', claimableOf(domain.workflows), 1, leaseSeconds, { ...knowsNothing, ...own })
      const [first] = await claimNext({})
      if (!first) throw new Error('No run was claimed.')
      const kept = first.accountId
      const own = { keeping: () => [kept], ended: () => [kept] }
      const [second] = await claimNext(own)
      expect(second?.accountId).toBe(kept)
      expect(accountsOf(await claimNext({ keeping: () => [kept] })), 'it has two attempts').not.toEqual([kept])
      // The rotation went on from the first account, wherever the kept one is.
      const order = accounts.toSorted()
      const next = await claimNext({ keeping: () => [], ended: () => [kept] })
      expect(accountsOf(next)).toEqual([order[(order.indexOf(kept) + 2) % order.length]])
    })

    test('an account without a ready run keeps no process', async (test) => {
      const domain = await openDomain(test, { kind })
      const { accountId } = await flood(domain, 1)
      for (let count = 0; count < 12; count += 1) await flood(domain, 2)
      const ended: string[] = []
      const own = { ...knowsNothing, keeping: () => [accountId], endQuantum: (id: string) => void ended.push(id) }
      const claimNext = () => domain.queue.claim('worker', claimableOf(domain.workflows), 1, leaseSeconds, own)
      expect(accountsOf(await claimNext())).toEqual([accountId])
      expect(ended).toEqual([])
      expect(accountsOf(await claimNext())).not.toEqual([accountId])
      expect(new Set(ended)).toEqual(new Set([accountId]))
    })

    test('attempts that have ended no longer count as running', async (test) => {
      const { busy, other, claimed, claim } = await openTwo(test)
      expect(accountsOf(await claim({}))).toEqual([other.accountId])
      expect(accountsOf(await claim({ ended: () => accountsOf(claimed) }))).toEqual([busy.accountId])
    })

    test('a process serves one run at a time', async (test) => {
      const { domain, busy, other, claim } = await openTwo(test)
      await claim({})
      const own = { ...knowsNothing, withinQuantum: () => [busy.accountId] }
      const claims = await domain.queue.claim('worker', claimableOf(domain.workflows), 2, leaseSeconds, own)
      expect(accountsOf(claims).toSorted()).toEqual([busy.accountId, other.accountId].toSorted())
    })
  })

  test('skips an account whose runs all wait for a concurrency limit', async (test) => {
    const workflows = [workflow({ id: 'limited', concurrency: { limit: 1, per: 'workflow' } }), workflow()]
    const domain = await openDomain(test, { kind, workflows })
    const limited = await flood(domain, 20, { workflowId: 'limited' })
    const other = await flood(domain, 3)
    const claims = await claimAll(domain.queue, domain, 10)
    expect(accountsOf(claims).filter((each) => each === limited.accountId)).toHaveLength(1)
    expect(accountsOf(claims).filter((each) => each === other.accountId)).toHaveLength(3)
  })

  test('counts the runs of a workflow that an account has deployed for itself apart from others of the same id', async (test) => {
    const snapshot = writtenSnapshot({ limited: { module: '', concurrency: { limit: 1, per: 'workflow' } } })
    const domain = await openDomain(test, { kind, snapshot })
    const [shared, other, own] = [await newAccount(domain), await newAccount(domain), await newAccount(domain)]
    const deployments = await new Deployments(domain.store).open()
    test.onTestFinished(() => deployments.close())
    await deployments.deploy(snapshot, { accountId: own.accountId, by: operator, directory: '/' })
    for (const { principal } of [shared, shared, other, own, own]) {
      await queueRun(domain, principal, { workflowId: 'limited' })
    }
    const claims = await domain.queue.claim('worker', deployments.claimable(), 10, leaseSeconds)
    expect(accountsOf(claims).filter((each) => each === own.accountId)).toHaveLength(1)
    expect(accountsOf(claims).filter((each) => each !== own.accountId)).toHaveLength(1)
    expect(await domain.queue.claim('worker', deployments.claimable(), 10, leaseSeconds)).toEqual([])
  })

  test('never exceeds the concurrency limit of an account in two processes, and shows it as waitingFor', async (test) => {
    const accountConcurrency = 2
    const domain = await openDomain(test, { kind, accountConcurrency })
    const other = await openDomain(test, { kind, accountConcurrency, location: domain.location })
    const [one, two] = [await flood(domain, 8), await flood(domain, 8)]
    for (let finished = 0; finished < 16; ) {
      const claiming = Array.from({ length: 6 }, (_, index) => claimAll((index % 2 ? domain : other).queue, domain, 3))
      const claims = (await Promise.all(claiming)).flat()
      for (const { accountId } of [one, two]) {
        expect(accountsOf(claims).filter((each) => each === accountId)).toHaveLength(accountConcurrency)
      }
      if (finished === 0) {
        const listed = await domain.runs.list(one.accountId, { limit: 10, status: 'queued' })
        expect(listed?.runs.map(({ waitingFor }) => waitingFor)).toEqual(Array(6).fill('concurrencyLimit'))
      }
      for (const claim of claims) await other.queue.complete(claim, succeeded, noRetry)
      finished += claims.length
    }
  })

  test('finds runs behind hundreds of queue heads that this worker cannot run', async (test) => {
    // Sorts after the others, so that the first snapshot ends before it.
    const own = workflow({ id: 'own' })
    const domain = await openDomain(test, { kind, workflows: [own, ...otherWorkflows] })
    const [first, second] = [await newAccount(domain), await newAccount(domain)]
    for (const { principal } of [first, second]) {
      await Promise.all(otherWorkflows.map(({ id }) => queueRun(domain, principal, { workflowId: id })))
    }
    const last = await newAccount(domain)
    const behind = await queueRun(domain, last.principal, { workflowId: 'own' })
    // In the account that the first snapshot cuts off.
    const within = await queueRun(domain, second.principal, { workflowId: 'own' })
    const claims = await domain.queue.claim('worker', claimableOf([own]), 10, leaseSeconds)
    expect(claims.map(({ runId }) => runId).sort()).toEqual([behind.id, within.id].sort())
  })
})
