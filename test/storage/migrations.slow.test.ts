/** Opening a store creates and migrates it, while earlier versions use it; these refuse a schema that is not for them. */
import { once } from 'node:events'
import pg from 'pg'
import { describe, expect, test, vi } from 'vitest'
import { Accounts } from '../../src/domain/accounts/accounts.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { WebhookEndpoints } from '../../src/domain/webhooks/webhook-endpoints.ts'
import { Cursors } from '../../src/storage/cursors.ts'
import { type SchemaMigration, StoreTooNew } from '../../src/storage/migrations/migrations.ts'
import { newAccount, newStoreLocation, openDomain, openStore, queueRun, type Test } from '../support/domain.ts'
import { postgres } from '../support/postgres.ts'
import { startStoreProcess } from '../support/processes.ts'
import { stores } from '../support/store-kinds.ts'
import { waitLimits } from '../support/timeouts.ts'
import { asNewerVersion, contraction, newerMigrations } from '../upgrades/newer-version.ts'

async function connectClient(test: Test, location: string): Promise<pg.Client> {
  const client = new pg.Client(location)
  await client.connect()
  test.onTestFinished(() => client.end())
  return client
}

test('every text column in PostgreSQL has bytewise collation, so that all indexes can serve all comparisons', async (test) => {
  const store = await openStore(test, await newStoreLocation(test, postgres), postgres)
  // The table of counters is exempt: its text is compared with parameters only.
  const sql = `SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = 'execution_service' AND table_name <> 'counters' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'`
  expect(await store.read.all(sql, [])).toEqual([])
})

test('a client without the schema in its search_path can change a run, as with psql', async (test) => {
  const domain = await openDomain(test, { kind: postgres })
  const { principal, accountId } = await newAccount(domain)
  const endpoint = { url: 'https://example.com/', events: ['run.cancelled' as const], workflowIds: [], tags: [] }
  const endpoints = new WebhookEndpoints(domain.store, domain.encryption, new Cursors(domain.encryption))
  await endpoints.create(accountId, endpoint, operator)
  const run = await queueRun(domain, principal, { tags: ['a'] })
  const client = await connectClient(test, domain.location)
  await client.query("UPDATE execution_service.runs SET status = 'cancelled', finished_at = 1 WHERE id = $1", [run.id])
  const { rows } = await client.query('SELECT event, run_id FROM execution_service.webhook_deliveries')
  expect(rows).toEqual([{ event: 'run.cancelled', run_id: run.id }])
})

