/** SQLite only: settings, group commit, locks, a full disk and a damaged file. */
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { createKeyFile } from '../../src/storage/key-file.ts'
import { openSqliteStore, type SqliteOptions } from '../../src/storage/sqlite/sqlite-store.ts'
import { type Store, StoreUnavailable, type Transaction } from '../../src/storage/store.ts'
import { newAccount, newDirectory, openDomain, openStore, queueRun, type Test } from '../support/domain.ts'
import { recordFileCalls } from '../support/file-calls.ts'
import { waitLimits } from '../support/timeouts.ts'

const insertSql = 'INSERT INTO accounts (id, name, scopes_enabled, created_at) VALUES (?, ?, 0, 0)'

/** Inserts an account with a name of this many bytes. */
const insert =
  (id: string, bytes = 1) =>
  async (tx: Transaction) => {
    await tx.all(insertSql, [id, 'x'.repeat(bytes)])
  }

async function ids({ read }: Store): Promise<string[]> {
  return (await read.all<{ id: string }>('SELECT id FROM accounts ORDER BY id', [])).map(({ id }) => id)
}

async function openStoreIn(test: Test, options: Partial<SqliteOptions> = {}) {
  const directory = await newDirectory(test)
  const store = await openSqliteStore(directory, { fallbackNotifyMilliseconds: 3_600_000, ...options })
  test.onTestFinished(() => store.close())
  return { directory, store }
}

/** Opens another connection, which to SQLite is like another process. */
function openWriter(test: Test, directory: string): DatabaseSync {
  const database = new DatabaseSync(join(directory, 'service.db'))
  test.onTestFinished(() => database.close())
  return database
}

/** Its prototype is that of all file handles. */
async function openFile(test: Test) {
  const file = await open(new URL(import.meta.url))
  test.onTestFinished(() => file.close())
  return file
}

test('every commit waits for the disk', async (test) => {
  const { store } = await openStoreIn(test)
  const pragma = (name: string) => store.write((tx) => tx.all(`PRAGMA ${name}`, []))
  expect(await pragma('synchronous')).toEqual([{ synchronous: 2 }])
  expect(await pragma('journal_mode')).toEqual([{ journal_mode: 'wal' }])
  expect(await pragma('foreign_keys')).toEqual([{ foreign_keys: 1 }])
})

test('queueing a run writes its row, its id, and two entries of indexes', async (test) => {
  const domain = await openDomain(test)
  const { principal } = await newAccount(domain)
  await queueRun(domain, principal)
  await domain.store.scrub()
  await queueRun(domain, principal)
  // In a small store, each table and index is one page.
  const [header, frame] = [32, 24 + 4096]
  expect((statSync(join(domain.location, 'service.db-wal')).size - header) / frame).toBe(4)
})

test('a commit waits for the disk unless every write in it may be durable later', async (test) => {
  const { store } = await openStoreIn(test)
  const syncs = (durableLater: boolean) =>
    store.write(async (tx) => (await tx.all<{ synchronous: number }>('PRAGMA synchronous', []))[0]?.synchronous, {
      durableLater,
    })
  const [normal, full] = [1, 2]
  expect(await Promise.all([syncs(true), syncs(true)])).toEqual([normal, normal])
  expect(await Promise.all([syncs(true), syncs(false)])).toEqual([full, full])
  expect(await syncs(true)).toBe(normal)
  expect(await syncs(false)).toBe(full)
})

test('a write that may be durable later is synced soon, or together with the next write', async (test) => {
  const { store } = await openStoreIn(test)
  const sync = vi.spyOn(Object.getPrototypeOf(await openFile(test)), 'datasync')
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  test.onTestFinished(() => void vi.useRealTimers())
  await store.write(insert('first'), { durableLater: true })
  vi.runAllTimers()
  await vi.waitFor(() => expect(sync).toHaveBeenCalledOnce(), waitLimits)
  await store.write(insert('second'), { durableLater: true })
  expect(vi.getTimerCount()).toBe(1)
  await store.write(insert('third'))
  expect(vi.getTimerCount()).toBe(0)
  expect(sync).toHaveBeenCalledOnce()
})

test('after a failed write, the log is moved into the file, since commits in it may not have reached the disk', async (test) => {
  const { store, directory } = await openStoreIn(test)
  const log = join(directory, 'service.db-wal')
  for (const id of ['first', 'second', 'third', 'fourth']) await store.write(insert(id), { durableLater: true })
  const sizeBefore = statSync(log).size
  await store.write((tx) => tx.all('PRAGMA max_page_count = 1', []))
  await expect(store.write(insert('large', 1_000_000))).rejects.toThrow(StoreUnavailable)
  await store.write((tx) => tx.all('PRAGMA max_page_count = 1000000', []))
  await store.write(insert('fifth'))
  expect(statSync(log).size).toBeLessThan(sizeBefore)
  expect(await ids(store)).toEqual(['fifth', 'first', 'fourth', 'second', 'third'])
})

