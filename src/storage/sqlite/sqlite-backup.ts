/**
 * Backups of the embedded store: an SQLite file with all tables at one moment, and a table `backup` with the time and,
 * optionally, the text of the key file, and the blobs if they are in a directory. It ends with a digest of all bytes before, and a signature of the digest. SQLite
 * ignores what follows its last page.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import {
  appendFileSync,
  closeSync,
  createReadStream,
  existsSync,
  fsyncSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pipeline } from 'node:stream/promises'
import { syncDirectory } from '../directories.ts'
import type { Encryption } from '../encryption.ts'
import { addBlobs, dropBlobs } from './backup-blobs.ts'
import { resultCode } from './sqlite-connection.ts'
import { type Inspection, readHeader } from './sqlite-inspection.ts'

/** A backup cannot be written or restored; the message says what to do. */
export class BackupError extends Error {}

interface BackupMetadata {
  /** Milliseconds since 1970. */
  madeAt: number
  /** The text of the key file; `null` when the backup does not include it. */
  keyFile: string | null
}

export interface Backup extends BackupMetadata {
  /** Whether one of the keys has signed it. */
  isSignedBy(keys: Encryption): boolean
  /** False if it was written without a key. */
  isSigned: boolean
}

export interface BackupOptions {
  overwrite: boolean
  /** The directory of blobs; `undefined` if they are not in the backup. */
  blobDirectory: string | undefined
  /** Reads the key file. Called after the copy, so that it has every key that the copy is encrypted with. */
  keyFile(): string | null
  /** Returns what signs the backup, given its key file. Throws when the copy cannot be used. */
  findSigner(copy: string, keyFile: string | null): Promise<Encryption | undefined>
}

/** Writes a backup that appears under its name once it is complete, verified and durable. @throws {BackupError} */
export async function writeBackup(from: Inspection, file: string, options: BackupOptions): Promise<void> {
  rejectExisting(file, options.overwrite)
  const draft = `${file}.${randomBytes(4).toString('hex')}.partial`
  try {
    // Created here for its mode: it may contain a key.
    closeSync(openSync(draft, 'wx', 0o600))
    copy(from, draft)
    const keyFile = options.keyFile()
    addMetadata(draft, { madeAt: Date.now(), keyFile })
    if (options.blobDirectory !== undefined) addBlobs(draft, options.blobDirectory)
    checkCopy(from, draft)
    await sign(draft, await options.findSigner(draft, keyFile))
    syncFile(draft)
    rejectExisting(file, options.overwrite)
    renameSync(draft, file)
    syncDirectory(file)
  } catch (error) {
    rmSync(draft, { force: true })
    rmSync(`${draft}-journal`, { force: true })
    throw isSystemError(error) ? new BackupError(`${file} could not be written: ${error.message}.`) : error
  }
}

/** SQLITE_CORRUPT */
export const corrupt = 11

function copy(from: Inspection, draft: string): void {
  try {
    from.copyTo(draft)
  } catch (error) {
    if (resultCode(error) !== corrupt) throw error
    throw new BackupError(`${from.path} is damaged (${(error as Error).message}): restore an earlier backup.`)
  }
}

function checkCopy(from: Inspection, draft: string): void {
  try {
    readMetadata(draft)
  } catch {
    throw new BackupError(`The copy of ${from.path} is damaged and was deleted: check the store with \`doctor\`.`)
  }
}

function rejectExisting(file: string, overwrite: boolean): void {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found?.isDirectory()) throw new BackupError(`${file} is a directory: name a file in it.`)
  if (found && !overwrite) {
    throw new BackupError(`${file} exists: name another file, or pass --overwrite.`)
  }
  if (!existsSync(dirname(file))) throw new BackupError(`${dirname(file)} does not exist: create it first.`)
}

/** Whether the operating system or SQLite reported it: a full disk, missing permissions, a broken device. */
export function isSystemError(error: unknown): error is Error {
  const { syscall, code } = error as { syscall?: string; code?: string }
  return syscall !== undefined || code === 'ERR_SQLITE_ERROR'
}

function addMetadata(file: string, { madeAt, keyFile }: BackupMetadata): void {
  const database = new DatabaseSync(file)
  try {
    database.exec('CREATE TABLE backup (made_at INTEGER NOT NULL, key_file TEXT)')
    database.prepare('INSERT INTO backup VALUES (?, ?)').run(madeAt, keyFile)
  } finally {
    database.close()
  }
}

