/** A worker and its store: leases, the heartbeat, and writes that fail. */
import { writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test, vi } from 'vitest'
import type { Claim } from '../../src/domain/queue/attempts.ts'
import { Workers } from '../../src/domain/queue/workers.ts'
import { openSqliteStore } from '../../src/storage/sqlite/sqlite-store.ts'
import { type Store, StoreUnavailable, type Transaction } from '../../src/storage/store.ts'
import { newDirectory, queueRun } from '../support/domain.ts'
import { waitForProcessEnd } from '../support/processes.ts'
import { sqlText } from '../support/run-rows.ts'
import { writtenSnapshot } from '../support/snapshots.ts'
import { sqlite } from '../support/store-kinds.ts'
import { waitLimits } from '../support/timeouts.ts'
import { describeEvents, openInstallation, startWorker, waitForRun, waitForStart } from '../support/worker.ts'

describe.concurrent('a worker', () => {
  describe('with a lease', () => {
    test('renews it until the run ends', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      const leaseSeconds = 3
      await startWorker(test, domain, { leaseSeconds })
      const variables = { started: file('started'), until: file('until') }
      const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
      await waitForStart(variables.started)
      const end = Date.now() + 1.5 * leaseSeconds * 1000
      await vi.waitUntil(() => Date.now() > end, waitLimits)
      writeFileSync(variables.until, '')
      expect(await waitForRun(domain, run)).toMatchObject({ status: 'succeeded', attempts: 1 })
    })

    test('that is lost ends the attempt and reports nothing more', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      await startWorker(test, domain, { leaseSeconds: 3 })
      const variables = { started: file('started'), until: file('until'), how: 'blocking' }
      const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
      const pid = await waitForStart(variables.started)
      await vi.waitUntil(async () => (await describeEvents(domain, run)).includes('info: attempt 1 waits'), waitLimits)
      const otherLease = { worker_id: 'another', attempts: 2, lease_expires_at: Date.now() + 60_000 }
      await domain.store.write(({ query }) =>
        query.updateTable('runs').set(otherLease).where('id', '=', run.id).execute(),
      )
      await waitForProcessEnd(pid)
      expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status: 'running', attempts: 2 })
      expect(await describeEvents(domain, run)).toHaveLength(3)
    })

    test('that is not renewed while the outcome is stored is not lost', async (test) => {
      const { domain, principal } = await openInstallation(test)
      const { accountId } = principal
      const renewed = Promise.withResolvers<void>()
      test.onTestFinished(() => renewed.resolve())
      let runId: string | undefined
      let later = 0
      // Answers the commit of the outcome after commits of two renewals, each with a heartbeat.
      const write: Store['write'] = async (work, options) => {
        const done = await domain.store.write(work, options)
        if (later > 0 && ++later > 4) renewed.resolve()
        const run = runId === undefined || later > 0 ? undefined : await domain.runs.get(accountId, runId)
        if (run?.status !== 'succeeded' || later > 0) return done
        later = 1
        await renewed.promise
        return done
      }
      const { log } = await startWorker(test, { ...domain, store: { ...domain.store, write } }, { leaseSeconds: 3 })
      const run = await queueRun(domain, principal, { workflowId: 'talk' })
      runId = run.id
      await renewed.promise
      expect(await waitForRun(domain, run)).toMatchObject({ status: 'succeeded', attempts: 1 })
      expect(log.filter((line) => line.includes('lease lost'))).toEqual([])
    })

    test('that ends while the store does not respond stops the attempt, and the run is executed again', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      const respond = Promise.withResolvers<void>()
      test.onTestFinished(() => respond.resolve())
      let isSilent = false
      const write: Store['write'] = async (work, options) => {
        if (isSilent) await respond.promise
        return domain.store.write(work, options)
      }
      await startWorker(test, { ...domain, store: { ...domain.store, write } }, { leaseSeconds: 3 })
      const variables = { started: file('started'), until: file('until') }
      const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
      const pid = await waitForStart(variables.started)
      isSilent = true
      await waitForProcessEnd(pid)
      writeFileSync(variables.until, '')
      isSilent = false
      respond.resolve()
      expect(await waitForRun(domain, run)).toMatchObject({ status: 'succeeded', attempts: 2 })
    })
  })

  test('interrupts a run that is cancelled while its module is loaded', async (test) => {
    const gate = join(await newDirectory(test), 'gate')
    const module = `import { existsSync } from 'node:fs'
      while (!existsSync(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 5))
      export default { run: () => new Promise(() => setInterval(() => {}, 1000)) }`
    const { domain, principal } = await openInstallation(test, sqlite, writtenSnapshot({ slow: { module } }))
    // The worker would read cancellations again when it renews its leases, after 100 seconds.
    await startWorker(test, domain, { leaseSeconds: 300 })
    const { accountId } = principal
    const run = await queueRun(domain, principal, { workflowId: 'slow' })
    await vi.waitUntil(async () => (await domain.runs.get(accountId, run.id))?.status === 'running', waitLimits)
    await domain.runs.cancel(accountId, run.id, {})
    writeFileSync(gate, '')
    expect(await waitForRun(domain, run)).toMatchObject({ status: 'cancelled' })
  })

  test('leaves a run to others if its claim was committed but seemed to fail', async (test) => {
    const { domain, principal, file } = await openInstallation(test)
    const lost = new Set<string>()
    const write: Store['write'] = async (work, options) => {
      const done = await domain.store.write(work, options)
      const claims = (done as { claims?: Claim[] } | undefined)?.claims ?? []
      const [claim] = claims
      if (claim?.attempt !== 1 || claim.workflowId !== 'talk') return done
      lost.add(claim.runId)
      throw new StoreUnavailable('The connection was lost while the claim was committed.')
    }
    await startWorker(test, { ...domain, store: { ...domain.store, write } }, { leaseSeconds: 3, slots: 2 })
    const variables = { started: file('started'), until: file('until') }
    await queueRun(domain, principal, { workflowId: 'wait', variables })
    await waitForStart(variables.started)
    const run = await queueRun(domain, principal, { workflowId: 'talk' })
    expect(await waitForRun(domain, run)).toMatchObject({ status: 'succeeded', attempts: 2 })
    expect([...lost]).toEqual([run.id])
    writeFileSync(variables.until, '')
  })

  describe('counts as alive', () => {
    test('while it is idle, busy or stopping, until it has stopped', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      const workers = new Workers(domain.store)
      const leaseSeconds = 0.6
      const begun = Date.now()
      const { worker } = await startWorker(test, domain, { leaseSeconds, slots: 3 })
      await vi.waitUntil(async () => (await workers.alive()).length > 0, { ...waitLimits, interval: 1 })
      const [alive] = await workers.alive()
      expect(alive).toMatchObject({ host: hostname(), slots: 3 })
      expect(alive?.startedAt).toBeGreaterThanOrEqual(begun)
      const end = Date.now() + 3 * leaseSeconds * 1000
      await vi.waitUntil(async () => (await workers.alive()).length === 1 && Date.now() > end, waitLimits)
      const variables = { started: file('started'), until: file('until') }
      await queueRun(domain, principal, { workflowId: 'wait', variables })
      await waitForStart(variables.started)
      await vi.waitFor(async () => expect(await workers.alive()).toEqual([alive]), waitLimits)
      const stopped = worker.stop(10)
      // The worker stays alive while its attempt goes on.
      const later = Date.now() + 3 * leaseSeconds * 1000
      await vi.waitUntil(async () => (await workers.alive()).length === 1 && Date.now() > later, waitLimits)
      writeFileSync(variables.until, '')
      await stopped
      expect(await workers.alive()).toEqual([])
    })

    test('again once a failed heartbeat succeeds, and executes runs meanwhile', async (test) => {
      const { domain, principal } = await openInstallation(test)
      const workers = new Workers(domain.store)
      let refusals = 0
      const write: Store['write'] = (work) =>
        domain.store.write((tx) => {
          const all: Transaction['all'] = async (sql, values) => {
            if (!sqlText(sql).includes(' workers ') || refusals > 2) return tx.all(sql, values)
            refusals += 1
            throw new Error('No more workers fit in.')
          }
          return work({ ...tx, all })
        })
      const { fatal } = await startWorker(test, { ...domain, store: { ...domain.store, write } }, { leaseSeconds: 0.6 })
      const run = await queueRun(domain, principal, { workflowId: 'talk' })
      expect(await waitForRun(domain, run)).toMatchObject({ status: 'succeeded' })
      await vi.waitUntil(async () => (await workers.alive()).length === 1, waitLimits)
      expect(refusals).toBe(3)
      expect(fatal).toEqual([])
    })
  })

  test('retries storing an outcome until the store is available again', async (test) => {
    const shortLockWait = {
      ...sqlite,
      open: (location: string) =>
        openSqliteStore(location, { fallbackNotifyMilliseconds: 3_600_000, lockWaitMillisecondsMax: 20 }),
    }
    const { domain, principal, file } = await openInstallation(test, shortLockWait)
    let refused = 0
    const write: Store['write'] = (work) =>
      domain.store.write(work).catch((error) => {
        if (error instanceof StoreUnavailable) refused += 1
        throw error
      })
    await startWorker(test, { ...domain, store: { ...domain.store, write } })
    const variables = { started: file('started'), until: file('until') }
    const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
    await waitForStart(variables.started)
    await vi.waitUntil(async () => (await describeEvents(domain, run)).includes('info: attempt 1 waits'), waitLimits)
    const locking = new DatabaseSync(join(domain.location, 'service.db'))
    test.onTestFinished(() => locking.close())
    locking.exec('BEGIN IMMEDIATE')
    writeFileSync(variables.until, '')
    await vi.waitUntil(() => refused > 1, waitLimits)
    expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status: 'running' })
    locking.exec('ROLLBACK')
    expect(await waitForRun(domain, run)).toMatchObject({ status: 'succeeded', attempts: 1, output: { attempt: 1 } })
  })
})
