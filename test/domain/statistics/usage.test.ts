/** Usage by workflow and day: each attempt counts once, whatever ends it, and what is deleted stays counted. */
import { v7 as uuid } from 'uuid'
import { describe, expect, test } from 'vitest'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import { deleteRun } from '../../../src/domain/run-api/run-erasure.ts'
import { RunRollups } from '../../../src/domain/statistics/run-rollups.ts'
import { dayOf, RunUsage, rowsMax } from '../../../src/domain/statistics/usage-reports.ts'
import { retentionFrom } from '../../../src/maintenance/retention.ts'
import { claimOne, createManualClock, failedAttempt, leaseSeconds, noRetry } from '../../support/claims.ts'
import { newAccount, openDomain, queueRun, type Test, workflow } from '../../support/domain.ts'
import { newRunRow } from '../../support/run-rows.ts'
import { runModule, writtenSnapshot } from '../../support/snapshots.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const daySeconds = 86_400
const succeeded = { kind: 'succeeded', output: null } as const
const none = { succeeded: 0, failed: 0, timedOut: 0, cancelled: 0, expired: 0 }

async function open(test: Test, kind: StoreKind, workflows = [workflow()]) {
  const clock = createManualClock()
  // Noon, so that no test spans two days unless it says so.
  clock.set(Math.floor(Date.now() / 86_400_000) * 86_400_000 + 43_200_000)
  const domain = await openDomain(test, { kind, now: clock.now, workflows })
  const account = await newAccount(domain)
  const usage = new RunUsage(domain.store, clock.now)
  const days = () => ({ from: dayOf(clock.now() - 30 * 86_400_000), to: dayOf(clock.now()) })
  const report = () => usage.read(account.accountId, days())
  /** Adds up what has finished, a minute later. */
  const addUp = async () => {
    clock.advance(61)
    const rollups = new RunRollups(domain.store, clock.now)
    while (await rollups.once());
  }
  return { clock, domain, usage, report, addUp, ...account }
}

