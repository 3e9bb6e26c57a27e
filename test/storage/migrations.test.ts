/** Opening a store creates and migrates it; an older version refuses a newer store. */
import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { Accounts } from '../../src/domain/accounts/accounts.ts'
import { migrationsFor } from '../../src/storage/migrations/migrations.ts'
import { postgresColumnTypes } from '../../src/storage/postgres/postgres-connections.ts'
import { claimAll } from '../support/claims.ts'
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

test('upgrading from pg-boss drops its schema, and queued runs still run', async (test) => {
  const location = await newStoreLocation(test, postgres)
  const old = await openDomain(test, { kind: postgres, location })
  const { principal } = await newAccount(old)
  const run = await queueRun(old, principal)
  const delayed = await queueRun(old, principal, { delaySeconds: 3600 })
  await old.store.write(async (tx) => {
    for (const column of ['job_id TEXT', 'job_retry_count INTEGER']) {
      await tx.all(`ALTER TABLE runs ADD COLUMN ${column}`, [])
    }
    await tx.all('UPDATE runs SET job_id = id', [])
    await tx.all('CREATE SCHEMA execution_service_jobs', [])
    await tx.all('CREATE TABLE execution_service_jobs.job (id UUID PRIMARY KEY)', [])
    // Alone: the later migrations have been applied.
    await migrationsFor(postgresColumnTypes)['0006-queue']?.up(tx.query)
  })
  const domain = await openDomain(test, { kind: postgres, location })
  const schemas = "SELECT nspname FROM pg_namespace WHERE nspname = 'execution_service_jobs'"
  expect(await domain.store.read.all(schemas, [])).toEqual([])
  expect((await claimAll(domain.queue, domain)).map(({ runId }) => runId)).toEqual([run.id])
  expect(await domain.runs.get(principal.accountId, delayed.id)).toMatchObject({ waitingFor: 'delay' })
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
