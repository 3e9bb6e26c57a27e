/** The findings of `doctor` for the embedded store, with real faults. */
import { hash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  openSync,
  rmSync,
  statfsSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Migrator } from 'kysely/migration'
import { describe, expect, test } from 'vitest'
import { checkClock, openEmbeddedStore } from '../../src/commands/doctor/doctor.ts'
import {
  checkDisk,
  checkDurability,
  checkStore,
  checkStoreSize,
  evaluateDurability,
  evaluateFsync,
  evaluateStoreSize,
} from '../../src/commands/doctor/embedded-store.ts'
import { checkEncryptionKey } from '../../src/commands/doctor/encryption-key.ts'
import { readConfig } from '../../src/config/config.ts'
import { Accounts } from '../../src/domain/accounts/accounts.ts'
import { connect } from '../../src/storage/sqlite/sqlite-connection.ts'
import { openSqliteStore } from '../../src/storage/sqlite/sqlite-store.ts'
import { newAccount, newDirectory, openDomain, queueRun, type Test, workflow } from '../support/domain.ts'
import { waitLimits } from '../support/timeouts.ts'

const minute = 60_000

/** Opens a store as `doctor` does, until the test ends. */
async function open(test: Test, directory: string) {
  const inspected = await openEmbeddedStore(directory)
  test.onTestFinished(() => void ('inspection' in inspected && inspected.inspection?.close()))
  return inspected
}

/** Creates a store with an account, and closes it. */
async function createStore(test: Test): Promise<string> {
  const directory = await newDirectory(test)
  const store = await openSqliteStore(directory)
  await new Accounts(store).createFirst()
  await store.close()
  return directory
}

function change(directory: string, sql: string): void {
  const database = new DatabaseSync(join(directory, 'service.db'))
  database.exec(sql)
  database.close()
}

describe('the store', () => {
  test('passes when it is intact and has this version, also while it is in use', async (test) => {
    const { location, accounts } = await openDomain(test)
    await accounts.createFirst()
    const inspected = await open(test, location)
    const path = join(location, 'service.db')
    expect(await checkStore(inspected)).toMatchObject({
      status: 'ok',
      detail: expect.stringContaining(`${path} is intact`),
    })
    expect(checkStoreSize(inspected)).toMatchObject({ status: 'ok', detail: expect.stringMatching(/\d [KM]B in its/) })
  })

  test('warns of a changed schema', async (test) => {
    const directory = await createStore(test)
    change(directory, 'CREATE TRIGGER spy AFTER INSERT ON users BEGIN SELECT 1; END; DROP INDEX users_by_account')
    expect(await checkStore(await open(test, directory))).toMatchObject({
      status: 'warn',
      detail: expect.stringContaining('was changed (trigger spy, index users_by_account)'),
    })
  })

  test('fails with a newer schema, unless this version runs on it', async (test) => {
    const directory = await createStore(test)
    change(directory, "INSERT INTO kysely_migration VALUES ('9999-future', '2030-01-01T00:00:00.000Z')")
    expect(await checkStore(await open(test, directory))).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('newer version of this service (it has 9999-future)'),
      advice: 'Start that version, or restore a backup.',
    })
    change(directory, "INSERT INTO schema_compatibility VALUES ('9999-future', '0.2.0')")
    expect(await checkStore(await open(test, directory))).toMatchObject({
      status: 'ok',
      detail: expect.stringContaining('(it has 9999-future), on whose schema this version runs'),
    })
  })

  test('passes with an earlier schema, and the clock is still checked', async (test) => {
    const directory = await newDirectory(test)
    const { database, tx } = connect(join(directory, 'service.db'), { readOnly: false })
    // A migrator that has applied none of the migrations, and one of the tables.
    await new Migrator({ db: tx.query, provider: { getMigrations: async () => ({}) } }).migrateToLatest()
    const at = Date.now()
    database.exec(`CREATE TABLE accounts (created_at BIGINT NOT NULL); INSERT INTO accounts VALUES (${at})`)
    database.close()
    const inspected = await open(test, directory)
    const detail = expect.stringMatching(/earlier schema; the next start migrates it \(0001-schema\)$/)
    expect(await checkStore(inspected)).toMatchObject({ status: 'ok', detail })
    expect(await checkClock(inspected, at)).toMatchObject({ status: 'ok' })
    expect(await checkClock(inspected, at - 2 * minute)).toMatchObject({ status: 'fail' })
  })

  test('fails when a page is damaged', async (test) => {
    const directory = await createStore(test)
    const file = openSync(join(directory, 'service.db'), 'r+')
    writeSync(file, Buffer.alloc(4096, '?'), 0, 4096, 4096 * 5)
    closeSync(file)
    expect(await checkStore(await open(test, directory))).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('service.db is damaged ('),
      advice: expect.stringContaining('restore the data directory from a backup'),
    })
  })

  test('fails when it is not a database', async (test) => {
    const directory = await newDirectory(test)
    writeFileSync(join(directory, 'service.db'), 'A letter to the editor.\n'.repeat(1000))
    const inspected = await open(test, directory)
    expect(await checkStore(inspected)).toMatchObject({
      status: 'fail',
      detail: 'the store cannot be opened (file is not a database)',
    })
    expect(checkStoreSize(inspected)).toMatchObject({ status: 'warn', advice: 'Fix the store first.' })
  })

  test('is checked for a limited time', async (test) => {
    const inspected = await open(test, await createStore(test))
    expect(await checkStore(inspected, 1)).toMatchObject({
      status: 'warn',
      detail: expect.stringContaining("SQLite's check did not finish within 0.001 s"),
    })
  })

  test('warns about a write-ahead log that is not truncated', () => {
    expect(evaluateStoreSize({ file: 5e9, log: 1e6 })).toMatchObject({
      status: 'ok',
      detail: expect.stringMatching(/^5.0 GB/),
    })
    expect(evaluateStoreSize({ file: 5e9, log: 2e9 })).toMatchObject({ status: 'warn' })
  })
})

