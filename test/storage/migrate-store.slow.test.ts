/** Copying the embedded store to PostgreSQL. */
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { expect, type TestContext, test, vi } from 'vitest'
import { backup } from '../../src/commands/backup.ts'
import { openEmbeddedStore } from '../../src/commands/doctor/doctor.ts'
import { checkStore } from '../../src/commands/doctor/embedded-store.ts'
import { migrateStore } from '../../src/commands/migrate-store.ts'
import { readConfig } from '../../src/config/config.ts'
import { Accounts } from '../../src/domain/accounts/accounts.ts'
import { encryptedColumns, openEncryption, openStore } from '../../src/domain/installation.ts'
import { decryptLatest } from '../../src/storage/encrypted-columns.ts'
import type { Encryption } from '../../src/storage/encryption.ts'
import { copySchema } from '../../src/storage/postgres/postgres-target.ts'
import { lockSource, SourceInUse } from '../../src/storage/sqlite/sqlite-source.ts'
import { openSqliteStore } from '../../src/storage/sqlite/sqlite-store.ts'
import { StoreUnavailable } from '../../src/storage/store.ts'
import { postgres } from '../support/postgres.ts'
import { emptyDirectory } from '../support/restore-installation.ts'

const key = Buffer.alloc(32, 7).toString('base64')

/** Makes an installation with two rows in each table, and an empty database. */
async function openInstallation(context: TestContext) {
  const print = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  const settings = { DATA_DIR: emptyDirectory(context), ENCRYPTION_KEY: key }
  const config = readConfig(settings)
  const store = await openStore(config)
  const encryption = await openEncryption(config, store)
  await store.close()
  const path = `${settings.DATA_DIR}/service.db`
  withFile(path, (database) => fillTables(database, encryption))
  const url = await postgres.prepare({ empty: true })
  context.onTestFinished(async () => {
    print.mockRestore()
    await postgres.remove(url)
  })
  const run = (options: { serving?: boolean } = {}, untilStopped?: () => Promise<void>) =>
    migrateStore({ to: url, ...options }, settings, untilStopped)
  return { settings, path, url, run, printed: () => print.mock.calls.map(([text]) => text).join('') }
}

function withFile<Result>(path: string, act: (database: DatabaseSync) => Result): Result {
  const database = new DatabaseSync(path)
  try {
    return act(database)
  } finally {
    database.close()
  }
}

const tablesOf = (database: DatabaseSync): string[] =>
  database
    .prepare(
      `SELECT name FROM sqlite_schema WHERE type = 'table'
        AND name NOT GLOB 'sqlite_*' AND name NOT GLOB 'kysely_*' AND name NOT GLOB 'schema_*'`,
    )
    .all()
    .map(({ name }) => String(name))