describe.each(stores)('opening a store ($name)', (kind) => {
  test('succeeds in four processes that start together in an empty directory, and one creates the first account', async (test) => {
    const locations = await Promise.all(Array.from({ length: 5 }, () => newStoreLocation(test, kind, { empty: true })))
    const start = () => startStoreProcess(test, { kind, command: 'start', locations })
    const children = await Promise.all([start(), start(), start(), start()])
    const exits = children.map((child) => once(child, 'exit'))
    for (const child of children) child.send('go')
    expect(await Promise.all(exits)).toEqual(children.map(() => [0, null]))
    for (const location of locations) {
      expect(await new Accounts(await openStore(test, location, kind)).list()).toHaveLength(1)
    }
  })

  test('changes nothing in a store of this version', async (test) => {
    const location = await newStoreLocation(test, kind)
    const first = await kind.open(location)
    const account = await new Accounts(first).create({ name: 'Kept', scopesEnabled: true })
    await first.close()
    expect(await new Accounts(await openStore(test, location, kind)).list()).toEqual([account])
  })

  test.for([
    { stored: undefined, requirement: '' },
    { stored: '99.0.0', requirement: ' and requires version 99.0.0 or later' },
  ])('fails with an explanation on the schema of a newer version ($stored)', async ({ stored, requirement }, test) => {
    const location = await newStoreLocation(test, kind)
    const store = await openStore(test, location, kind)
    await store.write(async (tx) => {
      await tx.all("INSERT INTO kysely_migration VALUES ('9999-newer', '2999-01-01T00:00:00.000Z')", [])
      if (stored) await tx.all("INSERT INTO schema_compatibility VALUES ('9999-newer', ?)", [stored])
    })
    await expect(kind.open(location)).rejects.toThrow(
      `The store was written by a newer version of this service${requirement}: start that version, or restore a backup.`,
    )
  })

  test('succeeds on the schema of a newer version that only added to it, and not after it has removed a table', async (test) => {
    const location = await newStoreLocation(test, kind)
    const before = await openDomain(test, { kind, location })
    const { principal } = await newAccount(before)
    const first = await queueRun(before, principal)
    await asNewerVersion(async () => (await kind.open(location)).close())
    const columns = await before.store.read.all<{ newer: string }>('SELECT newer FROM runs', [])
    expect(columns).toEqual([{ newer: 'added' }])

    // One process was open during the migration, and one starts after it.
    const after = await openDomain(test, { kind, location })
    for (const domain of [before, after]) {
      const { id } = await queueRun(domain, principal)
      expect((await domain.runs.get(principal.accountId, id))?.id).toBe(id)
      expect((await domain.runs.get(principal.accountId, first.id))?.status).toBe('queued')
    }
    await asNewerVersion(async () => (await kind.open(location)).close(), [...newerMigrations, contraction])
    await expect(kind.open(location)).rejects.toThrow(StoreTooNew)
  })

  test('repeats a migration that was interrupted between two indexes', async (test) => {
    const location = await newStoreLocation(test, kind)
    const indexes = { runs_one: 'ON runs (status)', runs_two: 'ON missing (status)' }
    const interrupted: SchemaMigration = { name: '9001-indexes', kind: 'expand', indexes }
    await expect(asNewerVersion(() => kind.open(location), [interrupted])).rejects.toThrow(/missing/)
    const repeated: SchemaMigration = { ...interrupted, indexes: { ...indexes, runs_two: 'ON runs (reason)' } }
    const store = await asNewerVersion(() => kind.open(location), [repeated])
    test.onTestFinished(() => store.close())
    for (const name of Object.keys(indexes)) await store.write((tx) => tx.all(`DROP INDEX ${name}`, []))
  })
})

describe('a migration of PostgreSQL', () => {
  const addColumn: SchemaMigration = {
    name: '9001-column',
    kind: 'expand',
    script: () => 'ALTER TABLE runs ADD COLUMN newer TEXT',
  }

  test('waits for a transaction that has locked the table, and lets statements pass that wait behind it', async (test) => {
    const location = await newStoreLocation(test, postgres)
    const domain = await openDomain(test, { kind: postgres, location })
    const { principal } = await newAccount(domain)
    const locking = await connectClient(test, location)
    await locking.query('BEGIN; LOCK TABLE execution_service.runs IN ROW EXCLUSIVE MODE')
    const migrating = asNewerVersion(() => postgres.open(location), [addColumn])
    const waiting =
      "SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted AND relation = 'execution_service.runs'::regclass"
    const observing = await connectClient(test, location)
    await vi.waitUntil(async () => (await observing.query(waiting)).rows.length > 0, waitLimits)
    // Waits behind the migration, and would be refused after 5 s.
    await queueRun(domain, principal)
    await locking.query('COMMIT')
    await (await migrating).close()
  })

  test('creates an index while a transaction has changed its table, and another process waits to migrate', async (test) => {
    const location = await newStoreLocation(test, postgres)
    const domain = await openDomain(test, { kind: postgres, location })
    const { principal } = await newAccount(domain)
    const changing = await connectClient(test, location)
    await changing.query('BEGIN; UPDATE execution_service.runs SET status = status')
    const addIndex: SchemaMigration = {
      name: '9001-index',
      kind: 'expand',
      indexes: { runs_newer: 'ON runs (reason)' },
    }
    const both = asNewerVersion(() => Promise.all([postgres.open(location), postgres.open(location)]), [addIndex])
    const observing = await connectClient(test, location)
    const creating = "SELECT 1 FROM pg_stat_progress_create_index WHERE phase LIKE 'waiting%'"
    await vi.waitUntil(async () => (await observing.query(creating)).rows.length > 0, waitLimits)
    await queueRun(domain, principal)
    const earlier = await startStoreProcess(test, { kind: postgres, command: 'start', locations: [location] })
    const ended = once(earlier, 'exit')
    earlier.send('go')
    expect(await ended, 'a process of the earlier version starts meanwhile').toEqual([0, null])
    await changing.query('COMMIT')
    for (const store of await both) await store.close()
  })
})