test('the connection for reading rejects writes', async (test) => {
  const { store } = await openStoreIn(test)
  await expect(insert('a')(store.read)).rejects.toThrow(StoreUnavailable)
  expect(await ids(store)).toEqual([])
})

test('the data directory is accessible to its owner only, and durable with its parents', async (test) => {
  const parent = realpathSync(await newDirectory(test))
  const directory = join(parent, 'made', 'by', 'the store')
  const calls = recordFileCalls(test)
  await openStore(test, directory)
  expect(statSync(directory).mode & 0o777).toBe(0o700)
  expect(calls).toEqual([join(parent, 'made', 'by'), join(parent, 'made'), parent].map((path) => `sync ${path}`))
})

test('every file of the store is accessible to its owner only, also in a directory that others can read', async (test) => {
  const directory = await newDirectory(test)
  chmodSync(directory, 0o755)
  const umask = process.umask(0)
  test.onTestFinished(() => void process.umask(umask))
  createKeyFile(join(directory, 'encryption.key'))
  const store = await openStore(test, directory)
  await store.write(insert('a'))
  await store.counters.add('sign-in', 1, 1000)
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true })
  const modes = entries.map(({ parentPath, name }) => [name, statSync(join(parentPath, name)).mode & 0o777] as const)
  expect(Object.fromEntries(modes)).toMatchObject({
    'encryption.key': 0o600,
    'service.db': 0o600,
    'service.db-wal': 0o600,
    'service.db-shm': 0o600,
    'counters.db': 0o600,
    'counters.db-wal': 0o600,
    notifications: 0o700,
    runs: 0o600,
  })
  expect(modes.filter(([, mode]) => (mode & 0o077) !== 0)).toEqual([])
})

/** Counts commit frames, which have a database size (sqlite.org/fileformat2.html, section 4.1). */
function countCommits(directory: string): number {
  const wal = readFileSync(join(directory, 'service.db-wal'))
  const [headerBytes, frameHeaderBytes] = [32, 24]
  const pageBytes = wal.readUInt32BE(8)
  let commits = 0
  for (let at = headerBytes; at + frameHeaderBytes <= wal.length; at += frameHeaderBytes + pageBytes) {
    // Frames from before the last checkpoint have a different salt.
    const current = wal.compare(wal, 16, 24, at + 8, at + 16) === 0
    if (current && wal.readUInt32BE(at + 4) > 0) commits += 1
  }
  return commits
}

test('concurrent writes share one commit, even when one of them throws', async (test) => {
  const { directory, store } = await openStoreIn(test)
  await store.write(insert('before'))
  const before = countCommits(directory)
  await store.write(insert('alone'))
  expect(countCommits(directory) - before).toBe(1)
  const throwing = store.write(async (tx) => {
    await insert('throwing')(tx)
    throw new Error('rolled back')
  })
  const together = Array.from({ length: 100 }, (_, index) => store.write(insert(`together-${index}`)))
  await expect(throwing).rejects.toThrow('rolled back')
  await Promise.all(together)
  expect(countCommits(directory) - before).toBe(2)
  expect(await ids(store)).toHaveLength(102)
})

test('concurrent writes that change many pages write none to a temporary file', async (test) => {
  const { store } = await openStoreIn(test)
  for (let count = 0; count < 100; count += 1) await store.write(insert(`account-${count}`, 3000))
  const change = async (tx: Transaction) => {
    await tx.all("UPDATE accounts SET name = name || 'x'", [])
    // The file of the directory itself is closed when it has been read.
    return readdirSync('/proc/self/fd').flatMap((file) => {
      try {
        return readlinkSync(`/proc/self/fd/${file}`)
      } catch {
        return []
      }
    })
  }
  const paths = await Promise.all([store.write(change), store.write(change)])
  expect(paths.flat().filter((path) => path.includes('etilqs'))).toEqual([])
})

test('writes that exceed the size of one commit are all committed', async (test) => {
  const { store } = await openStoreIn(test)
  await Promise.all(Array.from({ length: 1100 }, (_, index) => store.write(insert(`account-${index}`))))
  expect(await ids(store)).toHaveLength(1100)
})

