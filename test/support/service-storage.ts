/**
 * Storage for services in tests: a new data directory and, with TEST_STORE=postgres in the environment, a new database.
 */
import { closeSync, mkdtempSync, openSync, readSync, rmSync, statSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { readFiles } from './canaries.ts'
import { postgres, whileConnectionsRefused, whileLocked } from './postgres.ts'
import { initializeDirectory } from './store-kinds.ts'

export type Environment = Record<string, string>

export interface Storage {
  dataDirectory: string
  /** Environment that selects this storage. */
  settings: Environment
  /** Returns all stored bytes, by file or store. */
  contents(): Promise<[location: string, bytes: Buffer][]>
  /** Calls `act` while the store cannot be read. */
  whileUnreadable<Result>(act: () => Promise<Result>): Promise<Result>
  /** Calls `act` while another program has the store locked for writing. */
  whileLocked<Result>(act: () => Promise<Result>): Promise<Result>
  remove(): Promise<void>
}

export const usesPostgres = process.env.TEST_STORE === 'postgres'

export async function newStorage(): Promise<Storage> {
  return usesPostgres ? newDatabase() : newDirectory()
}

async function newDirectory(): Promise<Storage> {
  const dataDirectory = temporaryDirectory()
  await initializeDirectory(dataDirectory)
  // Closed after the services: closing any descriptor of a file releases all locks of the process on it.
  let opened: OpenFile | undefined
  const file = () => {
    opened ??= openFile(join(dataDirectory, 'service.db'))
    return opened
  }
  return {
    dataDirectory,
    settings: { DATA_DIR: dataDirectory },
    contents: async () => readFiles(dataDirectory),
    whileUnreadable: (act) => whileOverwritten(file(), act),
    async whileLocked(act) {
      file().database.exec('BEGIN IMMEDIATE')
      return act().finally(() => file().database.exec('ROLLBACK'))
    },
    async remove() {
      opened?.database.close()
      if (opened) closeSync(opened.descriptor)
      removeDirectory(dataDirectory)
    },
  }
}

async function newDatabase(): Promise<Storage> {
  const [dataDirectory, url] = [temporaryDirectory(), await postgres.prepare()]
  return {
    dataDirectory,
    settings: { DATA_DIR: dataDirectory, DATABASE_URL: url },
    contents: async () => [...readFiles(dataDirectory), ['the database', await postgres.contents(url)]],
    whileUnreadable: (act) => whileConnectionsRefused(url, act),
    whileLocked: (act) => whileLocked(url, act),
    async remove() {
      await postgres.remove(url)
      removeDirectory(dataDirectory)
    },
  }
}

export function temporaryDirectory(): string {
  return mkdtempSync(join(tmpdir(), 'execution-service-'))
}

export function removeDirectory(directory: string): void {
  rmSync(directory, { recursive: true, force: true })
}

interface OpenFile {
  database: DatabaseSync
  descriptor: number
}

function openFile(path: string): OpenFile {
  return { database: new DatabaseSync(path, { timeout: 5000 }), descriptor: openSync(path, 'r+') }
}

const headerBytes = 100

/**
 * Overwrites the header of the SQLite file. A commit before and one after invalidate the connections' caches, so that they
 * notice the damage and the recovery. The lock prevents writes in between.
 */
async function whileOverwritten<Result>(
  { database, descriptor }: OpenFile,
  act: () => Promise<Result>,
): Promise<Result> {
  const header = Buffer.alloc(headerBytes)
  // Until the log is checkpointed, and no other connection has written since.
  const isLogEmpty = () => statSync(`${database.location()}-wal`).size === 0
  for (;;) {
    await delay(1)
    database.exec('PRAGMA user_version = 1; PRAGMA wal_checkpoint(TRUNCATE); BEGIN IMMEDIATE')
    if (isLogEmpty()) break
    database.exec('ROLLBACK')
  }
  readSync(descriptor, header, 0, headerBytes, 0)
  writeSync(descriptor, Buffer.alloc(headerBytes, '?'), 0, headerBytes, 0)
  try {
    return await act()
  } finally {
    writeSync(descriptor, header, 0, headerBytes, 0)
    database.exec('PRAGMA user_version = 2; COMMIT')
  }
}
