/** Metrics over all accounts: how many runs wait and for how long, and notifications about finished runs and commits. */
import { describe, expect, test } from 'vitest'
import type { FinishedRun, RunObserver } from '../../../src/domain/runs/run-state.ts'
import { lossesMax } from '../../../src/domain/runs/run-state.ts'
import { queueDepth } from '../../../src/domain/statistics/queue-depth.ts'
import type { Commit, Transaction } from '../../../src/storage/store.ts'
import { claimOne, createManualClock, failedAttempt, leaseSeconds, noRetry } from '../../support/claims.ts'
import { newAccount, openDomain, queueRun, type Test, workflow } from '../../support/domain.ts'
import { sqlText } from '../../support/run-rows.ts'
import { type StoreKind, sqlite, stores } from '../../support/store-kinds.ts'

const unlimited = {
  ofWorkflow: (_run: { workflow_id: string }) => Number.POSITIVE_INFINITY,
  ofAccount: Number.POSITIVE_INFINITY,
}
const workflows = [workflow(), workflow({ id: 'other' })]

async function openAt(test: Test, kind: StoreKind, observer?: RunObserver) {
  const clock = createManualClock()
  const domain = await openDomain(test, { kind, workflows, now: clock.now, ...(observer && { observer }) })
  const [{ principal }, theirs] = [await newAccount(domain), await newAccount(domain)]
  return { clock, domain, principal, theirs: theirs.principal }
}

/** A domain that reports to an observer. */
async function openObserved(test: Test, kind: StoreKind) {
  const finished: FinishedRun[] = []
  let expired = 0
  const observer: RunObserver = {
    finished: (run) => void finished.push(run),
    leasesExpired: (count) => {
      expired += count
    },
  }
  return { ...(await openAt(test, kind, observer)), finished, expired: () => expired }
}

describe.each(stores)('the queue depth ($name)', (kind) => {
  test('counts runs of all accounts by workflow and what they wait for', async (test) => {
    const { domain, principal, theirs } = await openAt(test, kind)
    await queueRun(domain, principal)
    await claimOne(domain)
    await queueRun(domain, principal)
    await queueRun(domain, theirs)
    await queueRun(domain, theirs, { workflowId: 'other' })
    await queueRun(domain, theirs, { delaySeconds: 60 })
    const { id } = await queueRun(domain, principal)
    await domain.store.write(({ query }) =>
      query.updateTable('runs').set({ waiting_for: 'browserContext' }).where('id', '=', id).execute(),
    )
    const { waiting, running } = await queueDepth(domain.store.read, unlimited)
    const sorted = waiting.map((each) => `${each.workflowId} ${each.waitingFor} ${each.count}`).sort()
    expect(sorted).toEqual(['anything browserContext 1', 'anything delay 1', 'anything worker 2', 'other worker 1'])
    expect(running).toEqual([{ workflowId: 'anything', count: 1 }])
  })

  test('counts ready runs at a concurrency limit apart from those that wait for a worker', async (test) => {
    const { domain, principal, theirs } = await openAt(test, kind)
    await queueRun(domain, principal, { priority: 1 })
    await claimOne(domain)
    await queueRun(domain, principal, { workflowId: 'other' })
    await queueRun(domain, theirs)
    const waitingFor = async (limits: Partial<typeof unlimited>) => {
      const { waiting } = await queueDepth(domain.store.read, { ...unlimited, ...limits })
      return Object.fromEntries(waiting.map((each) => [each.workflowId, each.waitingFor]))
    }
    const ofWorkflow = ({ workflow_id }: { workflow_id: string }) =>
      workflow_id === 'anything' ? 1 : Number.POSITIVE_INFINITY
    expect(await waitingFor({})).toEqual({ anything: 'worker', other: 'worker' })
    expect(await waitingFor({ ofWorkflow })).toEqual({ anything: 'concurrencyLimit', other: 'worker' })
    expect(await waitingFor({ ofAccount: 1 })).toEqual({ anything: 'worker', other: 'concurrencyLimit' })
  })

  test('has the time since which the oldest run is available, after a delay or a return to the queue', async (test) => {
    const { clock, domain, principal } = await openAt(test, kind)
    const oldest = async () => {
      const { oldest } = await queueDepth(domain.store.read, unlimited)
      return oldest.find(({ workflowId }) => workflowId === 'anything')?.since
    }
    expect(await oldest()).toBeUndefined()
    const { createdAt } = await queueRun(domain, principal, { delaySeconds: 60 })
    expect(await oldest()).toBeUndefined()
    clock.set(createdAt + 60_000)
    await domain.maintenance.once()
    expect(await oldest()).toBe(createdAt + 60_000)
    const claim = await claimOne(domain)
    expect(claim.availableAt).toBe(createdAt + 60_000)
    expect(await oldest()).toBeUndefined()
    clock.advance(5)
    await domain.queue.complete(claim, { kind: 'workerStopped' }, noRetry)
    expect(await oldest()).toBe(clock.now())
  })
})

