/** The findings of `doctor` for a PostgreSQL database; faults are real where a test database can have them. */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import {
  checkCommit,
  checkConnections,
  checkDatabase,
  checkDatabaseDurability,
  checkDatabasePrivileges,
  checkDatabaseStore,
  checkSnapshots,
  evaluateCommit,
} from '../../src/commands/doctor/database.ts'
import { checkClock, examine, openDatabase } from '../../src/commands/doctor/doctor.ts'
import { checkEncryptionKey } from '../../src/commands/doctor/encryption-key.ts'
import { checkWorkers } from '../../src/commands/doctor/service.ts'
import { readConfig } from '../../src/config/config.ts'
import { Accounts } from '../../src/domain/accounts/accounts.ts'
import type { DatabaseFacts, DatabaseInspection } from '../../src/storage/postgres/postgres-inspection.ts'
import { openPostgresStore } from '../../src/storage/postgres/postgres-store.ts'
import { newDirectory, type Test } from '../support/domain.ts'
import { postgres } from '../support/postgres.ts'
import { serviceSettings } from '../support/service.ts'

const config = readConfig({})

/** Creates a database with the service's tables, or an empty one. */
async function database(test: Test, { empty = false } = {}): Promise<string> {
  const url = await postgres.prepare({ empty })
  test.onTestFinished(() => postgres.remove(url))
  if (!empty) await (await openPostgresStore(url)).close()
  return url
}

async function inspect(test: Test, url: string) {
  const read = await openDatabase(url)
  test.onTestFinished(async () => void ('inspection' in read && (await read.inspection?.close())))
  return read
}

async function change(url: string, sql: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(sql).finally(() => client.end())
}

/** Inspects an empty database, with some facts replaced. */
async function inspectWith(test: Test, facts: Partial<DatabaseFacts>) {
  const read = await inspect(test, await database(test, { empty: true }))
  const { inspection } = read as { inspection: DatabaseInspection }
  return { inspection: { ...inspection, facts: { ...inspection.facts, ...facts } } }
}

/** Creates a role without privileges, and returns the URL to connect as it. */
async function createOtherRole(test: Test, url: string) {
  const role = `stranger_${randomBytes(8).toString('hex')}`
  await change(url, `CREATE ROLE ${role} LOGIN PASSWORD 'test'`)
  test.onTestFinished(() => change(url, `DROP OWNED BY ${role}; DROP ROLE ${role}`))
  const urlOfRole = new URL(url)
  Object.assign(urlOfRole, { username: role, password: 'test' })
  return { role, url: urlOfRole.href }
}