describe('durability', () => {
  test('passes with the settings of the service on a disk', async (test) => {
    const directory = await createStore(test)
    const inspected = await open(test, directory)
    const store = 'inspection' in inspected ? inspected.inspection : undefined
    expect(await checkDurability(directory, store)).toMatchObject({ status: 'ok' })
  })

  test.each([
    ['fail', 'a file system without a write-ahead log', { journalMode: 'delete', synchronous: 2 }],
    ['fail', 'a SQLite that does not sync every commit', { journalMode: 'wal', synchronous: 1 }],
  ])('%ss for %s', (status, _, settings) => {
    expect(evaluateDurability(settings, undefined)).toMatchObject({ status })
  })

  test('fails where nothing can be written', async () => {
    expect(await checkDurability('/proc', undefined)).toMatchObject({ status: 'fail' })
    expect(await checkDisk('/proc')).toMatchObject({ status: 'warn', advice: 'Fix the data directory first.' })
  })

  test('warns when another program has turned off the write-ahead log', async (test) => {
    const directory = await createStore(test)
    change(directory, 'PRAGMA journal_mode = DELETE')
    const inspected = await open(test, directory)
    const store = 'inspection' in inspected ? inspected.inspection : undefined
    expect(await checkDurability(directory, store)).toMatchObject({ status: 'warn' })
    // The inspection did not turn it on.
    expect(await open(test, directory)).toMatchObject({ inspection: { journalMode: 'delete' } })
  })

  test.each([
    [5, 'warn', 'writing and syncing a page takes 5 µs: no disk is that fast'],
    [20, 'ok', 'writing and syncing a page takes 20 µs'],
    [1700, 'ok', 'writing and syncing a page takes 1.7 ms'],
    [100_000, 'ok', 'writing and syncing a page takes 100.0 ms'],
    [250_000, 'warn', 'writing and syncing a page takes 250.0 ms: each request that queues a run waits'],
  ])('with %d µs per page is %s', (microseconds, status, start) => {
    expect(evaluateFsync(microseconds)).toMatchObject({
      status,
      detail: expect.stringMatching(new RegExp(`^${start}`)),
    })
  })
})

/** /dev/shm on Linux: a file system in memory (statfs(2)), whose fsync does nothing. */
const tmpfs = 0x01021994

const memory = existsSync('/dev/shm') && statfsSync('/dev/shm').type === tmpfs

