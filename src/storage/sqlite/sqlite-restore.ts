/** Puts the files of a store in the place of those that a data directory has, which are kept beside them. */
import { chownSync, existsSync, linkSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { keyFilePath, syncDirectory } from '../key-file.ts'
import { BackupError } from './sqlite-backup.ts'
import { isBusy } from './sqlite-connection.ts'

export interface Replacement {
  /** The data directory. */
  directory: string
  /** A directory in it with the new files: the store, and the key file where it is to change. */
  from: string
  /** Whether a store that is there may be replaced. */
  replace: boolean
}

export function storePath(directory: string): string {
  return join(directory, 'service.db')
}

/**
 * Returns where the files are kept that were there before; `undefined` when there were none. That place is a data
 * directory, too.
 *
 * @throws {BackupError} when any process has the store open.
 */
export function replaceStore({ directory, from, replace }: Replacement): string | undefined {
  const path = storePath(directory)
  const alone = holdAlone(path)
  try {
    if (alone.exists && !replace) throw storeExistsError(directory)
    for (const file of [storePath(from), keyFilePath(from)]) giveTo(directory, file)
    const kept = keepAside(directory)
    // The key first: a start between the two is refused, because the key does not fit.
    if (existsSync(keyFilePath(from))) renameSync(keyFilePath(from), keyFilePath(directory))
    putStore(directory, from, alone.exists)
    syncDirectory(path)
    return kept
  } finally {
    alone.release()
  }
}

export function storeExistsError(directory: string): BackupError {
  return new BackupError(
    `There is a store in ${directory}: set DATA_DIR to another directory, or call this with --replace, which keeps the old store beside the new one.`,
  )
}

/**
 * Holds a store so that no process can open it. Leaving the write-ahead mode needs every other connection closed, and
 * brings what the log has into the file. A store that is damaged cannot be held; nobody can work with it either.
 */
function holdAlone(path: string): { exists: boolean; release(): void } {
  if (!existsSync(path)) return { exists: false, release: () => {} }
  const database = new DatabaseSync(path, { timeout: 0 })
  const release = () => database.close()
  const inUse = new BackupError(`${path} is in use: stop the service, its workers and commands, and call this again.`)
  try {
    database.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE')
    // Another process may have opened it between the two.
    if (database.prepare('PRAGMA journal_mode').get()?.journal_mode !== 'delete') throw inUse
  } catch (error) {
    if (isBusy(error) || error === inUse) {
      release()
      throw inUse
    }
    const { errcode = 0 } = error as { errcode?: number }
    if (![corrupt, notADatabase].includes(errcode & 0xff)) {
      release()
      throw error
    }
  }
  return { exists: true, release }
}

/** SQLITE_CORRUPT, SQLITE_NOTADB */
const [corrupt, notADatabase] = [11, 26]

/** Whoever restores may be another user than the service, root for instance; the service has to open the files. */
function giveTo(directory: string, file: string): void {
  const { uid, gid } = statSync(directory)
  if (process.getuid?.() === 0 && existsSync(file)) chownSync(file, uid, gid)
}

/** A damaged store may have a log, which must not be taken for the new store's. */
const logs = ['-wal', '-shm', '-journal']

function keepAside(directory: string): string | undefined {
  const [path, key] = [storePath(directory), keyFilePath(directory)]
  if (!existsSync(path)) return undefined
  const aside = join(directory, `replaced-${new Date().toISOString().replaceAll(':', '-')}`)
  mkdirSync(aside, { mode: 0o700 })
  giveTo(directory, aside)
  for (const each of logs) if (existsSync(path + each)) renameSync(path + each, storePath(aside) + each)
  // Linked, so that there is a store under its name at every moment.
  linkSync(path, storePath(aside))
  if (existsSync(key)) linkSync(key, keyFilePath(aside))
  syncDirectory(storePath(aside))
  return aside
}

function putStore(directory: string, from: string, exists: boolean): void {
  const path = storePath(directory)
  if (exists) return renameSync(storePath(from), path)
  try {
    // Not renamed: a service that has started meanwhile has made a store by now.
    linkSync(storePath(from), path)
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? storeExistsError(directory) : error
  }
  rmSync(storePath(from))
}
