/** The stores that the tests in test/storage run on, with the little that the tests must know of each. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../../src/storage/sqlite/sqlite-store.ts'
import type { Store } from '../../src/storage/store.ts'
import { postgres } from './postgres.ts'

export interface StoreKind {
  name: string
  /**
   * Makes a place that a store can be opened in, by any number of processes. What opening makes may be there already,
   * unless it is to be empty.
   */
  prepare(options?: { empty?: boolean }): Promise<string>
  /** Removes the place with everything in it. */
  remove(place: string): Promise<void>
  /** The store's bells ring when they are rung and at no other time, so that no test passes by waiting. */
  open(place: string): Promise<Store>
  /** Every byte that is kept in the place. */
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