describe.each(stores)('usage ($name)', (kind) => {
  test('has the time of all attempts of a run: failed, lost, suspended and resumed, but not handed back', async (test) => {
    const { clock, domain, principal, report, addUp } = await open(test, kind)
    await queueRun(domain, principal)
    const handedBack = await claimOne(domain)
    clock.advance(100)
    await domain.queue.handBack(handedBack, 'The worker cannot get it.')
    clock.advance(5)
    await domain.maintenance.once()
    const failing = await claimOne(domain)
    clock.advance(2)
    await domain.queue.complete(failing, failedAttempt, { ...noRetry, maxAttempts: 3, backoffSeconds: 0 })
    await claimOne(domain)
    // Its worker is lost, and nothing notices for an hour.
    clock.advance(3600)
    await domain.maintenance.once()
    const waiting = await claimOne(domain)
    clock.advance(3)
    const wait = { name: 'pause', kind: 'sleep', deadline: clock.now() + 60_000 } as const
    const suspend = { executedMilliseconds: 2900, names: ['pause'] }
    expect(await domain.queue.wait(waiting, { reached: [wait], names: ['pause'], suspend }, [])).toMatchObject({
      isSuspended: true,
    })
    clock.advance(61)
    await domain.maintenance.once()
    const last = await claimOne(domain)
    clock.advance(4)
    await domain.queue.complete(last, succeeded, noRetry)
    await addUp()
    const executedMilliseconds = (2 + leaseSeconds + 3 + 4) * 1000
    expect((await report())?.workflows).toEqual([
      {
        ...{ day: dayOf(clock.now()), workflowId: 'anything', counts: { ...none, succeeded: 1 }, attempts: 3 },
        ...{ executedMilliseconds, browserMilliseconds: 0, artifactBytes: 0 },
      },
    ])
  })

  test('counts each run once, whichever process adds it up, on the day on which it finished', async (test) => {
    const { clock, domain, principal, report, addUp } = await open(test, kind)
    const first = await queueRun(domain, principal)
    await queueRun(domain, principal)
    await domain.runs.cancel(principal.accountId, (await queueRun(domain, principal)).id)
    const claim = await claimOne(domain)
    expect(claim.runId).toBe(first.id)
    const artifact = { name: 'a.txt', mediaType: 'text/plain', content: Buffer.from('12345') } as const
    await domain.queue.keepArtifact(claim, artifact, [])
    clock.advance(1)
    await domain.queue.complete(claim, succeeded, noRetry)
    const firstDay = dayOf(clock.now())
    clock.advance(daySeconds)
    const next = await claimOne(domain)
    clock.advance(0.25)
    await domain.queue.complete(next, failedAttempt, noRetry)
    clock.advance(61)
    await Promise.all([1, 2].map(() => new RunRollups(domain.store, clock.now).once()))
    await addUp()
    const amounts = { workflowId: 'anything', attempts: 1, browserMilliseconds: 0 }
    expect((await report())?.workflows).toEqual([
      {
        ...{ ...amounts, day: firstDay, counts: { ...none, succeeded: 1, cancelled: 1 } },
        ...{ executedMilliseconds: 1000, artifactBytes: 5 },
      },
      {
        ...{ ...amounts, day: dayOf(clock.now()), counts: { ...none, failed: 1 } },
        ...{ executedMilliseconds: 250, artifactBytes: 0 },
      },
    ])
  })

  test('has runs that were deleted before and after they were added up, and that retention has purged', async (test) => {
    const { clock, domain, principal, report, addUp } = await open(test, kind)
    const finish = async () => {
      const run = await queueRun(domain, principal)
      const claim = await claimOne(domain)
      clock.advance(1)
      await domain.queue.complete(claim, succeeded, noRetry)
      return run.id
    }
    const ids = [await finish(), await finish(), await finish()]
    expect(await deleteRun(domain.store, principal.accountId, ids[0] ?? '', operator)).toBe('deleted')
    expect((await report())?.workflows).toMatchObject([{ counts: { succeeded: 1 }, executedMilliseconds: 1000 }])
    await addUp()
    await deleteRun(domain.store, principal.accountId, ids[1] ?? '', operator)
    await addUp()
    expect((await report())?.workflows).toMatchObject([{ counts: { succeeded: 3 }, executedMilliseconds: 3000 }])
    // Nothing adds up for days, and then the purge comes first.
    await finish()
    clock.advance(3 * daySeconds)
    const days = retentionFrom({ RUN_RETENTION_DAYS: 1, ARTIFACT_RETENTION_DAYS: 1, AUDIT_LOG_RETENTION_DAYS: 1 })
    const brief = await openDomain(test, { kind, location: domain.location, now: clock.now, retention: days })
    for (let count = 0; count < 3; count += 1) {
      clock.advance(61)
      await brief.maintenance.once()
    }
    expect(await domain.store.read.all('SELECT id FROM runs', [])).toEqual([])
    const counts = (await report())?.workflows.map((each) => each.counts.succeeded)
    expect(counts?.reduce((sum, count) => sum + count, 0)).toBe(4)
  })

  test('counts all execution of a workflow that declares a browser as browser time', async (test) => {
    const module = runModule('return null')
    const snapshot = writtenSnapshot({ plain: { module }, visit: { module, usesBrowser: true } })
    const clock = createManualClock()
    const domain = await openDomain(test, { kind, snapshot, now: clock.now })
    const { accountId } = await newAccount(domain)
    const deployment = await domain.store.read.query.selectFrom('deployments').select('id').executeTakeFirstOrThrow()
    const finished_at = clock.now()
    const used = { status: 'succeeded', created_at: finished_at, finished_at, total_executed_ms: 2500 }
    const of = { ...used, deployment_id: deployment.id }
    const rows = ['plain', 'visit'].map((workflow_id) => ({
      ...newRunRow(accountId, { id: uuid(), workflow_id }),
      ...of,
    }))
    const columns = { attempts: 1, failures: 0, losses: 0, continues: 0, continuations: 0, executed_ms: 0 } as const
    const flags = { has_waits: 0, cancel_requested: 0, secrets: null } as const
    await domain.store.write(({ query }) =>
      query
        .insertInto('runs')
        .values(rows.map((row) => ({ ...row, ...columns, ...flags })))
        .execute(),
    )
    clock.advance(61)
    await new RunRollups(domain.store, clock.now).once()
    const day = dayOf(finished_at)
    const report = await new RunUsage(domain.store, clock.now).read(accountId, { from: day, to: day })
    const browserOf = report?.workflows.map((each) => [each.workflowId, each.browserMilliseconds])
    expect(browserOf).toEqual([
      ['plain', 0],
      ['visit', 2500],
    ])
  })

  test('is of one account, of the days that are asked for, and says until when it is complete', async (test) => {
    const { clock, domain, usage, principal, report, addUp } = await open(test, kind)
    const { accountId } = principal
    const theirs = await newAccount(domain)
    await queueRun(domain, theirs.principal)
    await domain.queue.complete(await claimOne(domain), succeeded, noRetry)
    await queueRun(domain, principal)
    await domain.queue.complete(await claimOne(domain), succeeded, noRetry)
    clock.advance(120)
    expect((await report())?.countedUntil).toBe(0)
    await addUp()
    expect((await report())?.countedUntil).toBe(clock.now() - 60_000)
    const day = dayOf(clock.now())
    const days = { from: day, to: day }
    expect((await usage.read(accountId, days))?.workflows).toMatchObject([{ counts: { succeeded: 1 } }])
    const before = dayOf(clock.now() - 86_400_000)
    expect((await usage.read(accountId, { from: before, to: before }))?.workflows).toEqual([])
    const counts = { succeeded: 1, failed: 0, timed_out: 0, cancelled: 0, expired: 0, attempts: 1 }
    const amounts = { account_id: accountId, executed_ms: 1, browser_ms: 0, artifact_bytes: 0 }
    const row = (index: number) => ({ ...counts, ...amounts, day, workflow_id: `w${index}` })
    for (let from = 0; from < rowsMax; from += 1000) {
      const rows = Array.from({ length: 1000 }, (_, index) => row(from + index))
      await domain.store.write(({ query }) => query.insertInto('run_usage').values(rows).execute())
    }
    expect(await usage.read(accountId, days)).toBeUndefined()
  })

  test('has the most that the account stored on each day, and forgets days after three years', async (test) => {
    const { clock, domain, principal, report, addUp } = await open(test, kind)
    const measure = async () => {
      clock.advance(10)
      await domain.usage.maintain()
    }
    await measure()
    const run = await queueRun(domain, principal, { variables: { text: 'a'.repeat(100_000) } })
    await measure()
    await domain.runs.cancel(principal.accountId, run.id)
    await deleteRun(domain.store, principal.accountId, run.id, operator)
    await measure()
    const [today, ...others] = (await report())?.storage ?? []
    expect(others).toEqual([])
    expect(today?.day).toBe(dayOf(clock.now()))
    expect(today?.bytes).toBeGreaterThan(100_000)
    clock.advance(daySeconds)
    await measure()
    expect((await report())?.storage).toMatchObject([today, { day: dayOf(clock.now()), bytes: 0 }])
    clock.advance(3 * 366 * daySeconds + daySeconds)
    await queueRun(domain, principal)
    await domain.queue.complete(await claimOne(domain), succeeded, noRetry)
    await addUp()
    expect(await domain.store.read.all('SELECT day FROM storage_days', [])).toEqual([])
    expect(await domain.store.read.all('SELECT day FROM run_usage', [])).toHaveLength(1)
  })
})