test("a write waits for another process's transaction without blocking the event loop", async (test) => {
  const { directory, store } = await openStoreIn(test)
  const other = openWriter(test, directory)
  other.exec("BEGIN IMMEDIATE; INSERT INTO accounts (id, name, scopes_enabled, created_at) VALUES ('theirs', '', 0, 0)")
  const onSettled = vi.fn()
  const writing = store.write(insert('ours')).then(onSettled)
  // Would not run if SQLite blocked the process.
  for (let tick = 0; tick < 20; tick += 1) await delay(1)
  expect(onSettled).not.toHaveBeenCalled()
  expect(await ids(store)).toEqual([])
  other.exec('COMMIT')
  await writing
  expect(await ids(store)).toEqual(['ours', 'theirs'])
})

test("writes that arrive while another process's transaction delays one share its commit", async (test) => {
  const { directory, store } = await openStoreIn(test)
  const commits: number[] = []
  store.observe(({ writes }) => commits.push(writes))
  const other = openWriter(test, directory)
  other.exec('BEGIN IMMEDIATE')
  const exec = vi.spyOn(DatabaseSync.prototype, 'exec')
  test.onTestFinished(() => exec.mockRestore())
  const writing = [store.write(insert('first'))]
  await vi.waitFor(() => expect(exec).toHaveBeenCalledWith('BEGIN IMMEDIATE'), waitLimits)
  writing.push(store.write(insert('second')), store.write(insert('third')))
  other.exec('COMMIT')
  await Promise.all(writing)
  expect(commits).toEqual([3])
})

test("a write fails when another process's transaction takes too long, and the next one succeeds", async (test) => {
  const { directory, store } = await openStoreIn(test, { lockWaitMillisecondsMax: 30 })
  const other = openWriter(test, directory)
  other.exec('BEGIN IMMEDIATE')
  const refused = await Promise.allSettled([store.write(insert('a')), store.write(insert('b'))])
  for (const each of refused) expect(each).toMatchObject({ status: 'rejected', reason: expect.any(StoreUnavailable) })
  other.exec('ROLLBACK')
  await store.write(insert('c'))
  expect(await ids(store)).toEqual(['c'])
})

test('a notification reaches a listener in another process, and none after it has unsubscribed', async (test) => {
  const { directory, store } = await openStoreIn(test)
  const other = await openSqliteStore(directory, { fallbackNotifyMilliseconds: 3_600_000 })
  test.onTestFinished(() => other.close())
  const [first, second] = [vi.fn(), vi.fn()]
  const unsubscribe = [store.listen('queue', first), store.listen('queue', second)]
  unsubscribe[0]?.()
  other.notify('queue')
  await vi.waitFor(() => expect(second).toHaveBeenCalled(), waitLimits)
  expect(first).not.toHaveBeenCalled()
  unsubscribe[1]?.()
  const again = vi.fn()
  store.listen('queue', again)
  other.notify('queue')
  await vi.waitFor(() => expect(again).toHaveBeenCalled(), waitLimits)
})

test('a full disk fails and rolls back all writes of a commit, and writing resumes when there is space', async (test) => {
  const { store } = await openStoreIn(test)
  await store.write(insert('before'))
  const setPagesMax = (pages: number) =>
    store.write((tx) => tx.all<{ max_page_count: number }>(`PRAGMA max_page_count = ${pages}`, []))
  const [limit] = await setPagesMax(1) // SQLite raises it to the current size.
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

test('a store with a damaged file is unavailable', async (test) => {
  const { directory, store } = await openStoreIn(test)
  await store.check()
  openWriter(test, directory).exec('PRAGMA wal_checkpoint(TRUNCATE)')
  const file = join(directory, 'service.db')
  writeFileSync(file, Buffer.alloc(statSync(file).size), { flag: 'r+' })
  await expect(store.check()).rejects.toThrow(StoreUnavailable)
  await expect(store.write(insert('a'))).rejects.toThrow(StoreUnavailable)
})

test('opening fails with an explanation while another program has the file locked', async (test) => {
  const directory = await newDirectory(test)
  mkdirSync(directory, { recursive: true })
  const other = openWriter(test, directory)
  other.exec('PRAGMA journal_mode = WAL; BEGIN EXCLUSIVE')
  await expect(openSqliteStore(directory, { openWaitMillisecondsMax: 30 })).rejects.toThrow(
    `${join(directory, 'service.db')} is locked by another program.`,
  )
})

test("opening an up-to-date store does not wait for another process's write", async (test) => {
  const { directory } = await openStoreIn(test)
  openWriter(test, directory).exec('BEGIN IMMEDIATE')
  const store = await openSqliteStore(directory, { openWaitMillisecondsMax: 30 })
  await store.check()
  await store.close()
})

test('listeners are called at intervals, in case the file system reports no changes', async (test) => {
  const { store } = await openStoreIn(test, { fallbackNotifyMilliseconds: 5 })
  const listener = vi.fn()
  store.listen('cancellations', listener)
  await vi.waitFor(() => expect(listener.mock.calls.length).toBeGreaterThan(3), waitLimits)
})
