/** Reads a store that is there, beside the processes that use it: it is not made, not migrated, and not written to. */
import { execFile } from 'node:child_process'
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { schemaDifference } from '../migrations/migrations.ts'
import { newestMoment, readOnlyStore, type StoreInspection } from '../store-inspection.ts'
import { connect, retryWhileLocked } from './sqlite-connection.ts'

export interface Inspection extends StoreInspection {
  /** As the file has it; the service's connections make it `wal`. */
  journalMode: 'wal' | 'delete'
  /** What SQLite finds wrong with the file, at most some lines; `undefined` when it was not through in time. */
  quickCheck(millisecondsMax: number): Promise<string[] | undefined>
  sizeBytes(): { file: number; log: number }
  /**
   * Writes what is committed at this moment to a file that is empty or not there yet. Others read and write meanwhile;
   * the write-ahead log grows by what they write. Blocks the thread.
   */
  copyTo(file: string): void
  close(): void
}

/** @returns `undefined` where there is none. @throws when the file is no store, or cannot be read. */
export async function inspectSqliteStore(directory: string): Promise<Inspection | undefined> {
  const path = join(directory, 'service.db')
  if (!existsSync(path)) return undefined
  const journalMode = journalModeOf(path)
  // A connection that may write removes the log that it had to make, one that may not leaves it behind; and it would
  // bring into the file what a killed process has left in the log.
  const readOnly = journalMode !== 'wal' || existsSync(`${path}-wal`)
  const { tx, database } = await retryWhileLocked(path, 5000, async () => connect(path, { readOnly }))
  const close = () => {
    if (database.isOpen) database.close()
  }
  try {
    return {
      path,
      store: readOnlyStore(tx, async () => close()),
      journalMode,
      schema: await schemaDifference(tx.query),
      findLastWriteAt: () => newestMoment(tx),
      quickCheck: (millisecondsMax) => quickCheck(path, millisecondsMax),
      sizeBytes: () => ({ file: bytesOf(path), log: bytesOf(`${path}-wal`) }),
      copyTo: (file) => void database.prepare('VACUUM INTO ?').run(file),
      close,
    }
  } catch (error) {
    close()
    throw error
  }
}

/** By the header's versions for writing and reading (sqlite.org/fileformat.html, section 1.3.3). */
function journalModeOf(path: string): 'wal' | 'delete' {
  const header = Buffer.alloc(20)
  const file = openSync(path, 'r')
  try {
    readSync(file, header, 0, header.length, 0)
  } finally {
    closeSync(file)
  }
  return header[18] === 2 && header[19] === 2 ? 'wal' : 'delete'
}

function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

const quickCheckModule = fileURLToPath(new URL('./quick-check.ts', import.meta.url))

/** In a process of its own, which can be ended: SQLite does not return before it is through. */
function quickCheck(path: string, millisecondsMax: number): Promise<string[] | undefined> {
  const options = { timeout: millisecondsMax, killSignal: 'SIGKILL' } as const
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [quickCheckModule, path], options, (error, stdout, stderr) => {
      if (error?.killed) resolve(undefined)
      else if (error) reject(new Error(stderr.trim() || error.message))
      else resolve(JSON.parse(stdout))
    })
  })
}
