/** Replaces the store and key file of a data directory, and keeps the previous files. */
import { existsSync, linkSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { copyOwner, syncDirectory } from '../directories.ts'
import { keyFilePath } from '../key-file.ts'
import { moveMark } from './moved-store.ts'
import { BackupError, corrupt } from './sqlite-backup.ts'
import { isBusy, resultCode } from './sqlite-connection.ts'

interface Replacement {
  directory: string
  /** A directory inside it with the new store and, if it changes, the new key file. */
  from: string
  /** Whether an existing store may be replaced. */
  replace: boolean
}

export function storePath(directory: string): string {
  return join(directory, 'service.db')
}

/**
 * Replaces the files. Returns the directory that keeps the previous ones, itself a valid data directory; `undefined`
 * when there were none.
 *
 * @throws {BackupError} when any process has the store open.
 */
export function replaceStore({ directory, from, replace }: Replacement): string | undefined {
  const path = storePath(directory)
  const lock = lockExclusively(path)
  try {
    if (lock.exists && !replace) throw storeExistsError(directory)
    for (const file of [storePath(from), keyFilePath(from)]) copyOwner(directory, file)
    const kept = keepPrevious(directory)
    // The key first: a start between the two renames fails with a key mismatch.
    if (existsSync(keyFilePath(from))) renameSync(keyFilePath(from), keyFilePath(directory))
    installStore(directory, from, lock.exists)
    if (kept) moveMark(directory, kept)
    syncDirectory(path)
    return kept
  } finally {
    lock.release()
  }
}

export function storeExistsError(directory: string): BackupError {
  return new BackupError(
    `${directory} already contains a store: set DATA_DIR to another directory, or pass --replace, which keeps the old store in a subdirectory.`,
  )
}

/** SQLITE_NOTADB */
const notADatabase = 26

/**
 * Prevents any process from opening the store. Leaving WAL mode requires that no other connection is open, and
 * checkpoints the log. A damaged store cannot be locked, but no process can use it either.
 */
function lockExclusively(path: string): { exists: boolean; release(): void } {
  if (!existsSync(path)) return { exists: false, release: () => {} }
  const database = new DatabaseSync(path, { timeout: 0 })
  const release = () => database.close()
  const inUse = new BackupError(`${path} is in use: stop the service, its workers and commands, and try again.`)
  try {
    database.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE')
    // Another process may have opened the file between the two statements.
    if (database.prepare('PRAGMA journal_mode').get()?.journal_mode !== 'delete') throw inUse
  } catch (error) {
    if ([corrupt, notADatabase].includes(resultCode(error))) return { exists: true, release }
    release()
    throw isBusy(error) ? inUse : error
  }
  return { exists: true, release }
}

/** The logs of a damaged store, which SQLite must not apply to the new one. */
const logs = ['-wal', '-shm', '-journal']

function keepPrevious(directory: string): string | undefined {
  const [path, key] = [storePath(directory), keyFilePath(directory)]
  if (!existsSync(path)) return undefined
  const kept = join(directory, `replaced-${new Date().toISOString().replaceAll(':', '-')}`)
  mkdirSync(kept, { mode: 0o700 })
  copyOwner(directory, kept)
  for (const suffix of logs) if (existsSync(path + suffix)) renameSync(path + suffix, storePath(kept) + suffix)
  // Hard links, so that a store exists under its name at every moment.
  linkSync(path, storePath(kept))
  if (existsSync(key)) linkSync(key, keyFilePath(kept))
  syncDirectory(storePath(kept))
  return kept
}

function installStore(directory: string, from: string, exists: boolean): void {
  const path = storePath(directory)
  if (exists) return renameSync(storePath(from), path)
  try {
    // A link, which fails if a service has started and created a store in the meantime.
    linkSync(storePath(from), path)
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? storeExistsError(directory) : error
  }
  rmSync(storePath(from))
}
