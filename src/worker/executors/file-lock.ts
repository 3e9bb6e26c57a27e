/** A lock between processes that the system releases when its process ends, however that happens. */
import { DatabaseSync } from 'node:sqlite'

/**
 * Locks a file, creating it if needed; blocks the thread while it waits. Node's only file locks are those of SQLite:
 * nothing is stored in the file.
 *
 * @returns undefined when another process holds the lock for longer than `waitMilliseconds`.
 */
export function lockFile(path: string, waitMilliseconds: number): { release(): void } | undefined {
  const lock = new DatabaseSync(path, { timeout: waitMilliseconds })
  try {
    lock.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    if ((error as { errcode?: number }).errcode === sqliteBusy) return undefined
    throw error
  }
  return { release: () => lock.close() }
}

const sqliteBusy = 5