function syncFile(file: string): void {
  const descriptor = openSync(file, 'r+')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Checks the file's integrity and its digest. @throws {BackupError} when it is not an intact backup. */
export async function readBackup(file: string): Promise<Backup> {
  const found = statSync(file, { throwIfNoEntry: false })
  const databaseBytes = found?.isFile() ? readDatabaseSize(file) : undefined
  if (databaseBytes === undefined || found === undefined) throw notABackup(file)
  const bytes = databaseBytes + sealBytes
  const seal = readSeal(file, found.size)
  if (!seal && found.size === databaseBytes) readMetadata(file)
  // SQLite reads a truncated last page as zeros.
  if (!seal || found.size !== bytes) throw damaged(file, `it has ${found.size} of ${bytes} bytes`)
  const metadata = readMetadata(file)
  if (!timingSafeEqual(await digestOf(file, databaseBytes), seal.digest)) {
    throw damaged(file, 'its content does not have its digest')
  }
  return {
    ...metadata,
    isSigned: !seal.signature.equals(unsigned),
    isSignedBy: (keys) => {
      return keys.signatures(purpose, seal.digest.toString('hex')).some((each) => each.equals(seal.signature))
    },
  }
}

/** @throws {BackupError} when SQLite finds the file damaged, or it has no metadata. */
function readMetadata(file: string): BackupMetadata {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    // First, since a truncated file may answer other queries.
    const [result] = database.prepare('PRAGMA integrity_check(1)').all()
    if (result?.integrity_check !== 'ok') throw damaged(file, result?.integrity_check)
    const isBackup = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'backup'").get() !== undefined
    const row = isBackup && database.prepare('SELECT made_at AS madeAt, key_file AS keyFile FROM backup').get()
    if (!row) throw notABackup(file)
    return row as unknown as BackupMetadata
  } catch (error) {
    throw isSystemError(error) ? damaged(file, error.message) : error
  } finally {
    database.close()
  }
}

function notABackup(file: string): BackupError {
  return new BackupError(`${file} is not a backup: name a file that \`backup\` has written.`)
}

function damaged(file: string, reason: unknown): BackupError {
  return new BackupError(`${file} is damaged (${reason}): use another backup.`)
}

const magic = 'SQLite format 3\0'

/**
 * Returns the size that the file's header declares, in bytes (sqlite.org/fileformat.html, sections 1.3.2 and 1.3.7);
 * `undefined` when it is not an SQLite file.
 */
function readDatabaseSize(file: string): number | undefined {
  const header = readHeader(file)
  if (header.toString('latin1', 0, magic.length) !== magic) return undefined
  const pageBytes = header.readUInt16BE(16)
  return (pageBytes === 1 ? 65536 : pageBytes) * header.readUInt32BE(28)
}

/** Turns a copy of a backup into a store. Overwrites the key's text. */
export function removeBackupMetadata(file: string): void {
  truncateSync(file, statSync(file).size - sealBytes)
  const database = new DatabaseSync(file)
  try {
    database.exec('PRAGMA secure_delete = ON; DROP TABLE backup')
    dropBlobs(database)
    database.exec('PRAGMA journal_mode = WAL')
  } finally {
    database.close()
  }
  syncFile(file)
}

// The end of a backup: a mark, the digest of all bytes before it (SHA-256), and the signature of the digest.

const mark = Buffer.from('execution-backup')
const digestBytes = 32
const sealBytes = mark.length + 2 * digestBytes
const purpose = 'backup'
/** In place of a signature. */
const unsigned = Buffer.alloc(digestBytes)

async function sign(file: string, signer: Encryption | undefined): Promise<void> {
  const digest = await digestOf(file, statSync(file).size)
  appendFileSync(file, Buffer.concat([mark, digest, signer?.sign(purpose, digest.toString('hex')) ?? unsigned]))
}

function readSeal(file: string, size: number): { digest: Buffer; signature: Buffer } | undefined {
  const seal = Buffer.alloc(sealBytes)
  if (size < sealBytes) return undefined
  const descriptor = openSync(file, 'r')
  try {
    readSync(descriptor, seal, 0, sealBytes, size - sealBytes)
  } finally {
    closeSync(descriptor)
  }
  if (!seal.subarray(0, mark.length).equals(mark)) return undefined
  return { digest: seal.subarray(mark.length, -digestBytes), signature: seal.subarray(-digestBytes) }
}

async function digestOf(file: string, bytes: number): Promise<Buffer> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file, { end: bytes - 1 }), hash)
  return hash.digest()
}