test.runIf(memory)('a disk in memory is recognized by its speed', async () => {
  // On a busy machine, memory may be as slow as a fast disk for a moment.
  await expect
    .poll(() => checkDisk('/dev/shm'), waitLimits)
    .toMatchObject({
      status: 'warn',
      detail: expect.stringMatching(/takes \d+ µs: no disk is that fast, so a power cut may lose/),
    })
})

/** Creates a store with a run's secret, and its key file. */
async function withSecret(test: Test) {
  const secret = { type: 'object', properties: { token: { type: 'string', writeOnly: true } } }
  const domain = await openDomain(test, { workflows: [workflow({ variables: secret })] })
  const { principal } = await newAccount(domain)
  await queueRun(domain, principal, { variables: { token: 'a very secret one' } })
  const key = hash('sha256', domain.location, 'buffer').toString('base64')
  const path = join(domain.location, 'encryption.key')
  writeFileSync(path, `${key}\n`, { mode: 0o600 })
  const inspected = await open(test, domain.location)
  const check = (ENCRYPTION_KEY = '') =>
    checkEncryptionKey(readConfig({ DATA_DIR: domain.location, ENCRYPTION_KEY }), inspected)
  return { path, key, check }
}

const wrongKey = Buffer.alloc(32, 7).toString('base64')

describe('the encryption key', () => {
  test('passes when it decrypts the values in the store, from the file and from the environment', async (test) => {
    const { path, key, check } = await withSecret(test)
    expect(await check()).toEqual({ status: 'ok', detail: `${path} decrypts the values in the store`, advice: null })
    expect(await check(key)).toMatchObject({ status: 'ok', detail: 'ENCRYPTION_KEY decrypts the values in the store' })
  })

  test('fails when other users can read it', async (test) => {
    const { path, check } = await withSecret(test)
    chmodSync(path, 0o644)
    const detail = `other users can read ${path} (its mode is 0644)`
    expect(await check()).toEqual({ status: 'fail', detail, advice: `Run \`chmod 600 ${path}\`.` })
  })

  test.runIf(process.getuid?.() === 0)('fails when it belongs to another user than the store', async (test) => {
    const { path, check } = await withSecret(test)
    chownSync(path, 4242, 4242)
    const detail = `${path} belongs to user 4242, and the store to user 0`
    expect(await check()).toMatchObject({ status: 'fail', detail })
  })

  test('fails when it is missing, and no new one is created', async (test) => {
    const { path, check } = await withSecret(test)
    rmSync(path)
    expect(await check()).toMatchObject({ status: 'fail', detail: expect.stringContaining(`${path} is missing, and`) })
    expect(existsSync(path)).toBe(false)
  })

  test('fails when it is another key or invalid, and is not printed', async (test) => {
    const { path, check } = await withSecret(test)
    for (const text of [wrongKey, 'no key']) {
      writeFileSync(path, text)
      const finding = await check()
      expect(finding).toMatchObject({
        status: 'fail',
        advice: expect.stringContaining(`Restore ${path} from a backup`),
      })
      expect(JSON.stringify(finding)).not.toContain(text)
    }
    const finding = await check(wrongKey)
    expect(finding).toMatchObject({ status: 'fail', advice: expect.stringMatching(/^Set ENCRYPTION_KEY to the key/) })
    expect(JSON.stringify(finding)).not.toContain(wrongKey)
  })
})

describe('the clock', () => {
  test.for<[number, string, RegExp]>([
    [0, 'ok', /^it is \d{4}-/],
    [-30_000, 'ok', /^it is \d{4}-/],
    [-2 * minute, 'fail', /, 2 minutes behind the latest entry in the store/],
    [-3 * 24 * 60 * minute, 'fail', /, 3 days behind/],
    [365 * 24 * 60 * minute, 'ok', /^it is /],
  ])('that is off by %d ms is %s', async ([off, status, detail], test) => {
    const domain = await openDomain(test)
    const { principal } = await newAccount(domain)
    await queueRun(domain, principal)
    const inspected = await open(test, domain.location)
    expect(await checkClock(inspected, Date.now() + off)).toMatchObject({
      status,
      detail: expect.stringMatching(detail),
    })
  })

  test('that was never set fails even without a store', async () => {
    expect(await checkClock({ inspection: undefined }, 0)).toMatchObject({
      status: 'fail',
      detail: 'it is 1970-01-01T00:00:00Z, before this version was released',
    })
  })
})