/** Fills every table and column by its type, so that new tables need no change here. */
function fillTables(database: DatabaseSync, encryption: Encryption): void {
  database.exec('PRAGMA foreign_keys = OFF')
  for (const table of tablesOf(database)) {
    const columns = database.prepare('SELECT name, type FROM pragma_table_info(?)').all(table)
    const names = columns.map(({ name }) => `"${name}"`).join(', ')
    for (const number of table === 'encryption_check' ? [] : [1, 2]) {
      const values = columns.map(({ type }) => {
        if (String(type).startsWith('TEXT')) return `id-${number}`
        return type === 'BLOB' ? Buffer.from([0, 255, number]) : number
      })
      const marks = columns.map(() => '?').join(', ')
      database.prepare(`INSERT INTO "${table}" (${names}) VALUES (${marks})`).run(...values)
    }
  }
  for (const { table, column, key: names, aadColumns, aad } of encryptedColumns) {
    if (table === 'encryption_check') continue
    for (const row of database.prepare(`SELECT ${[...names, ...aadColumns].join(', ')} FROM ${table}`).all()) {
      const id = names.map((name) => row[name] ?? null)
      const value = encryption.encrypt('secret', aad(...aadColumns.map((name) => String(row[name]))))
      const isRow = names.map((name) => `${name} = ?`).join(' AND ')
      database.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${isRow}`).run(value, ...id)
    }
  }
  expect(database.prepare('PRAGMA foreign_key_check').all()).toEqual([])
}

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url)
  await client.connect()
  return client.query(text).then(
    async ({ rows }) => {
      await client.end()
      return rows
    },
    async (error) => {
      await client.end()
      throw error
    },
  )
}

test('every row of every table is in PostgreSQL, and nothing is left of the copy', async (context) => {
  const { path, url, run, printed } = await openInstallation(context)
  await run()
  expect(printed()).toMatch(/^Checking the store in /)
  for (const name of withFile(path, tablesOf)) {
    const count = name === 'encryption_check' ? 1 : 2
    const [row] = await query(url, `SELECT count(*)::int AS count FROM execution_service."${name}"`)
    expect({ name, ...row }).toEqual({ name, count })
    expect(printed()).toContain(`${name}: ${count} rows copied and verified`)
  }
  expect(await query(url, `SELECT 1 FROM pg_namespace WHERE nspname = '${copySchema}'`)).toEqual([])
  const [event] = await query(
    url,
    `INSERT INTO execution_service.run_events (run_id, sequence, at, type, data)
     VALUES ('id-1', 9, 0, '', '') RETURNING id::int`,
  )
  expect(event).toEqual({ id: 3 })
})

test('the service opens the copy with the same key, finds its accounts and decrypts every column', async (context) => {
  const { settings, url, run } = await openInstallation(context)
  await run()
  const config = readConfig({ ...settings, DATABASE_URL: url })
  const store = await openStore(config)
  context.onTestFinished(() => store.close())
  await decryptLatest(store.read, await openEncryption(config, store), encryptedColumns)
  expect((await new Accounts(store).list()).map(({ id }) => id)).toEqual(['id-1', 'id-2'])
})

test('afterwards the old store opens for no command, until its mark is removed', async (context) => {
  const { settings, url, run } = await openInstallation(context)
  await run()
  const { host, pathname } = new URL(url)
  const file = join(settings.DATA_DIR, 'moved-to-postgresql')
  const moved = new RegExp(`^The store in \\S+ was moved to PostgreSQL at ${host}${pathname} on \\S+: set DATABASE_URL`)
  const snapshot = join(emptyDirectory(context), 'snapshot')
  const doors = [() => openStore(readConfig(settings)), () => backup(snapshot, {}, settings), run]
  for (const open of doors) await expect(open()).rejects.toThrow(moved)
  expect(existsSync(snapshot)).toBe(false)
  expect(await checkStore(await openEmbeddedStore(settings.DATA_DIR))).toMatchObject({
    status: 'fail',
    detail: expect.stringContaining('was moved to PostgreSQL at'),
    advice: `Set DATABASE_URL as the service has it, or remove ${file} to go back to the old store.`,
  })
  rmSync(file)
  await (await openStore(readConfig(settings))).close()
})

/** Turns a complete copy into one that was interrupted. */
async function interrupt({ url, settings }: { url: string; settings: { DATA_DIR: string } }): Promise<void> {
  rmSync(`${settings.DATA_DIR}/moved-to-postgresql`)
  await query(url, `ALTER SCHEMA execution_service RENAME TO ${copySchema}`)
  await query(url, `DELETE FROM ${copySchema}.run_events WHERE id = 2`)
}

test('an interrupted copy resumes', async (context) => {
  const installation = await openInstallation(context)
  const { url, run, printed } = installation
  await run()
  await interrupt(installation)
  await run()
  expect(printed()).toContain('Resuming the copy that was interrupted')
  expect(printed()).not.toContain('Starting over.')
  expect(await query(url, 'SELECT id::int FROM execution_service.run_events ORDER BY id')).toEqual([
    { id: 1 },
    { id: 2 },
  ])
})

const many = 5000

test('a resumed copy has what has changed since it was interrupted, and copies nothing else again', async (context) => {
  const installation = await openInstallation(context)
  const { path, url, run, printed } = installation
  withFile(path, (database) =>
    database.exec(`WITH RECURSIVE numbers (n) AS (SELECT 3 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${many})
      INSERT INTO run_events (id, run_id, sequence, at, type, data) SELECT n, 'id-1', n, 0, 'log', '{}' FROM numbers`),
  )
  await run()
  await interrupt(installation)
  await query(url, `DELETE FROM ${copySchema}.run_events WHERE id > ${many - 10}`)
  const version = `SELECT xmin::text FROM ${copySchema}.run_events WHERE id = 1500`
  const [before] = await query(url, version)
  withFile(path, (database) => {
    database.exec(`PRAGMA foreign_keys = ON; UPDATE accounts SET name = 'changed' WHERE id = 'id-1';
      DELETE FROM run_events WHERE run_id = 'id-2' OR id = 3000; DELETE FROM run_steps WHERE run_id = 'id-2';
      DELETE FROM wait_links WHERE run_id = 'id-2'; DELETE FROM run_waits WHERE run_id = 'id-2';
      DELETE FROM attempt_reports WHERE run_id = 'id-2'; DELETE FROM run_files WHERE run_id = 'id-2';
      DELETE FROM unused_blobs WHERE key = 'id-2'; DELETE FROM artifacts WHERE run_id = 'id-2'; DELETE FROM runs WHERE id = 'id-2';
      UPDATE run_events SET data = '"changed"' WHERE id = 4000;
      INSERT INTO run_events (id, run_id, sequence, at, type, data) VALUES (9000, 'id-1', 9000, 0, 'log', '{}')`)
  })
  await run()
  expect(await query(url, version.replace(copySchema, 'execution_service'))).toEqual([before])
  const changes = await query(
    url,
    `SELECT (SELECT name FROM execution_service.accounts WHERE id = 'id-1') AS name,
      (SELECT count(*)::int FROM execution_service.runs) AS runs,
      (SELECT count(*)::int FROM execution_service.run_events) AS events,
      (SELECT data FROM execution_service.run_events WHERE id = 4000) AS data`,
  )
  expect(changes).toEqual([{ name: 'changed', runs: 1, events: many - 1, data: '"changed"' }])
  expect(printed()).not.toContain('Starting over.')
})

test('a resumed copy starts over when rows have exchanged values that must be unique', async (context) => {
  const installation = await openInstallation(context)
  const { path, url, run, printed } = installation
  await run()
  await interrupt(installation)
  withFile(path, (database) =>
    database.exec(`UPDATE api_keys SET hash = x'00' WHERE id = 'id-1'; UPDATE api_keys SET hash = x'00ff01' WHERE id = 'id-2';
      UPDATE api_keys SET hash = x'00ff02' WHERE id = 'id-1'`),
  )
  await run()
  expect(printed()).toContain('conflict with the copy. Starting over.')
  expect(await query(url, "SELECT encode(hash, 'hex') AS hash FROM execution_service.api_keys ORDER BY id")).toEqual([
    { hash: '00ff02' },
    { hash: '00ff01' },
  ])
})

test('a database that contains an installation is refused', async (context) => {
  const { settings, run } = await openInstallation(context)
  await run()
  rmSync(`${settings.DATA_DIR}/moved-to-postgresql`)
  await expect(run()).rejects.toThrow(/already contains an installation: use an empty database, or drop its schema/)
})

test('a store that another process has open is refused without --serving', async (context) => {
  const { settings, run } = await openInstallation(context)
  const store = await openSqliteStore(settings.DATA_DIR)
  context.onTestFinished(() => store.close())
  await expect(run()).rejects.toThrow(/is in use: stop the service, its workers and commands, or pass --serving/)
})

test('with --serving, a program that keeps the store locked is reported in one sentence', async (context) => {
  const { path } = await openInstallation(context)
  const other = new DatabaseSync(path)
  context.onTestFinished(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  const locked = lockSource(path, true, 1)
  await expect(locked).rejects.toThrow(SourceInUse)
  await expect(locked).rejects.toThrow(/service.db is locked by a command that writes to it: wait until it has ended/)
})

test('with --serving, the service can read but not write until the command ends', async (context) => {
  const { settings, url, run } = await openInstallation(context)
  const store = await openSqliteStore(settings.DATA_DIR, { lockWaitMillisecondsMax: 1 })
  context.onTestFinished(() => store.close())
  const rename = () => store.write(({ all }) => all("UPDATE accounts SET name = 'late'", []))
  await run({ serving: true }, async () => {
    await expect(rename()).rejects.toThrow(StoreUnavailable)
    expect(await new Accounts(store).list()).toHaveLength(2)
    expect(await query(url, 'SELECT name FROM execution_service.accounts')).toHaveLength(2)
  })
  await rename()
})

test('a store whose key is missing or different is refused before anything is copied', async (context) => {
  const { settings, url } = await openInstallation(context)
  const other = { ...settings, ENCRYPTION_KEY: Buffer.alloc(32, 8).toString('base64') }
  await expect(migrateStore({ to: url }, other)).rejects.toThrow(/ENCRYPTION_KEY does not decrypt the values/)
  expect(await query(url, "SELECT 1 FROM pg_namespace WHERE nspname LIKE 'execution%'")).toEqual([])
})
