/** `restore FILE`: restores a file of `backup` into a data directory that no process uses. */
import { chmodSync, copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Config, readConfig } from '../config/config.ts'
import { blobLocation } from '../domain/installation.ts'
import { createDirectory } from '../storage/directories.ts'
import { decryptLatest } from '../storage/encrypted-columns.ts'
import { DecryptionError, Encryption, FixedKeys, type KeyRing } from '../storage/encryption.ts'
import { KeyFile, keyFilePath, parseKeys } from '../storage/key-file.ts'
import { schemaDifference } from '../storage/migrations/migrations.ts'
import { writeBlobs } from '../storage/sqlite/backup-blobs.ts'
import {
  type Backup,
  BackupError,
  isSystemError,
  readBackup,
  removeBackupMetadata,
} from '../storage/sqlite/sqlite-backup.ts'
import { connect } from '../storage/sqlite/sqlite-connection.ts'
import { schemaDeviations } from '../storage/sqlite/sqlite-inspection.ts'
import { replaceStore, storeExistsError, storePath } from '../storage/sqlite/sqlite-restore.ts'
import { refusePostgres } from './backup.ts'
import { findEncryptedColumns } from './doctor/encryption-key.ts'
import { print } from './output.ts'

export interface RestoreOptions {
  replace?: boolean
  /** Accepts a backup that no key has signed. */
  unsigned?: boolean
}

export async function restore(
  file: string,
  { replace = false, unsigned = false }: RestoreOptions,
  environment: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  refusePostgres(environment)
  const config = readConfig(environment)
  const { DATA_DIR: directory } = config
  const source = resolve(file)
  if (!replace && existsSync(storePath(directory))) throw storeExistsError(directory)
  const backup = await readBackup(source)
  const keys = keysFor(source, backup, config)
  const isOwn = checkSignature(source, backup, keys, unsigned)
  const from = await explainSystemErrors(directory, async () => {
    createDirectory(directory)
    return mkdtempSync(join(directory, 'restoring-'))
  })
  try {
    const blobs = blobLocation(config)
    let hasLeftBlobs = false
    const kept = await explainSystemErrors(directory, async () => {
      copyFileSync(source, storePath(from))
      chmodSync(storePath(from), 0o600)
      if (backup.keyFile !== null) writeFileSync(keyFilePath(from), backup.keyFile, { mode: 0o600, flush: true })
      removeBackupMetadata(storePath(from))
      await verify(source, from, keys)
      const blobDirectory = blobs?.kind === 'directory' ? blobs.path : undefined
      hasLeftBlobs = writeBlobs(source, blobDirectory) && blobDirectory === undefined
      return replaceStore({ directory, from, replace })
    })
    print(`Restored the store as it was at ${new Date(backup.madeAt).toISOString()} to ${directory}.`)
    if (hasLeftBlobs)
      print('Its artifacts above 1 MiB were not restored, because ARTIFACTS_URL is a bucket: they cannot be read.')
    if (!isOwn) print(foreignNote(backup))
    if (kept) print(`The previous store is in ${kept}. Delete it when you no longer need it.`)
  } finally {
    rmSync(from, { recursive: true, force: true })
  }
}

interface Keys {
  /** The keys that the service will use; `undefined` if there are none. */
  ring: KeyRing | undefined
  place: string
  /** The keys that the installation already has. */
  present: KeyRing | undefined
}

function keysFor(source: string, { keyFile }: Backup, config: Config): Keys {
  const { DATA_DIR, ENCRYPTION_KEY, ENCRYPTION_KEY_PREVIOUS } = config
  if (ENCRYPTION_KEY) {
    const ring = new FixedKeys([ENCRYPTION_KEY, ...(ENCRYPTION_KEY_PREVIOUS ?? [])])
    return { ring, place: 'ENCRYPTION_KEY', present: ring }
  }
  const path = keyFilePath(DATA_DIR)
  const present = existsSync(path) ? new KeyFile(path) : undefined
  if (keyFile === null) return { ring: present, place: path, present }
  return { ring: new FixedKeys(parseKeys(keyFile, source)), place: 'the key that it contains', present }
}

/**
 * @returns whether a key has signed it that the installation has, and not only the backup.
 * @throws {BackupError} unless a key of the installation or of the backup has signed it.
 */
function checkSignature(source: string, backup: Backup, { ring, place, present }: Keys, unsigned: boolean): boolean {
  const isSignedBy = (keys: KeyRing | undefined) => keys !== undefined && backup.isSignedBy(new Encryption(keys))
  if (isSignedBy(present)) return true
  if (isSignedBy(ring)) return false
  if (!backup.isSigned) {
    if (unsigned) return false
    throw new BackupError(`${source} is not signed: pass --unsigned if you know who wrote it.`)
  }
  if (!ring) throw missingKey(source, place)
  throw new BackupError(
    `${source} was changed, or is not signed with ${place}: use another backup, or the key that the store had.`,
  )
}

function missingKey(source: string, path: string): BackupError {
  return new BackupError(
    `${source} does not contain the encryption key: put the key file at ${path}, or set ENCRYPTION_KEY.`,
  )
}

function foreignNote({ isSigned }: Backup): string {
  if (!isSigned) return 'The backup is intact, but not signed.'
  return 'The backup is signed with the key that it contains: it is intact, but anyone who had the file can have changed it.'
}

/** Checks that the service can start with it: its schema is one of this service, and the keys decrypt its values. */
async function verify(source: string, from: string, { ring, place }: Keys): Promise<void> {
  const { tx, database } = connect(storePath(from), { readOnly: true })
  try {
    const schema = await schemaDifference(tx.query)
    if (schema.newer.length > 0) {
      throw new BackupError(`${source} was written by a newer version of this service: restore it with that version.`)
    }
    const deviations = await schemaDeviations(database)
    if (deviations.length > 0) {
      throw new BackupError(
        `The schema in ${source} is not that of this service (${deviations.join(', ')}): it was changed. Use another backup.`,
      )
    }
    const columns = await findEncryptedColumns({ read: tx, schema })
    if (columns.length === 0) return
    if (!ring) throw missingKey(source, place)
    await decryptLatest(tx, new Encryption(ring), columns).catch((error: unknown) => {
      if (!(error instanceof DecryptionError)) throw error
      throw new BackupError(
        `The values in ${source} are encrypted with a key other than ${place}: use the key that the store had.`,
      )
    })
  } finally {
    database.close()
  }
}

/** The operator can fix a directory that is not writable or full: explains instead of printing a stack. */
async function explainSystemErrors<Result>(directory: string, act: () => Promise<Result>): Promise<Result> {
  try {
    return await act()
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw new BackupError(`Restoring into ${directory} failed: ${error.message}. Nothing was changed.`)
  }
}