describe('a database', () => {
  test('passes when it is reachable, has this version, and belongs to the role', async (test) => {
    const url = await database(test)
    const read = await inspect(test, url)
    expect(checkDatabase(read)).toMatchObject({ status: 'ok', detail: expect.stringMatching(/^PostgreSQL 1[5-8] at /) })
    expect(checkDatabasePrivileges(read, config)).toMatchObject({
      status: 'ok',
      detail: expect.stringContaining('owns the schema'),
    })
    expect(await checkDatabaseStore(read)).toMatchObject({ status: 'ok', detail: expect.stringContaining('schema') })
    expect(await checkCommit(read)).toMatchObject({ detail: expect.stringMatching(/^a commit takes \d+\.\d ms/) })
    expect(await checkWorkers(read, 'absent', Date.now())).toMatchObject({ status: 'ok' })
  })

  test('is not changed by doctor', async (test) => {
    const url = await database(test)
    const before = await postgres.contents(url)
    const settings = {
      ...serviceSettings({ DATA_DIR: await newDirectory(test) }),
      DATABASE_URL: url,
      BROWSER_PATH: '/nowhere',
    }
    const results = []
    for await (const result of examine(settings)) results.push(result)
    expect(results.map(({ name }) => name)).toEqual(expect.arrayContaining(['database', 'commit', 'encryption key']))
    expect(JSON.stringify(results)).not.toMatch(/postgres(ql)?:\/\//)
    expect((await postgres.contents(url)).equals(before)).toBe(true)
  })

  test('fails when it is unreachable, and dependent checks are skipped', async (test) => {
    const read = await inspect(test, 'postgres://ada:secret@127.0.0.1:1/none')
    const finding = checkDatabase(read)
    expect(finding).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('127.0.0.1:1/none cannot be reached'),
    })
    expect(JSON.stringify(finding)).not.toContain('secret')
    for (const check of [checkDatabasePrivileges, checkDatabaseDurability, checkConnections]) {
      expect(check(read, config)).toMatchObject({ status: 'warn', advice: 'Fix the database first.' })
    }
  })

  test('passes when it is empty: the first start creates everything', async (test) => {
    const read = await inspect(test, await database(test, { empty: true }))
    expect(checkDatabasePrivileges(read, config)).toMatchObject({
      status: 'ok',
      detail: expect.stringContaining('first start'),
    })
    expect(await checkDatabaseStore(read)).toMatchObject({ status: 'ok', detail: expect.stringContaining('none yet') })
  })

  test('fails when the role may not create the missing schema', async (test) => {
    const { role, url } = await createOtherRole(test, await database(test, { empty: true }))
    expect(checkDatabasePrivileges(await inspect(test, url), config)).toMatchObject({
      status: 'fail',
      detail: `"${role}" may not create the schema that the service needs`,
      advice: expect.stringContaining(`GRANT CREATE ON DATABASE … TO ${role}`),
    })
  })

  test('is examined over a single connection', async (test) => {
    const created = await database(test)
    const { role, url } = await createOtherRole(test, created)
    await change(created, `ALTER ROLE ${role} CONNECTION LIMIT 1`)
    expect(checkDatabase(await inspect(test, url))).toMatchObject({ status: 'ok' })
  })

  test('fails when another role owns the tables', async (test) => {
    const { url } = await createOtherRole(test, await database(test))
    expect(checkDatabasePrivileges(await inspect(test, url), config)).toMatchObject({
      status: 'fail',
      detail: expect.stringMatching(/^execution_service \(and \d+ more\) is not owned by/),
    })
  })

  test('passes with an earlier schema, and fails with a newer one unless this version runs on it', async (test) => {
    const url = await database(test)
    await change(url, "DELETE FROM execution_service.kysely_migration WHERE name LIKE '0001%'")
    expect(await checkDatabaseStore(await inspect(test, url))).toMatchObject({
      status: 'ok',
      detail: expect.stringContaining('the next start migrates it (0001-schema'),
    })
    await change(
      url,
      "INSERT INTO execution_service.kysely_migration VALUES ('9999-future', '2030-01-01T00:00:00.000Z')",
    )
    expect(await checkDatabaseStore(await inspect(test, url))).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('newer version of this service (it has 9999-future)'),
    })
    await change(
      url,
      `INSERT INTO execution_service.kysely_migration VALUES ('0001-schema', '2020-01-01T00:00:00.000Z');
       INSERT INTO execution_service.schema_compatibility VALUES ('9999-future', '0.2.0')`,
    )
    expect(await checkDatabaseStore(await inspect(test, url))).toMatchObject({
      status: 'ok',
      detail: expect.stringContaining('(it has 9999-future), on whose schema this version runs'),
    })
  })

  test('provides the latest write for the check of the clock', async (test) => {
    const url = await database(test)
    const store = await openPostgresStore(url)
    await new Accounts(store).createFirst()
    await store.close()
    const read = await inspect(test, url)
    expect(await checkClock(read, Date.now())).toMatchObject({ status: 'ok' })
    expect(await checkClock(read, Date.now() - 3_600_000)).toMatchObject({ status: 'fail' })
  })

  test('warns about a transaction that has kept a snapshot for long, and names its process', async (test) => {
    const url = await database(test)
    const client = new pg.Client({ connectionString: url, application_name: 'report' })
    await client.connect()
    test.onTestFinished(() => client.end())
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1')
    const { rows } = await client.query('SELECT pg_backend_pid() AS pid')
    const read = await inspect(test, url)
    expect(checkSnapshots(read, config)).toMatchObject({ status: 'ok' })
    const { oldestSnapshot } = (read as { inspection: DatabaseInspection }).inspection.facts
    expect(oldestSnapshot?.held).toBe(`process ${rows[0].pid} of PostgreSQL (report, idle in transaction)`)
    const held = await inspectWith(test, { oldestSnapshot: { held: oldestSnapshot?.held ?? '', seconds: 720 } })
    expect(checkSnapshots(held, config)).toEqual({
      status: 'warn',
      detail: `${oldestSnapshot?.held} has kept a snapshot for 12 minutes: dead rows stay, and claims get slower`,
      advice: 'End its transaction.',
    })
  })

  test.each<[what: string, facts: Partial<DatabaseFacts>, detail: RegExp]>([
    ['fsync is off', { fsync: false, fullPageWrites: true }, /^fsync is off: .* may lose acknowledged runs$/],
    ['pages may be torn', { fsync: true, fullPageWrites: false }, /^full_page_writes is off: /],
    ['both are off', { fsync: false, fullPageWrites: false }, /^fsync and full_page_writes are off: /],
  ])('warns when commits are not durable: %s', async (_, facts, detail) => {
    const read = { inspection: { facts } as DatabaseInspection }
    expect(checkDatabaseDurability(read, config)).toMatchObject({
      status: 'warn',
      detail: expect.stringMatching(detail),
    })
  })

  test('is evaluated by version, standby, free connections and commit time', async (test) => {
    expect(checkDatabase(await inspectWith(test, { version: 14 }))).toMatchObject({ status: 'fail' })
    expect(checkDatabase(await inspectWith(test, { version: 19 }))).toMatchObject({ status: 'warn' })
    expect(checkDatabase(await inspectWith(test, { isReadOnly: true }))).toMatchObject({ status: 'fail' })
    const durable = await inspectWith(test, { fsync: true, fullPageWrites: true })
    expect(checkDatabaseDurability(durable, config)).toMatchObject({ status: 'ok' })
    const connections = { connectionsMax: 100, connectionsReserved: 3 }
    const belowLimit = await inspectWith(test, { ...connections, connectionsUsed: 85 })
    expect(checkConnections(belowLimit, config)).toMatchObject({ status: 'ok' })
    const full = await inspectWith(test, { ...connections, connectionsUsed: 86 })
    expect(checkConnections(full, config)).toMatchObject({
      status: 'warn',
      detail: expect.stringContaining('11 are left'),
    })
    expect(evaluateCommit(900)).toMatchObject({ status: 'ok', detail: 'a commit takes 0.9 ms from here' })
    expect(evaluateCommit(80_000)).toMatchObject({ status: 'warn' })
  })
})

test('with a shared database, a key in a file is a warning', async (test) => {
  const read = await inspect(test, await database(test))
  const DATA_DIR = await newDirectory(test)
  const settings = { DATABASE_URL: 'postgres://127.0.0.1/none', DATA_DIR }
  expect(await checkEncryptionKey(readConfig(settings), read)).toMatchObject({
    status: 'warn',
    advice: 'Set ENCRYPTION_KEY on all machines before that.',
  })
  const withKey = { ...settings, ENCRYPTION_KEY: Buffer.alloc(32).toString('base64') }
  expect(await checkEncryptionKey(readConfig(withKey), read)).toMatchObject({ status: 'ok' })
})
