/** What `doctor` finds in a database: each fault is made for real where a database of the test's own can have it. */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import {
  checkCommit,
  checkConnections,
  checkDatabase,
  checkDatabaseDurability,
  checkDatabaseStore,
  checkRights,
  commitSpeed,
} from '../../src/commands/doctor/database.ts'
import { checkEncryptionKey } from '../../src/commands/doctor/encryption-key.ts'
import { examine } from '../../src/commands/doctor/examine.ts'
import { checkWorkers } from '../../src/commands/doctor/service.ts'
import { checkClock } from '../../src/commands/doctor/store.ts'
import { readDatabase } from '../../src/commands/doctor/subject.ts'
import { readConfig } from '../../src/config.ts'
import { Accounts } from '../../src/domain/accounts/accounts.ts'
import type { DatabaseFacts, DatabaseInspection } from '../../src/storage/postgres/postgres-inspection.ts'
import { openPostgresStore } from '../../src/storage/postgres/postgres-store.ts'
import { newPlace, type Test } from '../support/domain.ts'
import { postgres } from '../support/postgres.ts'
import { serviceSettings } from '../support/service.ts'

const config = readConfig({})

/** A database of the test's own, with what the service makes in it unless it is to be empty. */
async function database(test: Test, { empty = false } = {}): Promise<string> {
  const url = await postgres.prepare({ empty })
  test.onTestFinished(() => postgres.remove(url))
  if (!empty) await (await openPostgresStore(url)).close()
  return url
}

async function inspect(test: Test, url: string) {
  const read = await readDatabase(url)
  test.onTestFinished(async () => void ('inspection' in read && (await read.inspection?.close())))
  return read
}

async function change(url: string, sql: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(sql).finally(() => client.end())
}

/** The same, as a server with other settings would say it. */
async function saying(test: Test, facts: Partial<DatabaseFacts>) {
  const read = await inspect(test, await database(test, { empty: true }))
  const { inspection } = read as { inspection: DatabaseInspection }
  return { inspection: { ...inspection, facts: { ...inspection.facts, ...facts } } }
}

/** The URL for a role of the test's own, which may do nothing yet. */
async function strangerAt(test: Test, url: string) {
  const role = `stranger_${randomBytes(8).toString('hex')}`
  await change(url, `CREATE ROLE ${role} LOGIN PASSWORD 'stranger'`)
  test.onTestFinished(() => change(url, `DROP OWNED BY ${role}; DROP ROLE ${role}`))
  const stranger = new URL(url)
  Object.assign(stranger, { username: role, password: 'stranger' })
  return { role, url: stranger.href }
}

