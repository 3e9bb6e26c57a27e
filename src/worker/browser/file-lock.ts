/** A lock between processes, which the system ends with the process that holds it, however that ended. */
import { DatabaseSync } from 'node:sqlite'

export interface FileLock {
  release(): void
}

/**
 * Locks the file, which is made where there is none. Blocks the thread while it waits. Node offers no lock on files but
 * SQLite's: nothing is stored in it.
 *
 * @returns undefined when another holds it for longer than `waitMilliseconds`.
 */
export function lockFile(path: string, waitMilliseconds: number): FileLock | undefined {
  const lock = new DatabaseSync(path, { timeout: waitMilliseconds })
  try {
    lock.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    if ((error as { errcode?: number }).errcode === busy) return undefined
    throw error
  }
  return { release: () => lock.close() }
}

/** SQLITE_BUSY */
const busy = 5
