/** Runs stay correct when pg-boss's own maintenance expires their jobs, which it does after a day. */
import { PgBoss } from 'pg-boss'
import { expect, test } from 'vitest'
import { Maintenance } from '../../src/maintenance/maintenance.ts'
import type { Store, Transaction } from '../../src/storage/store.ts'
import { claimAll, claimOne, createManualClock, failedAttempt, leaseSeconds, noRetry } from '../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, retention, type Test } from '../support/domain.ts'
import { postgres } from '../support/postgres.ts'
import { sqlText } from '../support/run-rows.ts'

const schema = 'execution_service_jobs'

/** Makes running attempts 25 hours older, and lets pg-boss expire their jobs. */
async function expireJobs(test: Test, { store, location }: Domain): Promise<void> {
  await store.read.all(
    `UPDATE ${schema}.job SET started_on = started_on - interval '25 hours' WHERE state = 'active'`,
    [],
  )
  const boss = new PgBoss({ connectionString: location, schema, migrate: false, schedule: false, supervise: false })
  boss.on('error', () => {})
  await boss.start()
  test.onTestFinished(() => boss.stop({ graceful: false }))
  await boss.supervise()
  const states = await store.read.all(`SELECT state::text FROM ${schema}.job WHERE state = 'retry'`, [])
  expect(states.length).toBeGreaterThan(0)
}

/** A run whose attempt has lasted a day, and whose job was dispatched again and rejected. */
async function openWithLongAttempt(test: Test) {
  const clock = createManualClock()
  const domain = await openDomain(test, { kind: postgres, now: clock.now })
  const { principal } = await newAccount(domain)
  const long = await queueRun(domain, principal)
  const claim = await claimOne(domain)
  await expireJobs(test, domain)
  const other = await queueRun(domain, principal)
  expect(await claimAll(domain.queue, domain)).toMatchObject([{ runId: other.id }])
  return { clock, domain, long, claim }
}

test('a run that fails after more than a day is retried', async (test) => {
  const { clock, domain, long, claim } = await openWithLongAttempt(test)
  expect(await domain.queue.complete(claim, failedAttempt, { ...noRetry, maxAttempts: 2 })).toBe(true)
  expect(await claimAll(domain.queue, domain)).toEqual([])
  clock.advance(1)
  await domain.maintenance.once()
  expect(await claimAll(domain.queue, domain)).toMatchObject([{ runId: long.id, attempt: 2 }])
})

test('a run with an expired job does not start before its delay ends', async (test) => {
  const domain = await openDomain(test, { kind: postgres })
  const { principal } = await newAccount(domain)
  await queueRun(domain, principal)
  const claim = await claimOne(domain)
  await expireJobs(test, domain)
  await domain.queue.complete(claim, failedAttempt, { maxAttempts: 2, backoffSeconds: 3600, backoffFactor: 1 })
  const other = await queueRun(domain, principal)
  expect(await claimAll(domain.queue, domain)).toMatchObject([{ runId: other.id }])
})

test.for(['returned to the queue', 'lost with its worker'])(
  'a run that is %s after more than a day is started again',
  async (how, test) => {
    const { clock, domain, long, claim } = await openWithLongAttempt(test)
    if (how === 'returned to the queue') await domain.queue.complete(claim, { kind: 'workerStopped' }, noRetry)
    else {
      clock.advance(leaseSeconds + 1)
      await domain.maintenance.once()
    }
    const again = await claimAll(domain.queue, domain)
    expect(again.map(({ runId }) => runId)).toContain(long.id)
  },
)

test('a run that starts while maintenance looks for expired runs does not expire', async (test) => {
  const clock = createManualClock()
  const slowTime = clock.now()
  const domain = await openDomain(test, { kind: postgres, now: clock.now })
  const other = await openDomain(test, { kind: postgres, location: domain.location, now: () => slowTime })
  const { principal } = await newAccount(domain)
  const run = await queueRun(domain, principal, { expiresInSeconds: 10 })
  clock.advance(60)
  const { store } = domain
  const write: Store['write'] = (work, options) =>
    store.write(async (tx) => {
      const all: Transaction['all'] = async (sql, values) => {
        const rows = await tx.all(sql, values)
        if (/^SELECT id FROM runs\s+WHERE status = 'queued' AND expires_at/.test(sqlText(sql))) {
          const claim = await claimOne(other)
          await other.queue.complete(claim, { kind: 'workerStopped' }, noRetry)
        }
        return rows as never
      }
      return work({ ...tx, all })
    }, options)
  await new Maintenance({ ...store, write }, retention, () => {}, clock.now).once()
  expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status: 'queued', attempts: 1 })
})