describe('a database', () => {
  test('is well when it can be reached, holds this version, and belongs to whoever asks', async (test) => {
    const url = await database(test)
    const read = await inspect(test, url)
    expect(checkDatabase(read)).toMatchObject({ status: 'ok', detail: expect.stringMatching(/^PostgreSQL 1[5-8] at /) })
    expect(checkRights(read, config)).toMatchObject({
      status: 'ok',
      detail: expect.stringContaining('owns the schemas execution_service and execution_service_jobs'),
    })
    expect(await checkDatabaseStore(read)).toMatchObject({ status: 'ok', detail: expect.stringContaining('schema') })
    expect(await checkCommit(read)).toMatchObject({ detail: expect.stringMatching(/^a commit takes \d+\.\d ms/) })
    expect(await checkWorkers(read, 'absent', Date.now())).toMatchObject({ status: 'ok' })
  })

  test('is not changed by being examined', async (test) => {
    const url = await database(test)
    const before = await postgres.contents(url)
    const settings = {
      ...serviceSettings({ DATA_DIR: await newPlace(test) }),
      DATABASE_URL: url,
      BROWSER_PATH: '/nowhere',
    }
    const results = []
    for await (const result of examine(settings)) results.push(result)
    expect(results.map(({ name }) => name)).toEqual(expect.arrayContaining(['database', 'commit', 'encryption key']))
    expect(JSON.stringify(results)).not.toMatch(/postgres(ql)?:\/\//)
    expect((await postgres.contents(url)).equals(before)).toBe(true)
  })

  test('fails when it cannot be reached, and everything that needs it is told to be unchecked', async (test) => {
    const read = await inspect(test, 'postgres://ada:secret@127.0.0.1:1/none')
    const finding = checkDatabase(read)
    expect(finding).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('127.0.0.1:1/none cannot be reached'),
    })
    expect(JSON.stringify(finding)).not.toContain('secret')
    for (const check of [checkRights, checkDatabaseDurability, checkConnections]) {
      expect(check(read, config)).toMatchObject({ status: 'warn', advice: 'Mend the database first.' })
    }
  })

  test('says that the first start makes everything, where nothing is made yet', async (test) => {
    const read = await inspect(test, await database(test, { empty: true }))
    expect(checkRights(read, config)).toMatchObject({ status: 'ok', detail: expect.stringContaining('first start') })
    expect(await checkDatabaseStore(read)).toMatchObject({ status: 'ok', detail: expect.stringContaining('none yet') })
  })

  test('fails when the role may not make what is missing', async (test) => {
    const { role, url } = await strangerAt(test, await database(test, { empty: true }))
    expect(checkRights(await inspect(test, url), config)).toMatchObject({
      status: 'fail',
      detail: `"${role}" may not make the schemas that the service needs`,
      advice: expect.stringContaining(`GRANT CREATE ON DATABASE … TO ${role}`),
    })
  })

  test('is examined where there is room for one connection alone', async (test) => {
    const made = await database(test)
    const { role, url } = await strangerAt(test, made)
    await change(made, `ALTER ROLE ${role} CONNECTION LIMIT 1`)
    expect(checkDatabase(await inspect(test, url))).toMatchObject({ status: 'ok' })
  })

  test('fails when what is made belongs to another role', async (test) => {
    const { url } = await strangerAt(test, await database(test))
    expect(checkRights(await inspect(test, url), config)).toMatchObject({
      status: 'fail',
      detail: expect.stringMatching(/^execution_service and \d+ more belongs to another role/),
    })
  })

  test('fails when a newer version has migrated it, and tells of an earlier one', async (test) => {
    const url = await database(test)
    await change(url, "DELETE FROM execution_service.kysely_migration WHERE name LIKE '0005%'")
    expect(await checkDatabaseStore(await inspect(test, url))).toMatchObject({
      status: 'ok',
      detail: expect.stringContaining('the next start migrates it (0005-several-machines'),
    })
    await change(
      url,
      "INSERT INTO execution_service.kysely_migration VALUES ('9999-future', '2030-01-01T00:00:00.000Z')",
    )
    expect(await checkDatabaseStore(await inspect(test, url))).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('newer version of this service (it has 9999-future)'),
    })
  })

  test('has a clock to compare with: what it remembers is not in the future', async (test) => {
    const url = await database(test)
    const store = await openPostgresStore(url)
    await new Accounts(store).createFirst()
    await store.close()
    const read = await inspect(test, url)
    expect(await checkClock(read, Date.now())).toMatchObject({ status: 'ok' })
    expect(await checkClock(read, Date.now() - 3_600_000)).toMatchObject({ status: 'fail' })
  })

  test.each<[what: string, facts: Partial<DatabaseFacts>, detail: RegExp]>([
    ['fsync is off', { fsync: false, fullPageWrites: true }, /^fsync is off: .* may lose runs that were acknowledged$/],
    ['pages may be torn', { fsync: true, fullPageWrites: false }, /^full_page_writes is off: /],
    ['both are off', { fsync: false, fullPageWrites: false }, /^fsync and full_page_writes are off: /],
  ])('warns when the server does not keep what it says: %s', async (_, facts, detail) => {
    const read = { inspection: { facts } as DatabaseInspection }
    expect(checkDatabaseDurability(read, config)).toMatchObject({
      status: 'warn',
      detail: expect.stringMatching(detail),
    })
  })

  test('is told apart by version, standby, connections that are left and speed', async (test) => {
    expect(checkDatabase(await saying(test, { version: 14 }))).toMatchObject({ status: 'fail' })
    expect(checkDatabase(await saying(test, { version: 19 }))).toMatchObject({ status: 'warn' })
    expect(checkDatabase(await saying(test, { isReadOnly: true }))).toMatchObject({ status: 'fail' })
    const durable = await saying(test, { fsync: true, fullPageWrites: true })
    expect(checkDatabaseDurability(durable, config)).toMatchObject({ status: 'ok' })
    const connections = { connectionsMax: 100, connectionsReserved: 3 }
    const room = await saying(test, { ...connections, connectionsUsed: 85 })
    expect(checkConnections(room, config)).toMatchObject({ status: 'ok' })
    const full = await saying(test, { ...connections, connectionsUsed: 86 })
    expect(checkConnections(full, config)).toMatchObject({
      status: 'warn',
      detail: expect.stringContaining('11 are left'),
    })
    expect(commitSpeed(900)).toMatchObject({ status: 'ok', detail: 'a commit takes 0.9 ms from here' })
    expect(commitSpeed(80_000)).toMatchObject({ status: 'warn' })
  })
})

test('the key of a database that several machines share is not in a file of one', async (test) => {
  const read = await inspect(test, await database(test))
  const DATA_DIR = await newPlace(test)
  const settings = { DATABASE_URL: 'postgres://127.0.0.1/none', DATA_DIR }
  expect(await checkEncryptionKey(readConfig(settings), read)).toMatchObject({
    status: 'warn',
    advice: 'Set ENCRYPTION_KEY on all of them before that.',
  })
  const withKey = { ...settings, ENCRYPTION_KEY: Buffer.alloc(32).toString('base64') }
  expect(await checkEncryptionKey(readConfig(withKey), read)).toMatchObject({ status: 'ok' })
})
