/**
 * A backup of the embedded store: one SQLite file with all tables as they were at one moment, and one more, which tells
 * when that was and may hold the text of the key file.
 */
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, readSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { syncDirectory } from '../key-file.ts'
import type { Inspection } from './sqlite-inspection.ts'

/** A backup that is not made, or not restored; the message says what to do. */
export class BackupError extends Error {}

export interface BackupMetadata {
  madeAt: number
  /** As the key file had it; `null` when it is not in the backup. */
  keyFile: string | null
}

export interface BackupOptions {
  overwrite: boolean
  /** The text of the key file, asked for once the store is copied: every key is there by then that it is sealed under. */
  keyFile(): string | null
  /** Throws when what was written cannot be used. */
  verify(file: string): Promise<void>
}

/** Appears under its name when it is whole, verified and on the disk. @throws {BackupError} */
export async function writeBackup(from: Inspection, file: string, options: BackupOptions): Promise<void> {
  refuseExisting(file, options.overwrite)
  const draft = `${file}.${randomBytes(4).toString('hex')}.partial`
  try {
    // Made by hand for its mode: it may hold a key.
    closeSync(openSync(draft, 'wx', 0o600))
    copy(from, draft)
    addHead(draft, { madeAt: Date.now(), keyFile: options.keyFile() })
    syncFile(draft)
    await options.verify(draft)
    refuseExisting(file, options.overwrite)
    renameSync(draft, file)
    syncDirectory(file)
  } catch (error) {
    rmSync(draft, { force: true })
    rmSync(`${draft}-journal`, { force: true })
    throw isSystemError(error) ? new BackupError(`${file} could not be written: ${error.message}.`) : error
  }
}

function copy(from: Inspection, draft: string): void {
  try {
    from.copyTo(draft)
  } catch (error) {
    const { errcode = 0, message } = error as { errcode?: number; message: string }
    if ((errcode & 0xff) !== corrupt) throw error
    throw new BackupError(`${from.path} is damaged (${message}): restore an earlier backup.`)
  }
}

/** SQLITE_CORRUPT */
const corrupt = 11

function refuseExisting(file: string, overwrite: boolean): void {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found?.isDirectory()) throw new BackupError(`${file} is a directory: name a file in it.`)
  if (found && !overwrite) {
    throw new BackupError(`${file} exists: name another file, or call this with --overwrite.`)
  }
  if (!existsSync(dirname(file))) throw new BackupError(`${dirname(file)} does not exist: make it first.`)
}

/** A full disk, a missing right, a broken device. */
export function isSystemError(error: unknown): error is Error {
  const { syscall, code } = error as { syscall?: string; code?: string }
  return syscall !== undefined || code === 'ERR_SQLITE_ERROR'
}

const makeHeadSql = 'CREATE TABLE backup (made_at INTEGER NOT NULL, key_file TEXT)'

function addHead(file: string, { madeAt, keyFile }: BackupMetadata): void {
  const database = new DatabaseSync(file)
  try {
    database.exec(makeHeadSql)
    database.prepare('INSERT INTO backup VALUES (?, ?)').run(madeAt, keyFile)
  } finally {
    database.close()
  }
}

export function syncFile(file: string): void {
  const opened = openSync(file, 'r+')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}

const magic = 'SQLite format 3\0'

/** What the file says of itself. @throws {BackupError} when it is no backup, or not whole. */
export function readBackupMetadata(file: string): BackupMetadata {
  const noBackup = new BackupError(`${file} is no backup: name a file that \`backup\` has made.`)
  const found = statSync(file, { throwIfNoEntry: false })
  const header = found?.isFile() ? headerOf(file) : undefined
  if (!header) throw noBackup
  // SQLite takes what is missing of the last page for zeros.
  if (header.bytes !== found?.size) throw notWhole(file, `it has ${found?.size} of ${header.bytes} bytes`)
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    // Before anything else is asked of it: a file that was cut short may well answer.
    const [fault] = database.prepare('PRAGMA integrity_check(1)').all()
    if (fault?.integrity_check !== 'ok') throw notWhole(file, fault?.integrity_check)
    const isBackup = database.prepare("SELECT 1 AS one FROM sqlite_schema WHERE name = 'backup'").get() !== undefined
    const head = isBackup && database.prepare('SELECT made_at AS madeAt, key_file AS keyFile FROM backup').get()
    if (!head) throw noBackup
    return head as unknown as BackupMetadata
  } catch (error) {
    throw isSystemError(error) ? notWhole(file, error.message) : error
  } finally {
    database.close()
  }
}

function notWhole(file: string, fault: unknown): BackupError {
  return new BackupError(`${file} is not whole (${fault}): use another backup.`)
}

/** Of a database file: how large it has to be (sqlite.org/fileformat.html, sections 1.3.2 and 1.3.7). */
function headerOf(file: string): { bytes: number } | undefined {
  const header = Buffer.alloc(100)
  const opened = openSync(file, 'r')
  try {
    readSync(opened, header, 0, header.length, 0)
  } finally {
    closeSync(opened)
  }
  if (header.toString('latin1', 0, magic.length) !== magic) return undefined
  const pageBytes = header.readUInt16BE(16)
  return { bytes: (pageBytes === 1 ? 65536 : pageBytes) * header.readUInt32BE(28) }
}

/** Makes a store of a copy of a backup, as a start finds it. The key's text is overwritten, not merely let go of. */
export function removeBackupMetadata(file: string): void {
  const database = new DatabaseSync(file)
  try {
    database.exec('PRAGMA secure_delete = ON; DROP TABLE backup; PRAGMA journal_mode = WAL')
  } finally {
    database.close()
  }
  syncFile(file)
}
