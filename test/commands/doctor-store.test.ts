/** What `doctor` finds in a data directory: each fault is made for real, beside what is well. */
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
import type { Kysely } from 'kysely'
import { Migrator } from 'kysely/migration'
import { describe, expect, test } from 'vitest'
import { checkDisk, checkDurability, diskSpeed, durability } from '../../src/commands/doctor/durability.ts'
import { checkEncryptionKey } from '../../src/commands/doctor/encryption-key.ts'
import { checkClock, checkStore, checkStoreSize, storeSize } from '../../src/commands/doctor/store.ts'
import { readStore } from '../../src/commands/doctor/subject.ts'
import { readConfig } from '../../src/config.ts'
import { Accounts } from '../../src/domain/accounts/accounts.ts'
import * as initial from '../../src/storage/migrations/0001-initial.ts'
import { connect, sqliteColumnTypes } from '../../src/storage/sqlite/sqlite-connection.ts'
import { openSqliteStore } from '../../src/storage/sqlite/sqlite-store.ts'
import { newAccount, newPlace, openDomain, queueRun, type Test, workflow } from '../support/domain.ts'

const minute = 60_000

/** As `doctor` reads it, closed when the test ends. */
async function read(test: Test, place: string) {
  const found = await readStore(place)
  test.onTestFinished(() => void ('inspection' in found && found.inspection?.close()))
  return found
}

/** A store that nobody has open, with an account in it. */
async function closedStore(test: Test): Promise<string> {
  const place = await newPlace(test)
  const store = await openSqliteStore(place)
  await new Accounts(store).createFirst()
  await store.close()
  return place
}

function change(place: string, sql: string): void {
  const database = new DatabaseSync(join(place, 'service.db'))
  database.exec(sql)
  database.close()
}

describe('the store', () => {
  test('is well when it is whole and of this version, also while others use it', async (test) => {
    const { place, accounts } = await openDomain(test)
    await accounts.createFirst()
    const found = await read(test, place)
    const path = join(place, 'service.db')
    expect(await checkStore(found)).toMatchObject({ status: 'ok', detail: expect.stringContaining(`${path} is whole`) })
    expect(checkStoreSize(found)).toMatchObject({ status: 'ok', detail: expect.stringMatching(/\d [KM]B in its/) })
  })

  test('fails when a newer version has migrated it', async (test) => {
    const place = await closedStore(test)
    change(place, "INSERT INTO kysely_migration VALUES ('9999-future', '2030-01-01T00:00:00.000Z')")
    expect(await checkStore(await read(test, place))).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('newer version of this service (it has 9999-future)'),
      advice: 'Start that version, or restore a backup.',
    })
  })

  test('is told to be of an earlier version, whose clock is still examined', async (test) => {
    const place = await newPlace(test)
    const { database, tx } = connect(join(place, 'service.db'), { readOnly: false })
    const provider = {
      getMigrations: async () => ({
        '0001-initial': { up: (db: Kysely<unknown>) => initial.up(db, sqliteColumnTypes) },
      }),
    }
    await new Migrator({ db: tx.query, provider }).migrateToLatest()
    const at = Date.now()
    database.exec(`INSERT INTO accounts (id, name, scopes_enabled, created_at) VALUES ('a', 'Default', 0, ${at})`)
    database.close()
    const found = await read(test, place)
    const detail = expect.stringMatching(/earlier version; the next start migrates it \(0002-dashboard, .+\)$/)
    expect(await checkStore(found)).toMatchObject({ status: 'ok', detail })
    expect(await checkClock(found, at)).toMatchObject({ status: 'ok' })
    expect(await checkClock(found, at - 2 * minute)).toMatchObject({ status: 'fail' })
  })

  test('fails when a page of it is damaged', async (test) => {
    const place = await closedStore(test)
    const file = openSync(join(place, 'service.db'), 'r+')
    writeSync(file, Buffer.alloc(4096, '?'), 0, 4096, 4096 * 5)
    closeSync(file)
    expect(await checkStore(await read(test, place))).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('service.db is damaged ('),
      advice: expect.stringContaining('restore the data directory from a backup'),
    })
  })

  test('fails when it is no database', async (test) => {
    const place = await newPlace(test)
    writeFileSync(join(place, 'service.db'), 'A letter to the editor.\n'.repeat(1000))
    const found = await read(test, place)
    expect(await checkStore(found)).toMatchObject({
      status: 'fail',
      detail: 'the store does not open (file is not a database)',
    })
    expect(checkStoreSize(found)).toMatchObject({ status: 'warn', advice: 'Mend the store first.' })
  })

  test('is not waited for without end: the check that takes too long is ended', async (test) => {
    const found = await read(test, await closedStore(test))
    expect(await checkStore(found, 1)).toMatchObject({
      status: 'warn',
      detail: expect.stringContaining('SQLite was not through with its check after 0.001 s'),
    })
  })

  test('is told to have a log that is not emptied', () => {
    expect(storeSize({ file: 5e9, log: 1e6 })).toMatchObject({ status: 'ok', detail: expect.stringMatching(/^5.0 GB/) })
    expect(storeSize({ file: 5e9, log: 2e9 })).toMatchObject({ status: 'warn' })
  })
})

