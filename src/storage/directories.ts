/**
 * Directories and files of DATA_DIR: private to the user of the service, and durable. The file system keeps an entry only
 * once the directory with it is synced.
 */
import { chownSync, closeSync, existsSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Creates the directory, private to this user, and its missing parents. On return, those it created are durable. */
export function createDirectory(path: string): void {
  const first = mkdirSync(path, { recursive: true, mode: 0o700 })
  if (first === undefined) return
  const end = dirname(resolve(first))
  for (let created = resolve(path); created !== end; created = dirname(created)) syncDirectory(created)
}

/**
 * Creates the file, private to this user, unless it exists. SQLite itself would create a database that others can read; it
 * gives the write-ahead log and the shared memory the mode of the database.
 */
export function createPrivateFile(path: string): void {
  closeSync(openSync(path, 'a', 0o600))
}

/** Syncs the directory of `path`, which makes a created or renamed file durable. */
export function syncDirectory(path: string): void {
  const directory = openSync(dirname(path), 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}

/** Gives a file that root has written to the user of the directory, who runs the service. */
export function copyOwner(directory: string, file: string): void {
  const { uid, gid } = statSync(directory)
  if (process.getuid?.() === 0 && existsSync(file)) chownSync(file, uid, gid)
}
