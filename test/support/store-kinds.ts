/** The stores that the conformance tests run on. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../../src/storage/sqlite/sqlite-store.ts'
import type { Store } from '../../src/storage/store.ts'
import { postgres } from './postgres.ts'

export interface StoreKind {
  name: string
  /** Creates a place for a store that any number of processes can open. It may be initialized unless `empty`. */
  prepare(options?: { empty?: boolean }): Promise<string>
  /** Removes the place and its contents. */
  remove(place: string): Promise<void>
  /** Opens a store without the fallback of notifications, so that no test passes because of it. */
  open(place: string): Promise<Store>
  /** Returns all stored bytes. */
  contents(place: string): Promise<Buffer>
}

export const sqlite: StoreKind = {
  name: 'sqlite',
  prepare: () => mkdtemp(join(tmpdir(), 'execution-service-')),
  remove: (place) => rm(place, { recursive: true, force: true, maxRetries: 5 }),
  open: (place) => openSqliteStore(place, { fallbackNotifyMilliseconds: 3_600_000 }),
  contents: async (place) => {
    const entries = await readdir(place, { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile())
    return Buffer.concat(await Promise.all(files.map((file) => readFile(join(file.parentPath, file.name)))))
  },
}

export const stores: readonly StoreKind[] = [sqlite, postgres]