describe('durability', () => {
  test('is what the settings of the service give it on a disk', async (test) => {
    const place = await closedStore(test)
    const found = await read(test, place)
    const store = 'inspection' in found ? found.inspection : undefined
    expect(await checkDurability(place, store)).toMatchObject({ status: 'ok' })
  })

  test.each([
    ['fail', 'a file system without a write-ahead log', { journalMode: 'delete', synchronous: 2 }],
    ['fail', 'a SQLite that does not sync every commit', { journalMode: 'wal', synchronous: 1 }],
  ])('%ss for %s', (status, _, settings) => {
    expect(durability(settings, undefined)).toMatchObject({ status })
  })

  test('fails where nothing can be written', async () => {
    expect(await checkDurability('/proc', undefined)).toMatchObject({ status: 'fail' })
    expect(await checkDisk('/proc')).toMatchObject({ status: 'warn', advice: 'Mend the data directory first.' })
  })

  test('is told when another program has taken the write-ahead log away', async (test) => {
    const place = await closedStore(test)
    change(place, 'PRAGMA journal_mode = DELETE')
    const found = await read(test, place)
    const store = 'inspection' in found ? found.inspection : undefined
    expect(await checkDurability(place, store)).toMatchObject({ status: 'warn' })
    // It was not set to WAL by looking at it.
    expect(await read(test, place)).toMatchObject({ inspection: { journalMode: 'delete' } })
  })

  test.each([
    [5, 'warn', 'a page is written and fsynced in 5 µs: no disk is that fast'],
    [20, 'ok', 'a page is written and fsynced in 20 µs'],
    [1700, 'ok', 'a page is written and fsynced in 1.7 ms'],
    [100_000, 'ok', 'a page is written and fsynced in 100.0 ms'],
    [250_000, 'warn', 'a page is written and fsynced in 250.0 ms, and each request to queue a run waits'],
  ])('on a disk of %d µs is %s', (microseconds, status, start) => {
    expect(diskSpeed(microseconds)).toMatchObject({ status, detail: expect.stringMatching(new RegExp(`^${start}`)) })
  })
})

/** What /dev/shm is on Linux: a file system in memory (statfs(2)), whose fsync does nothing. */
const tmpfs = 0x01021994

const memory = existsSync('/dev/shm') && statfsSync('/dev/shm').type === tmpfs

test.runIf(memory)('a disk that is memory is told by its speed', async () => {
  expect(await checkDisk('/dev/shm')).toMatchObject({
    status: 'warn',
    detail: expect.stringMatching(/in \d+ µs: no disk is that fast, so that a power cut may lose runs/),
  })
})

