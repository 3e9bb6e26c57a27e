/** Opening a store creates and migrates it; an older version refuses a newer store. */
import { once } from 'node:events'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { Accounts } from '../../src/domain/accounts/accounts.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { WebhookEndpoints } from '../../src/domain/webhooks/webhook-endpoints.ts'
import { Cursors } from '../../src/storage/cursors.ts'
import { newAccount, newStoreLocation, openDomain, openStore, queueRun } from '../support/domain.ts'
import { postgres } from '../support/postgres.ts'
import { startStoreProcess } from '../support/processes.ts'
import { stores } from '../support/store-kinds.ts'

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
  const client = new pg.Client(domain.location)
  await client.connect()
  test.onTestFinished(() => client.end())
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

  test('fails with an explanation when a newer version has migrated the store', async (test) => {
    const location = await newStoreLocation(test, kind)
    const store = await openStore(test, location, kind)
    const migration = "INSERT INTO kysely_migration (name, timestamp) VALUES ('9999-newer', '2999-01-01T00:00:00.000Z')"
    await store.write((tx) => tx.all(migration, []))
    await expect(kind.open(location)).rejects.toThrow(
      /^The store was written by a newer version of this service: start that version, or restore a backup\.$/,
    )
  })
})
