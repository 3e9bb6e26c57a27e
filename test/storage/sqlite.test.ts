/** What is promised of the embedded store alone: its settings on disk, its commits, its locks, a full disk. */
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { openSqliteStore, type SqliteOptions } from '../../src/storage/sqlite/sqlite-store.ts'
import { type Store, StoreUnavailable, type Transaction } from '../../src/storage/store.ts'
import { newPlace, openStore, type Test } from '../support/store.ts'
import { patience } from '../support/timeouts.ts'

const insertSql = 'INSERT INTO accounts (id, name, scopes_enabled, created_at) VALUES (?, ?, 0, 0)'

/** Writes an account whose name takes this many bytes. */
const insert =
  (id: string, bytes = 1) =>
  async (tx: Transaction) => {
    await tx.all(insertSql, [id, 'x'.repeat(bytes)])
  }

async function ids({ read }: Store): Promise<string[]> {
  return (await read.all<{ id: string }>('SELECT id FROM accounts ORDER BY id', [])).map(({ id }) => id)
}

async function openHere(test: Test, options: Partial<SqliteOptions> = {}) {
  const directory = await newPlace(test)
  const store = await openSqliteStore(directory, { fallbackNotifyMilliseconds: 3_600_000, ...options })
  test.onTestFinished(() => store.close())
  return { directory, store }
}

/** Another program that writes to the file, as far as SQLite can tell. */
function anotherWriter(test: Test, directory: string): DatabaseSync {
  const database = new DatabaseSync(join(directory, 'service.db'))
  test.onTestFinished(() => database.close())
  return database
}

test('every commit waits for the disk', async (test) => {
  const { store } = await openHere(test)
  const pragma = (name: string) => store.write((tx) => tx.all(`PRAGMA ${name}`, []))
  expect(await pragma('synchronous')).toEqual([{ synchronous: 2 }])
  expect(await pragma('journal_mode')).toEqual([{ journal_mode: 'wal' }])
  expect(await pragma('foreign_keys')).toEqual([{ foreign_keys: 1 }])
})

test('the connection that reads cannot write', async (test) => {
  const { store } = await openHere(test)
  await expect(insert('a')(store.read)).rejects.toThrow(StoreUnavailable)
  expect(await ids(store)).toEqual([])
})

test('the data directory is for its owner alone', async (test) => {
  const directory = join(await newPlace(test), 'made', 'by', 'the store')
  await openStore(test, directory)
  expect(statSync(directory).mode & 0o777).toBe(0o700)
})

/** The frame that ends a transaction holds the size of the database after it (sqlite.org/fileformat2.html, section 4.1). */
function commitsIn(directory: string): number {
  const wal = readFileSync(join(directory, 'service.db-wal'))
  const [headerBytes, frameHeaderBytes] = [32, 24]
  const pageBytes = wal.readUInt32BE(8)
  let commits = 0
  for (let at = headerBytes; at + frameHeaderBytes <= wal.length; at += frameHeaderBytes + pageBytes) {
    // Frames of an older generation have another salt.
    const current = wal.compare(wal, 16, 24, at + 8, at + 16) === 0
    if (current && wal.readUInt32BE(at + 4) > 0) commits += 1
  }
  return commits
}

test('works that arrive together share one commit, also when some of them throw', async (test) => {
  const { directory, store } = await openHere(test)
  await store.write(insert('before'))
  const before = commitsIn(directory)
  await store.write(insert('alone'))
  expect(commitsIn(directory) - before).toBe(1)
  const throwing = store.write(async (tx) => {
    await insert('undone')(tx)
    throw new Error('thought better of it')
  })
  const together = Array.from({ length: 100 }, (_, index) => store.write(insert(`together-${index}`)))
  await expect(throwing).rejects.toThrow('thought better of it')
  await Promise.all(together)
  expect(commitsIn(directory) - before).toBe(2)
  expect(await ids(store)).toHaveLength(102)
})

test('more works than one commit takes are all done', async (test) => {
  const { store } = await openHere(test)
  await Promise.all(Array.from({ length: 1100 }, (_, index) => store.write(insert(`account-${index}`))))
  expect(await ids(store)).toHaveLength(1100)
})