/** A store with the secret of a run, and the file with its key. */
async function withSecret(test: Test) {
  const secret = { type: 'object', properties: { token: { type: 'string', writeOnly: true } } }
  const domain = await openDomain(test, { workflows: [workflow({ variables: secret })] })
  const { principal } = await newAccount(domain)
  await queueRun(domain, principal, { variables: { token: 'a very secret one' } })
  const key = hash('sha256', domain.place, 'buffer').toString('base64')
  const path = join(domain.place, 'encryption.key')
  writeFileSync(path, `${key}\n`, { mode: 0o600 })
  const found = await read(test, domain.place)
  const check = (ENCRYPTION_KEY = '') =>
    checkEncryptionKey(readConfig({ DATA_DIR: domain.place, ENCRYPTION_KEY }), found)
  return { path, key, check }
}

const wrongKey = Buffer.alloc(32, 7).toString('base64')

describe('the encryption key', () => {
  test('is well when it opens what the store holds, from the file and from the environment', async (test) => {
    const { path, key, check } = await withSecret(test)
    expect(await check()).toEqual({ status: 'ok', detail: `${path} opens what the store holds`, advice: null })
    expect(await check(key)).toMatchObject({ status: 'ok', detail: 'ENCRYPTION_KEY opens what the store holds' })
  })

  test('fails when others can read it', async (test) => {
    const { path, check } = await withSecret(test)
    chmodSync(path, 0o644)
    const detail = `${path} can be read by others than its owner (its mode is 0644)`
    expect(await check()).toEqual({ status: 'fail', detail, advice: `Run \`chmod 600 ${path}\`.` })
  })

  test.runIf(process.getuid?.() === 0)('fails when it belongs to another user than the store does', async (test) => {
    const { path, check } = await withSecret(test)
    chownSync(path, 4242, 4242)
    const detail = `${path} belongs to user 4242, and the store to user 0`
    expect(await check()).toMatchObject({ status: 'fail', detail })
  })

  test('fails when it is missing, and is not made anew: nothing would open what the store holds', async (test) => {
    const { path, check } = await withSecret(test)
    rmSync(path)
    expect(await check()).toMatchObject({ status: 'fail', detail: expect.stringContaining(`${path} is missing, and`) })
    expect(existsSync(path)).toBe(false)
  })

  test('fails when it is another one, or no key, and is not shown', async (test) => {
    const { path, check } = await withSecret(test)
    for (const text of [wrongKey, 'no key']) {
      writeFileSync(path, text)
      const found = await check()
      expect(found).toMatchObject({ status: 'fail', advice: expect.stringContaining(`Restore ${path} from a backup`) })
      expect(JSON.stringify(found)).not.toContain(text)
    }
    const found = await check(wrongKey)
    expect(found).toMatchObject({ status: 'fail', advice: expect.stringMatching(/^Set ENCRYPTION_KEY to the key/) })
    expect(JSON.stringify(found)).not.toContain(wrongKey)
  })
})

describe('the clock', () => {
  test.for<[number, string, RegExp]>([
    [0, 'ok', /^it is \d{4}-/],
    [-30_000, 'ok', /^it is \d{4}-/],
    [-2 * minute, 'fail', /, 2 minutes behind what the store remembers/],
    [-3 * 24 * 60 * minute, 'fail', /, 3 days behind/],
    [365 * 24 * 60 * minute, 'ok', /^it is /],
  ])('that is %d ms off is %s', async ([off, status, detail], test) => {
    const domain = await openDomain(test)
    const { principal } = await newAccount(domain)
    await queueRun(domain, principal)
    const found = await read(test, domain.place)
    expect(await checkClock(found, Date.now() + off)).toMatchObject({ status, detail: expect.stringMatching(detail) })
  })

  test('that was never set fails without a store', async () => {
    expect(await checkClock({ inspection: undefined }, 0)).toMatchObject({
      status: 'fail',
      detail: 'it is 1970-01-01T00:00:00Z, before this version was written',
    })
  })
})