test('the queue depth is read from partial indexes alone (sqlite)', async (test) => {
  const { domain, principal } = await openAt(test, sqlite)
  await queueRun(domain, principal)
  const { read } = domain.store
  const scans: string[] = []
  const all: Transaction['all'] = async (sql, values) => {
    const plan = await read.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sqlText(sql)}`, values)
    scans.push(...plan.map(({ detail }) => detail).filter((detail) => detail.startsWith('SCAN')))
    return read.all(sql, values)
  }
  await queueDepth({ ...read, all }, unlimited)
  const waiting = ['waiting_for_group', 'waiting_for_context', 'waiting']
  const indexes = ['ready', 'leased', 'delayed', ...waiting]
  expect(scans).toEqual(indexes.map((index) => `SCAN runs USING COVERING INDEX runs_${index}`))
})

describe.each(stores)('the observer of runs ($name)', (kind) => {
  test('gets each finished run once, with its reason and the time since its first start', async (test) => {
    const { clock, domain, principal, finished } = await openObserved(test, kind)
    await queueRun(domain, principal)
    const first = await claimOne(domain)
    clock.advance(2)
    await domain.queue.complete(first, failedAttempt, { maxAttempts: 2, backoffSeconds: 0, backoffFactor: 1 })
    expect(finished).toEqual([])
    const second = await claimOne(domain)
    clock.advance(3)
    await domain.queue.complete(second, { kind: 'succeeded', output: null }, noRetry)
    await domain.queue.complete(second, { kind: 'succeeded', output: null }, noRetry)
    expect(finished).toEqual([{ workflowId: 'anything', status: 'succeeded', reason: null, seconds: 5 }])
  })

  test('gets runs that were cancelled or expired before they started', async (test) => {
    const { clock, domain, principal, finished } = await openObserved(test, kind)
    const { id } = await queueRun(domain, principal)
    await domain.runs.cancel(principal.accountId, id)
    await domain.runs.cancel(principal.accountId, id)
    const { expiresAt } = await queueRun(domain, principal, { expiresInSeconds: 10 })
    clock.set(expiresAt)
    await domain.maintenance.once()
    await domain.maintenance.once()
    const ended = { workflowId: 'anything', seconds: undefined }
    expect(finished).toEqual([
      { ...ended, status: 'cancelled', reason: 'cancelRequested' },
      { ...ended, status: 'expired', reason: 'notStartedInTime' },
    ])
  })

  test('gets expired leases, and the run that fails by them', async (test) => {
    const { clock, domain, principal, finished, expired } = await openObserved(test, kind)
    await queueRun(domain, principal)
    for (let loss = 1; loss <= lossesMax; loss += 1) {
      await claimOne(domain)
      clock.advance(leaseSeconds + 1)
      await domain.maintenance.once()
      expect(expired()).toBe(loss)
    }
    const seconds = lossesMax * (leaseSeconds + 1)
    expect(finished).toEqual([{ workflowId: 'anything', status: 'failed', reason: 'workerLost', seconds }])
  })
})

describe.each(stores)('the observer of commits ($name)', (kind) => {
  test('gets each durable transaction and the number of writes in it', async (test) => {
    const { domain } = await openAt(test, kind)
    const commits: Commit[] = []
    domain.store.observe((commit) => commits.push(commit))
    const write = () => domain.store.write(({ query }) => query.selectFrom('runs').select('id').execute())
    await Promise.all([write(), write(), write()])
    expect(commits.reduce((sum, { writes }) => sum + writes, 0)).toBe(3)
    expect(commits.every(({ seconds, unavailable }) => seconds > 0 && !unavailable)).toBe(true)
    await expect(domain.store.write(() => Promise.reject(new Error('No.')))).rejects.toThrow('No.')
    expect(commits.reduce((sum, { writes }) => sum + writes, 0)).toBe(3)
  })
})
