/** `restore FILE`: restores a file of `backup` into a data directory that no process uses. */
import { chmodSync, copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Config, readConfig } from '../config/config.ts'
import { createDirectory } from '../storage/directories.ts'
import { decryptLatest } from '../storage/encrypted-columns.ts'
import { DecryptionError, Encryption, FixedKeys, type KeyRing } from '../storage/encryption.ts'
import { KeyFile, keyFilePath } from '../storage/key-file.ts'
import { schemaDifference } from '../storage/migrations/migrations.ts'
import {
  BackupError,
  isSystemError,
  readBackupMetadata,
  removeBackupMetadata,
} from '../storage/sqlite/sqlite-backup.ts'
import { connect } from '../storage/sqlite/sqlite-connection.ts'
import { replaceStore, storeExistsError, storePath } from '../storage/sqlite/sqlite-restore.ts'
import { refusePostgres } from './backup.ts'
import { findEncryptedColumns } from './doctor/encryption-key.ts'
import { print } from './output.ts'

export async function restore(
  file: string,
  { replace = false }: { replace?: boolean },
  environment: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  refusePostgres(environment)
  const config = readConfig(environment)
  const { DATA_DIR: directory } = config
  const source = resolve(file)
  if (!replace && existsSync(storePath(directory))) throw storeExistsError(directory)
  const { madeAt, keyFile } = readBackupMetadata(source)
  const from = await explainSystemErrors(directory, async () => {
    createDirectory(directory)
    return mkdtempSync(join(directory, 'restoring-'))
  })
  try {
    const kept = await explainSystemErrors(directory, async () => {
      copyFileSync(source, storePath(from))
      chmodSync(storePath(from), 0o600)
      if (keyFile !== null) writeFileSync(keyFilePath(from), keyFile, { mode: 0o600, flush: true })
      await verify(source, from, config)
      removeBackupMetadata(storePath(from))
      return replaceStore({ directory, from, replace })
    })
    print(`Restored the store as it was at ${new Date(madeAt).toISOString()} to ${directory}.`)
    if (kept) print(`The previous store is in ${kept}. Delete it when you no longer need it.`)
  } finally {
    rmSync(from, { recursive: true, force: true })
  }
}

/** Checks that the service can start with it: its schema is not newer, and the keys decrypt its values. */
async function verify(source: string, from: string, config: Config): Promise<void> {
  const { tx, database } = connect(storePath(from), { readOnly: true })
  try {
    const schema = await schemaDifference(tx.query)
    if (schema.newer.length > 0) {
      throw new BackupError(`${source} was written by a newer version of this service: restore it with that version.`)
    }
    const columns = await findEncryptedColumns({ read: tx, schema })
    if (columns.length === 0) return
    const keys = keysFor(source, from, config)
    await decryptLatest(tx, new Encryption(keys.ring), columns).catch((error: unknown) => {
      if (!(error instanceof DecryptionError)) throw error
      throw new BackupError(
        `${keys.place} does not decrypt the values in ${source}: use the key that the store had when it was backed up.`,
      )
    })
  } finally {
    database.close()
  }
}

/** The keys that the service will use. */
function keysFor(source: string, from: string, config: Config): { ring: KeyRing; place: string } {
  const { DATA_DIR, ENCRYPTION_KEY, ENCRYPTION_KEY_PREVIOUS } = config
  if (ENCRYPTION_KEY) {
    return { ring: new FixedKeys([ENCRYPTION_KEY, ...(ENCRYPTION_KEY_PREVIOUS ?? [])]), place: 'ENCRYPTION_KEY' }
  }
  const [restored, present] = [keyFilePath(from), keyFilePath(DATA_DIR)]
  if (existsSync(restored)) return { ring: new KeyFile(restored), place: 'The key file in the backup' }
  if (existsSync(present)) return { ring: new KeyFile(present), place: present }
  throw new BackupError(
    `${source} does not contain the encryption key: put the key file at ${present}, or set ENCRYPTION_KEY.`,
  )
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
