/** PostgreSQL finds runs by index even when it planned the statements while the tables were empty. */
import pg from 'pg'
import { expect, test } from 'vitest'
import { claimOne, noRetry } from '../support/claims.ts'
import { newAccount, openDomain, queueRun } from '../support/domain.ts'
import { postgres } from '../support/postgres.ts'

const runs = 2000
const completed = 40
/** Rows read from all tables and indexes for each queued run. A plan that scans all runs for each completed one exceeds it. */
const rowsReadMax = 30

test('claiming and completing runs reads no more rows when thousands were queued since the tables were empty', async (test) => {
  const domain = await openDomain(test, { kind: postgres })
  const { principal } = await newAccount(domain)
  const client = new pg.Client(domain.location)
  await client.connect()
  test.onTestFinished(() => client.end())
  const completeOne = async () =>
    domain.queue.complete(await claimOne(domain), { kind: 'succeeded', output: null }, noRetry)
  // PostgreSQL may switch to a generic plan after five executions.
  for (let count = 0; count < 8; count += 1) {
    await queueRun(domain, principal)
    await completeOne()
  }
  await client.query('TRUNCATE execution_service.runs CASCADE;')
  await client.query('VACUUM ANALYZE')
  for (let count = 0; count < 8; count += 1) {
    await queueRun(domain, principal)
    await completeOne()
  }
  const before = await rowsRead(client)
  await Promise.all(Array.from({ length: runs }, () => queueRun(domain, principal)))
  for (let count = 0; count < completed; count += 1) await completeOne()
  // The server may count a connection's reads only when it ends.
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
