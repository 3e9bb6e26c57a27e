/** What becomes of runs whose jobs pg-boss's own maintenance has changed: nothing that their workers would notice. */
import { PgBoss } from 'pg-boss'
import { expect, test } from 'vitest'
import { Maintenance } from '../../src/maintenance/maintenance.ts'
import type { Store, Transaction } from '../../src/storage/store.ts'
import { claimAll, claimOne, createManualClock, failedAttempt, leaseSeconds, noRetry } from '../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, retention, type Test } from '../support/domain.ts'
import { postgres } from '../support/postgres.ts'
import { sqlText } from '../support/run-rows.ts'

const schema = 'execution_service_jobs'

/** As if the attempts that are under way had begun a day and an hour ago. */
async function aDayPasses(test: Test, { store, place }: Domain): Promise<void> {
  await store.read.all(
    `UPDATE ${schema}.job SET started_on = started_on - interval '25 hours' WHERE state = 'active'`,
    [],
  )
  const boss = new PgBoss({ connectionString: place, schema, migrate: false, schedule: false, supervise: false })
  boss.on('error', () => {})
  await boss.start()
  test.onTestFinished(() => boss.stop({ graceful: false }))
  await boss.supervise()
  const states = await store.read.all(`SELECT state::text FROM ${schema}.job WHERE state = 'retry'`, [])
  expect(states.length).toBeGreaterThan(0)
}

/** A run that has been under way for a day, whose job pg-boss has given out meanwhile: to nobody, as it turned out. */
async function givenOutAgain(test: Test) {
  const clock = createManualClock()
  const domain = await openDomain(test, { kind: postgres, now: clock.now })
  const { principal } = await newAccount(domain)
  const long = await queueRun(domain, principal)
  const claim = await claimOne(domain)
  await aDayPasses(test, domain)
  const other = await queueRun(domain, principal)
  expect(await claimAll(domain.queue, domain)).toMatchObject([{ runId: other.id }])
  return { clock, domain, long, claim }
}

test('a run that fails after more than a day is tried again, though its job was given out meanwhile', async (test) => {
  const { clock, domain, long, claim } = await givenOutAgain(test)
  expect(await domain.queue.complete(claim, failedAttempt, { ...noRetry, maxAttempts: 2 })).toBe(true)
  expect(await claimAll(domain.queue, domain)).toEqual([])
  clock.advance(1)
  await domain.maintenance.once()
  expect(await claimAll(domain.queue, domain)).toMatchObject([{ runId: long.id, attempt: 2 }])
})

test('a run does not start before its delay has ended, though its job was given out again', async (test) => {
  const domain = await openDomain(test, { kind: postgres })
  const { principal } = await newAccount(domain)
  await queueRun(domain, principal)
  const claim = await claimOne(domain)
  await aDayPasses(test, domain)
  await domain.queue.complete(claim, failedAttempt, { maxAttempts: 2, backoffSeconds: 3600, backoffFactor: 1 })
  const other = await queueRun(domain, principal)
  expect(await claimAll(domain.queue, domain)).toMatchObject([{ runId: other.id }])
})

test.for(['handed back', 'lost with its worker'])('a run that is %s after that is started again', async (how, test) => {
  const { clock, domain, long, claim } = await givenOutAgain(test)
  if (how === 'handed back') await domain.queue.complete(claim, { kind: 'workerStopped' }, noRetry)
  else {
    clock.advance(leaseSeconds + 1)
    await domain.maintenance.once()
  }
  const again = await claimAll(domain.queue, domain)
  expect(again.map(({ runId }) => runId)).toContain(long.id)
})

test('a run does not expire that is started and handed back while it is looked at', async (test) => {
  const clock = createManualClock()
  const slow = { now: clock.now() }
  const domain = await openDomain(test, { kind: postgres, now: clock.now })
  const other = await openDomain(test, { kind: postgres, place: domain.place, now: () => slow.now })
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
