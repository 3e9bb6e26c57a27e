/** What every process of an installation opens: its store and its encryption. */
import { existsSync } from 'node:fs'
import { type Config, ConfigError } from '../config.ts'
import type { EncryptedColumn } from '../storage/encrypted-columns.ts'
import { hasEncryptedData, verifyEncryptionKeys } from '../storage/encrypted-columns.ts'
import { Encryption } from '../storage/encryption.ts'
import { FixedKeys, type KeyRing } from '../storage/encryption-keys.ts'
import { createKeyFile, KeyFile, KeyFileError, keyFilePath } from '../storage/key-file.ts'
import { openSqliteStore } from '../storage/sqlite/sqlite-store.ts'
import { type Store, StoreUnavailable } from '../storage/store.ts'

/** @throws {ConfigError} when the database or the data directory cannot be used. */
export async function openStore(config: Config): Promise<Store> {
  const { DATABASE_URL, DATABASE_CONNECTIONS } = config
  if (DATABASE_URL === undefined) return inDataDirectory(config, () => openSqliteStore(config.DATA_DIR))
  // Loaded where it is used: it takes memory and time at the start.
  const { DatabaseError, openPostgresStore } = await import('../storage/postgres/postgres-store.ts')
  try {
    return await openPostgresStore(DATABASE_URL, { connectionsMax: DATABASE_CONNECTIONS })
  } catch (error) {
    throw error instanceof DatabaseError ? new ConfigError(error.message) : error
  }
}

/**
 * The installation's encryption. A store that has nothing encrypted gets its first key, unless one is configured.
 *
 * @param columns what the domain keeps encrypted.
 * @throws {ConfigError} when the store was encrypted with another key, and when the key file cannot be used.
 */
export async function openEncryption(
  config: Config,
  store: Store,
  columns: readonly EncryptedColumn[],
): Promise<Encryption> {
  const path = keyFilePath(config.DATA_DIR)
  if (!config.ENCRYPTION_KEY) {
    // In this order: another process may be making both at this moment, the file first.
    const encrypted = await hasEncryptedData(store, columns)
    if (encrypted && !existsSync(path)) {
      throw new ConfigError(
        `${path} is missing, and the store is encrypted with a key that it held: restore it from a backup, or set ENCRYPTION_KEY if the key was there.`,
      )
    }
    if (!encrypted) await inDataDirectory(config, async () => createKeyFile(path))
  }
  const ring = await openKeyRing(config)
  const encryption = new Encryption(ring)
  if (await verifyEncryptionKeys(store, encryption, columns)) return encryption
  throw new ConfigError(`The store was encrypted with another key: ${ring.missingKeyAdvice}.`)
}

/** @throws {ConfigError} when the key file cannot be used. */
export async function openKeyRing(config: Config): Promise<KeyRing> {
  const { DATA_DIR, ENCRYPTION_KEY, ENCRYPTION_KEY_PREVIOUS } = config
  if (ENCRYPTION_KEY) return new FixedKeys([ENCRYPTION_KEY, ...(ENCRYPTION_KEY_PREVIOUS ?? [])])
  return inDataDirectory(config, async () => new KeyFile(keyFilePath(DATA_DIR)))
}

/** A directory that is missing, no directory, not writable or full is the operator's to mend. */
async function inDataDirectory<Result>({ DATA_DIR }: Config, act: () => Promise<Result>): Promise<Result> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof KeyFileError) throw new ConfigError(error.message)
    const { syscall, message } = error as NodeJS.ErrnoException
    const ofDirectory = syscall !== undefined || error instanceof StoreUnavailable
    if (!ofDirectory) throw error
    throw new ConfigError(
      `DATA_DIR (${DATA_DIR}) cannot be used: ${message}. Set it to a directory that can be written to.`,
    )
  }
}
