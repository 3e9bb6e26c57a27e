/** How PostgreSQL finds a run among thousands that have just come: by indexes, though it planned when there were none. */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { expect, test } from 'vitest'
import { claimOne, noRetry } from '../support/claims.ts'
import { newAccount, openDomain, queueRun } from '../support/domain.ts'
import { postgres } from '../support/postgres.ts'

const runs = 2000
const settled = 40
/** Of all tables and indexes, for each run that is queued. It takes one reading of all runs to settle one of them. */
const rowsReadMax = 30
/** For so long a plan may be kept, and a little more. */
const planMilliseconds = 1100

test('what is read to claim and settle runs does not grow with those that came since the tables were empty', async (test) => {
  const domain = await openDomain(test, { kind: postgres })
  const { principal } = await newAccount(domain)
  const client = new pg.Client(domain.place)
  await client.connect()
  test.onTestFinished(() => client.end())
  const settleOne = async () =>
    domain.queue.complete(await claimOne(domain), { kind: 'succeeded', output: null }, noRetry)
  // As often as a plan is made for the values at hand, before one is made for all.
  for (let count = 0; count < 8; count += 1) {
    await queueRun(domain, principal)
    await settleOne()
  }
  await client.query('TRUNCATE execution_service.runs CASCADE; DELETE FROM execution_service_jobs.job')
  await client.query('VACUUM ANALYZE')
  for (let count = 0; count < 8; count += 1) {
    await queueRun(domain, principal)
    await settleOne()
  }
  const before = await rowsRead(client)
  await Promise.all(Array.from({ length: runs }, () => queueRun(domain, principal)))
  await delay(planMilliseconds)
  for (let count = 0; count < settled; count += 1) await settleOne()
  // The server counts what a connection has read when that ends, if not before.
  await client.query(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()`)
  expect(((await rowsRead(client)) - before) / runs).toBeLessThan(rowsReadMax)
})

async function rowsRead(client: pg.Client): Promise<number> {
  const { rows } = await client.query(
    `SELECT (SELECT SUM(seq_tup_read) FROM pg_stat_user_tables) + (SELECT SUM(idx_tup_read) FROM pg_stat_user_indexes)
      AS read`,
  )
  return Number(rows[0].read)
}