test("a write waits for another process's transaction while the event loop goes on", async (test) => {
  const { directory, store } = await openHere(test)
  const other = anotherWriter(test, directory)
  other.exec("BEGIN IMMEDIATE; INSERT INTO accounts VALUES ('theirs', '', 0, 0)")
  const settled = vi.fn()
  const writing = store.write(insert('ours')).then(settled)
  // Were the process asleep in SQLite, none of this would run and the lock would never be released.
  for (let turn = 0; turn < 20; turn += 1) await delay(1)
  expect(settled).not.toHaveBeenCalled()
  expect(await ids(store)).toEqual([])
  other.exec('COMMIT')
  await writing
  expect(await ids(store)).toEqual(['ours', 'theirs'])
})

test("a write that waits too long for another process's transaction is refused, and the next one is taken", async (test) => {
  const { directory, store } = await openHere(test, { lockWaitMillisecondsMax: 30 })
  const other = anotherWriter(test, directory)
  other.exec('BEGIN IMMEDIATE')
  const refused = await Promise.allSettled([store.write(insert('a')), store.write(insert('b'))])
  for (const each of refused) expect(each).toMatchObject({ status: 'rejected', reason: expect.any(StoreUnavailable) })
  other.exec('ROLLBACK')
  await store.write(insert('c'))
  expect(await ids(store)).toEqual(['c'])
})

test('a full disk refuses everyone who shares the commit, keeps nothing of it, and is recovered from', async (test) => {
  const { store } = await openHere(test)
  await store.write(insert('before'))
  const setPagesMax = (pages: number) =>
    store.write((tx) => tx.all<{ max_page_count: number }>(`PRAGMA max_page_count = ${pages}`, []))
  const [limit] = await setPagesMax(1) // Becomes the least that holds what there is.
  expect(limit?.max_page_count).toBeGreaterThan(1)

  const alone = store.write(insert('alone', 100_000))
  await expect(alone).rejects.toThrow(StoreUnavailable)
  await expect(alone).rejects.toThrow(/full/)
  const together = [store.write(insert('small')), store.write(insert('large', 100_000)), store.write(insert('after'))]
  for (const each of await Promise.allSettled(together)) {
    expect(each).toMatchObject({ status: 'rejected', reason: expect.any(StoreUnavailable) })
  }
  expect(await ids(store)).toEqual(['before'])

  await setPagesMax(1_000_000)
  await store.write(insert('large', 100_000))
  expect(await ids(store)).toEqual(['before', 'large'])
})

test('a store whose file is damaged is unavailable', async (test) => {
  const { directory, store } = await openHere(test)
  await store.check()
  anotherWriter(test, directory).exec('PRAGMA wal_checkpoint(TRUNCATE)')
  const file = join(directory, 'service.db')
  writeFileSync(file, Buffer.alloc(statSync(file).size), { flag: 'r+' })
  await expect(store.check()).rejects.toThrow(StoreUnavailable)
  await expect(store.write(insert('a'))).rejects.toThrow(StoreUnavailable)
})

test('a program that holds the file locked is named when the store is opened', async (test) => {
  const directory = await newPlace(test)
  mkdirSync(directory, { recursive: true })
  const other = anotherWriter(test, directory)
  other.exec('PRAGMA journal_mode = WAL; BEGIN EXCLUSIVE')
  await expect(openSqliteStore(directory, { openWaitMillisecondsMax: 30 })).rejects.toThrow(
    `${join(directory, 'service.db')} is locked by another program.`,
  )
})

test('a store that needs no migration is opened while another process writes', async (test) => {
  const { directory } = await openHere(test)
  anotherWriter(test, directory).exec('BEGIN IMMEDIATE')
  const store = await openSqliteStore(directory, { openWaitMillisecondsMax: 30 })
  await store.check()
  await store.close()
})

test('bells ring by themselves now and then, should the file system not report changes', async (test) => {
  const { store } = await openHere(test, { fallbackNotifyMilliseconds: 5 })
  const heard = vi.fn()
  store.listen('cancellations', heard)
  await vi.waitFor(() => expect(heard.mock.calls.length).toBeGreaterThan(3), patience)
})
