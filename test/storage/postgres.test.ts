/** PostgreSQL only: errors on opening the store, recovery from outages, durability, and prepared statements. */
import pg from 'pg'
import { expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { openStore as openInstallation } from '../../src/domain/installation.ts'
import { openPostgresStore } from '../../src/storage/postgres/postgres-store.ts'
import { StoreUnavailable } from '../../src/storage/store.ts'
import { claimAll, claimOne, noRetry, statusHistory } from '../support/claims.ts'
import {
  type Domain,
  newAccount,
  newStoreLocation,
  openDomain,
  openStore,
  queueRun,
  type Test,
  workflow,
} from '../support/domain.ts'
import { postgres, whileConnectionsRefused } from '../support/postgres.ts'
import { until } from '../support/service.ts'
import { startTransactionPooler } from '../support/transaction-pooler.ts'

async function openingError(url: string): Promise<string> {
  const opened = openPostgresStore(url, { connectionsMax: 2 })
  return opened.then(
    async (store) => {
      await store.close()
      return 'opened'
    },
    (error: Error) => error.message,
  )
}

/** Returns the URL with some of its parts replaced. */
function withChanges(location: string, changes: Partial<URL>): string {
  return Object.assign(new URL(location), changes).href
}

async function administer(location: string, sql: string): Promise<void> {
  const client = new pg.Client(location)
  await client.connect()
  await client.query(sql).finally(() => client.end())
}

/** Creates a role that can connect and has no privileges. */
async function newRole(test: Test, location: string): Promise<string> {
  const name = `role_${crypto.randomUUID().replaceAll('-', '')}`
  await administer(location, `CREATE ROLE ${name} LOGIN`)
  test.onTestFinished(() => administer(location, `DROP OWNED BY ${name}; DROP ROLE ${name}`))
  return name
}

test('an error on opening explains the reason without revealing the password', async (test) => {
  const location = await newStoreLocation(test, postgres)
  const password = 'a-secret'
  expect(await openingError(withChanges(location, { port: '1', password }))).toMatch(
    /^PostgreSQL at 127\.0\.0\.1:1\/\w+ cannot be reached \(.*ECONNREFUSED.*\): start it, or correct DATABASE_URL\.$/,
  )
  const nowhere = await openingError(withChanges(location, { pathname: '/nowhere', password }))
  expect(nowhere).toMatch(
    /has no such database: database "nowhere" does not exist\. Create it, or correct DATABASE_URL\.$/,
  )
  expect(nowhere).not.toContain(password)
})

test('an error on opening explains that the TLS settings do not match', async (test) => {
  const location = await newStoreLocation(test, postgres)
  expect(await openingError(`${location}?sslmode=require`)).toMatch(
    /^The TLS settings of .* do not match \(.*\): set up TLS on the server, or correct sslmode/,
  )
})

test('the store is not opened through a pooler in transaction mode', async (test) => {
  const location = await newStoreLocation(test, postgres)
  expect(await openingError(location)).toBe('opened')
  const pooled = await startTransactionPooler(test, location)
  expect(await openingError(pooled)).toMatch(
    /^The pooler at 127\.0\.0\.1:\d+\/\w+ assigns a connection per transaction, .* session mode\.$/,
  )
})

test('an error on opening names the missing privileges', async (test) => {
  const location = await postgres.prepare({ empty: true })
  test.onTestFinished(() => postgres.remove(location))
  const username = await newRole(test, location)
  expect(await openingError(withChanges(location, { username }))).toMatch(
    /lacks privileges in the database .* Grant it CREATE on the database/,
  )
})

test('a start waits while the database has no free connection', async (test) => {
  const location = await newStoreLocation(test, postgres)
  const username = await newRole(test, location)
  await administer(location, `ALTER ROLE ${username} CONNECTION LIMIT 0`)
  const config = readConfig({ DATABASE_URL: withChanges(location, { username }) })
  await expect(openPostgresStore(config.DATABASE_URL as string)).rejects.toThrow(
    /^PostgreSQL at .* has no free connection \(.*\): raise its max_connections, or lower DATABASE_CONNECTIONS\.$/,
  )
  const opened = openInstallation(config)
  await administer(location, `ALTER ROLE ${username} SUPERUSER CONNECTION LIMIT -1`)
  await (await opened).close()
})

test('the store is unavailable while connections are refused, and recovers by itself', async (test) => {
  const domain = await openDomain(test, { kind: postgres })
  const { principal } = await newAccount(domain)
  await queueRun(domain, principal)
  await whileConnectionsRefused(domain.location, async () => {
    await expect(domain.store.check()).rejects.toThrow(StoreUnavailable)
    await expect(queueRun(domain, principal)).rejects.toThrow(StoreUnavailable)
    await expect(domain.runs.list(principal.accountId, { limit: 1 })).rejects.toThrow(StoreUnavailable)
  })
  await domain.store.check()
  await queueRun(domain, principal)
  expect((await domain.runs.list(principal.accountId, { limit: 10 }))?.runs).toHaveLength(2)
})

/** Resolves when a connection to the database waits for a lock. */
async function untilOneWaits({ store }: Domain): Promise<void> {
  const sql = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  await until('a connection waits for a lock', async () => (await store.read.all(sql, [])).length > 0)
}

test('a run whose outcome is being stored when its lease expires completes once', async (test) => {
  const domain = await openDomain(test, { kind: postgres })
  const later = () => Date.now() + 60_000
  const other = await openDomain(test, { kind: postgres, location: domain.location, now: later })
  const { principal } = await newAccount(domain)
  const run = await queueRun(domain, principal)
  const claim = await claimOne(domain)
  let maintained: Promise<unknown> | undefined
  const outcome = { kind: 'succeeded', output: null } as const
  const completed = await domain.queue.complete(claim, outcome, noRetry, [], async () => {
    maintained = other.maintenance.once()
    await untilOneWaits(domain)
    return []
  })
  await maintained
  expect(completed).toBe(true)
  expect(await statusHistory(domain, run.id)).toEqual([
    ['queued', 0, null],
    ['running', 1, null],
    ['succeeded', 1, null],
  ])
})

test('writes that deadlock are repeated', async (test) => {
  const domain = await openDomain(test, { kind: postgres })
  const accounts = [await newAccount(domain), await newAccount(domain)].map(({ accountId }) => accountId)
  let locked = 0
  const lockBoth = (ids: string[]) =>
    domain.store.write(
      async (tx) => {
        await tx.all("SET LOCAL deadlock_timeout TO '10ms'", [])
        for (const id of ids) {
          await tx.all(tx.statements.lockAccount, [id])
          locked += 1
          await until('each transaction has a lock', () => locked >= 2)
        }
        return 'written'
      },
      { concurrent: true },
    )
  expect(await Promise.all([lockBoth(accounts), lockBoth(accounts.toReversed())])).toEqual(['written', 'written'])
})

test("the store commits synchronously even if the server's default is asynchronous", async (test) => {
  const location = await newStoreLocation(test, postgres)
  const name = new URL(location).pathname.slice(1)
  await administer(location, `ALTER DATABASE ${name} SET synchronous_commit TO off`)
  const store = await openStore(test, location, postgres)
  const showSetting = "SELECT current_setting('synchronous_commit') AS value"
  expect(await store.read.all(showSetting, [])).toEqual([{ value: 'on' }])
  expect(await store.write((tx) => tx.all(showSetting, []))).toEqual([{ value: 'on' }])
})

test('all accounts and workflows share the prepared statements that queue and claim runs', async (test) => {
  const workflows = Array.from({ length: 20 }, (_, index) => workflow({ id: `workflow-${index}` }))
  const domain = await openDomain(test, { kind: postgres, workflows })
  const { principal } = await newAccount(domain)
  for (const { id } of workflows) await queueRun(domain, principal, { workflowId: id })
  expect(await claimAll(domain.queue, domain)).toHaveLength(workflows.length)
  const sql = `SELECT statement FROM pg_prepared_statements WHERE statement LIKE '%' || ? || '%'`
  expect(await domain.store.read.all(sql, [`'${principal.accountId}/`])).toEqual([])
  const fetches = await domain.store.read.all(sql, ['SKIP LOCKED'])
  expect(fetches.length).toBeLessThan(3)
})
