/**
 * Diagnoses and copies an existing SQLite store while other processes use it, and probes what a directory's file system
 * offers. Run as a program (`node sqlite-inspection.ts PATH`), it checks a file and prints the errors as a JSON array.
 */
import { execFile } from 'node:child_process'
import { closeSync, existsSync, fsyncSync, openSync, readSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { migrate, schemaDifference } from '../migrations/migrations.ts'
import type { StoreInspection } from '../store.ts'
import { rejectMoved } from './moved-store.ts'
import { connect, retryWhileLocked, sqliteColumnTypes } from './sqlite-connection.ts'

export interface Inspection extends StoreInspection {
  /** The file's mode; the service sets `wal`. */
  journalMode: 'wal' | 'delete'
  /** Returns the first errors that SQLite finds in the file; `undefined` when the check takes too long. */
  quickCheck(millisecondsMax: number): Promise<string[] | undefined>
  /** Returns what the schema has, or lacks, that its migrations do not explain. */
  schemaDeviations(): Promise<string[]>
  sizeBytes(): { file: number; log: number }
  /**
   * Writes a snapshot of the committed data to a file that is empty or missing. Blocks the thread, but no other process;
   * the write-ahead log grows meanwhile.
   */
  copyTo(file: string): void
  close(): void
}

/** Returns `undefined` when there is no store. @throws when the file is not a store, was moved, or cannot be read. */
export async function inspectSqliteStore(directory: string): Promise<Inspection | undefined> {
  const path = join(directory, 'service.db')
  if (!existsSync(path)) return undefined
  rejectMoved(directory)
  const header = readHeader(path)
  // Format versions (section 1.3.3).
  const journalMode = header[18] === 2 && header[19] === 2 ? 'wal' : 'delete'
  // Without a log, a read-only connection would leave the log that it creates behind. With one, a writable connection
  // would checkpoint what a killed process has left in it.
  const readOnly = journalMode !== 'wal' || existsSync(`${path}-wal`)
  const { tx, database } = await retryWhileLocked(path, 5000, async () => connect(path, { readOnly }))
  const close = () => {
    if (database.isOpen) database.close()
  }
  try {
    return {
      path,
      store: { read: tx },
      journalMode,
      schema: await schemaDifference(tx.query),
      quickCheck: (millisecondsMax) => runQuickCheck(path, millisecondsMax),
      schemaDeviations: () => schemaDeviations(database),
      sizeBytes: () => ({ file: sizeOf(path), log: sizeOf(`${path}-wal`) }),
      copyTo: (file) => void database.prepare('VACUUM INTO ?').run(file),
      close,
    }
  } catch (error) {
    close()
    throw error
  }
}

/** Reads the header of a database file (sqlite.org/fileformat.html, section 1.3). */
export function readHeader(path: string): Buffer {
  const header = Buffer.alloc(100)
  const file = openSync(path, 'r')
  try {
    readSync(file, header, 0, header.length, 0)
  } finally {
    closeSync(file)
  }
  return header
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** Runs in a child process, because the check blocks and cannot be interrupted. */
function runQuickCheck(path: string, millisecondsMax: number): Promise<string[] | undefined> {
  const options = { timeout: millisecondsMax, killSignal: 'SIGKILL' } as const
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [import.meta.filename, path], options, (error, stdout, stderr) => {
      if (error?.killed) resolve(undefined)
      else if (error) reject(new Error(stderr.trim() || error.message))
      else resolve(JSON.parse(stdout))
    })
  })
}

function quickCheck(path: string): string[] {
  const database = new DatabaseSync(path, { readOnly: true, timeout: 1000 })
  try {
    const rows = database.prepare('PRAGMA quick_check(5)').all()
    return rows.map(({ quick_check }) => String(quick_check)).filter((line) => line !== 'ok')
  } catch (error) {
    // Unreadable pages abort the check itself.
    return [error instanceof Error ? error.message : String(error)]
  } finally {
    database.close()
  }
}

// What a store's schema has that this service did not create.

interface SchemaObject {
  type: string
  name: string
  sql: string | null
}

/**
 * Compares the schema with that of a new store with the same migrations. A trigger that was added by hand, for example,
 * would act in every transaction of the service.
 *
 * @returns a description of each object that differs.
 */
export async function schemaDeviations(store: DatabaseSync): Promise<string[]> {
  const found = readSchema(store)
  const isMigrated = found.some(({ name }) => name === 'kysely_migration')
  const applied = isMigrated ? store.prepare('SELECT name FROM kysely_migration ORDER BY name').all() : []
  const { tx, database } = connect(':memory:', { readOnly: false })
  try {
    if (applied.length > 0) await migrate(tx.query, sqliteColumnTypes, String(applied.at(-1)?.name))
    const expected = readSchema(database)
    const foreign = found.filter((each) => !expected.some((other) => isSameObject(other, each)))
    const missing = expected.filter((each) => !found.some((other) => isSameObject(each, other)))
    return [...foreign, ...missing].map(({ type, name }) => `${type} ${name}`)
  } finally {
    database.close()
  }
}

/** Of the migrator's tables, the text depends on its version. */
function isSameObject(expected: SchemaObject, { type, name, sql }: SchemaObject): boolean {
  return expected.type === type && expected.name === name && (expected.sql === sql || name.startsWith('kysely_'))
}

/** Without what SQLite makes itself, whose names are reserved, and the tables that only backups have. */
function readSchema(database: DatabaseSync): SchemaObject[] {
  const sql = `SELECT type, name, sql FROM sqlite_schema
    WHERE NOT (type = 'table' AND name IN ('sqlite_sequence', 'sqlite_stat1', 'sqlite_stat4', 'backup', 'backup_blobs'))
      AND NOT (type = 'index' AND sql IS NULL)`
  return database.prepare(sql).all() as unknown as SchemaObject[]
}

export interface Settings {
  journalMode: unknown
  synchronous: unknown
}

/** Returns the settings of a new store in `directory`, as its file system allows them. @throws when none can be made. */
export function probeSettings(directory: string): Settings {
  const { database } = connect(join(directory, 'probe.db'), { readOnly: false })
  try {
    database.exec('CREATE TABLE probe (value TEXT); INSERT INTO probe VALUES (1)')
    const pragma = (name: string) => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]
    return { journalMode: pragma('journal_mode'), synchronous: pragma('synchronous') }
  } finally {
    database.close()
  }
}

const pageBytes = 4096
const syncs = { min: 3, max: 25 }
/** Bounds the probe on slow disks. */
const probeMillisecondsMax = 1500

/** Returns the median time to write and fsync one page in `directory`, in microseconds. */
export function measureFsyncMicroseconds(directory: string): number {
  const file = openSync(join(directory, 'probe'), 'wx', 0o600)
  const times: number[] = []
  const deadline = performance.now() + probeMillisecondsMax
  try {
    for (let index = 0; index < syncs.max && (index < syncs.min || performance.now() < deadline); index += 1) {
      const start = performance.now()
      writeSync(file, Buffer.alloc(pageBytes, index), 0, pageBytes, index * pageBytes)
      fsyncSync(file)
      times.push((performance.now() - start) * 1000)
    }
  } finally {
    closeSync(file)
  }
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0
}

if (import.meta.main) process.stdout.write(JSON.stringify(quickCheck(process.argv[2] ?? '')))
