/** The stores that the conformance tests run on. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../../src/storage/sqlite/sqlite-store.ts'
import type { Store, Transaction } from '../../src/storage/store.ts'
import { postgres } from './postgres.ts'

export interface StoreKind {
  name: string
  /** Creates a location for a store that any number of processes can open. It may be initialized unless `empty`. */
  prepare(options?: { empty?: boolean }): Promise<string>
  /** Removes the location and its contents. */
  remove(location: string): Promise<void>
  /** Opens a store without the fallback of notifications, so that no test passes because of it. */
  open(location: string): Promise<Store>
  /** Opens a store at a new location, or an empty one that an earlier test of this process has given back. */
  lend(): Promise<LentStore>
  /** Returns all stored bytes. */
  contents(location: string): Promise<Buffer>
  /** Violates a constraint that is checked at COMMIT. */
  failOnCommit(tx: Transaction): Promise<void>
}

export interface LentStore {
  location: string
  store: Store
  giveBack(): Promise<void>
}

/** A database with the service's tables, read once per process: migrating a new file takes 10 ms. */
let migrated: Promise<Buffer> | undefined

async function migrateFile(): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), 'execution-service-'))
  await (await openSqliteStore(directory)).close()
  const content = await readFile(join(directory, 'service.db'))
  await rm(directory, { recursive: true })
  return content
}

/** Writes a database with the service's tables to a data directory. */
export async function initializeDirectory(directory: string): Promise<void> {
  migrated ??= migrateFile()
  await writeFile(join(directory, 'service.db'), await migrated, { mode: 0o600 })
}

export const sqlite: StoreKind = {
  name: 'sqlite',
  async prepare({ empty = false } = {}) {
    const directory = await mkdtemp(join(tmpdir(), 'execution-service-'))
    if (!empty) await initializeDirectory(directory)
    return directory
  },
  remove: (location) => rm(location, { recursive: true, force: true, maxRetries: 5 }),
  open: (location) => openSqliteStore(location, { fallbackNotifyMilliseconds: 3_600_000 }),
  async lend() {
    const location = await sqlite.prepare()
    const store = await sqlite.open(location)
    return { location, store, giveBack: () => store.close().then(() => sqlite.remove(location)) }
  },
  contents: async (location) => {
    const entries = await readdir(location, { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile())
    return Buffer.concat(await Promise.all(files.map((file) => readFile(join(file.parentPath, file.name)))))
  },
  async failOnCommit(tx) {
    await tx.all('PRAGMA defer_foreign_keys = ON', [])
    await tx.all("INSERT INTO users (id, account_id, name, created_at) VALUES ('orphan', 'missing', '', 0)", [])
  },
}

export const stores: readonly StoreKind[] = [sqlite, postgres]
