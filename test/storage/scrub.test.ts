/** Scrubbing removes deleted data from all files of the store. */
import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { openSqliteStore } from '../../src/storage/sqlite/sqlite-store.ts'
import { type Store, StoreUnavailable } from '../../src/storage/store.ts'
import { newDirectory, newStoreLocation, openStore } from '../support/domain.ts'
import { startStoreProcess } from '../support/processes.ts'
import { stores } from '../support/store-kinds.ts'

const canary = `canary-${crypto.randomUUID()}`
const bytesOfRows = [50, 700, 3000, 6000, 1_500_000]

/** Inserts runs with and without the canary in their output, which is shorter or longer than a page. */
async function insertRuns(store: Store): Promise<void> {
  await store.write(async (tx) => {
    await tx.all("INSERT INTO accounts (id, name, scopes_enabled, created_at) VALUES ('a', '', 0, 0)", [])
    const sql = `INSERT INTO runs (id, account_id, workflow_id, workflow_version, status, priority, variables, created_at, output)
      VALUES (?, 'a', 'anything', '1.0.0', 'succeeded', 0, '{}', 0, ?)`
    for (const [index, bytes] of bytesOfRows.entries()) {
      for (let count = 0; count < (bytes > 10_000 ? 1 : 40); count += 1) {
        await tx.all(sql, [`deleted-${index}-${count}`, canary.repeat(Math.ceil(bytes / canary.length))])
        await tx.all(sql, [`kept-${index}-${count}`, 'x'.repeat(bytes)])
      }
    }
  })
}

const deleteRuns = (store: Store) => store.write((tx) => tx.all("DELETE FROM runs WHERE id LIKE 'deleted-%'", []))

describe.each(stores)('scrubbing ($name)', (kind) => {
  test('removes deleted rows from all files while another process keeps reading', async (test) => {
    const location = await newStoreLocation(test, kind)
    const store = await openStore(test, location, kind)
    const reader = await startStoreProcess(test, { kind, command: 'readOn', locations: [location] })
    await insertRuns(store)
    reader.send('go')
    await once(reader, 'message')
    expect((await kind.contents(location)).includes(canary)).toBe(true)
    await deleteRuns(store)
    await store.scrub()
    expect((await kind.contents(location)).includes(canary)).toBe(false)
    expect(reader.exitCode).toBeNull()
    expect((await store.read.all("SELECT 1 FROM runs WHERE output LIKE 'x%'", [])).length).toBe(161)
  })

  test('loses no concurrent writes, even when it starts during one', async (test) => {
    const location = await newStoreLocation(test, kind)
    const store = await openStore(test, location, kind)
    const scrubs: Promise<void>[] = []
    const write = (_: unknown, index: number) =>
      store.write(async (tx) => {
        const id = crypto.randomUUID()
        await tx.all('INSERT INTO accounts (id, name, scopes_enabled, created_at) VALUES (?, ?, 0, 0)', [id, ''])
        if (index % 10 === 0) scrubs.push(store.scrub())
        await tx.all('UPDATE accounts SET name = id WHERE id = ?', [id])
      })
    for (let round = 0; round < 5; round += 1) await Promise.all(Array.from({ length: 20 }, write))
    await Promise.all(scrubs)
    expect(scrubs).toHaveLength(10)
    expect(await store.read.all('SELECT id FROM accounts WHERE name = id', [])).toHaveLength(100)
  })
})

/** Opens a store with deleted rows, and a reader with an open transaction. */
async function openWithReader(
  test: { onTestFinished(act: () => void): void },
  location: string,
  scrubWaitMillisecondsMax: number,
) {
  const store = await openSqliteStore(location, { scrubWaitMillisecondsMax })
  test.onTestFinished(() => store.close())
  await insertRuns(store)
  const reader = new DatabaseSync(join(location, 'service.db'), { readOnly: true })
  test.onTestFinished(() => reader.close())
  reader.exec('BEGIN; SELECT COUNT(*) FROM runs')
  await deleteRuns(store)
  return { store, reader }
}

test('scrubbing waits for a reader without blocking the event loop', async (test) => {
  const { store, reader } = await openWithReader(test, await newDirectory(test), 15_000)
  const onSettled = vi.fn()
  const scrubbing = store.scrub().then(onSettled)
  // Would not run if SQLite blocked the process.
  for (let tick = 0; tick < 20; tick += 1) await delay(1)
  expect(onSettled).not.toHaveBeenCalled()
  reader.exec('COMMIT')
  await scrubbing
})

test('scrubbing fails when a reader blocks it for too long', async (test) => {
  const { store } = await openWithReader(test, await newDirectory(test), 30)
  await expect(store.scrub()).rejects.toThrow(StoreUnavailable)
  await store.write((tx) => tx.all('DELETE FROM runs', []))
})
