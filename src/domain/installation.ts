/** Opens the store and the encryption keys, which all processes of an installation share. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/setting-kinds.ts'
import { type BlobLocation, type BlobStore, openBlobStore } from '../storage/blobs/blob-store.ts'
import { encryptionCheckColumn, hasEncryptedValues, verifyEncryptionKeys } from '../storage/encrypted-columns.ts'
import { Encryption, FixedKeys, type KeyRing } from '../storage/encryption.ts'
import { createKeyFile, KeyFile, KeyFileError, keyFilePath } from '../storage/key-file.ts'
import { openSqliteStore } from '../storage/sqlite/sqlite-store.ts'
import { type Store, StoreUnavailable } from '../storage/store.ts'
import { encryptedInAccountValues } from './account-values/account-values.sql.ts'
import { encryptedInUsers } from './accounts/second-factors.ts'
import { encryptedInBrowserContexts } from './browser-contexts/browser-contexts.sql.ts'
import { encryptedInSignIns } from './browser-contexts/sign-ins.sql.ts'
import { encryptedInNotifications } from './notifications/notifications.sql.ts'
import { encryptedInRuns } from './runs/run.ts'
import { encryptedInSchedules } from './schedules/schedules.sql.ts'
import { encryptedInWebhooks } from './webhooks/webhooks.sql.ts'

/** All encrypted columns of the store. A rotation of the key does not re-encrypt columns that are missing here. */
export const encryptedColumns = [
  encryptionCheckColumn,
  ...encryptedInRuns,
  ...encryptedInBrowserContexts,
  ...encryptedInUsers,
  ...encryptedInWebhooks,
  ...encryptedInSchedules,
  ...encryptedInSignIns,
  ...encryptedInAccountValues,
  ...encryptedInNotifications,
]

/** @throws {ConfigError} if the database or the data directory cannot be used. */
export async function openStore(config: Config): Promise<Store> {
  const { DATABASE_URL, DATABASE_CONNECTIONS } = config
  if (DATABASE_URL === undefined) return inDataDirectory(config, () => openSqliteStore(config.DATA_DIR))
  // Loaded on demand, which saves memory and start time with the embedded store.
  const { DatabaseBusy, DatabaseError, openPostgresStore } = await import('../storage/postgres/postgres-store.ts')
  try {
    return await retryAtStart(() => openPostgresStore(DATABASE_URL, { connectionsMax: DATABASE_CONNECTIONS }))
  } catch (error) {
    throw error instanceof DatabaseError || error instanceof DatabaseBusy ? new ConfigError(error.message) : error
  }
}

/** Where large contents are; `undefined` if they are in the database. @param log gets warnings about a bucket. */
export async function openBlobs(config: Config, log?: Pick<Logger, 'warn'>): Promise<BlobStore | undefined> {
  const { ARTIFACTS_ACCESS_KEY_ID: accessKeyId, ARTIFACTS_SECRET_ACCESS_KEY: secretAccessKey } = config
  const location = blobLocation(config)
  const credentials = accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey } : undefined
  const warn = (err: Error) => log?.warn({ err }, 'the bucket of ARTIFACTS_URL refuses requests; retrying')
  return location && openBlobStore(location, credentials, warn)
}

/** A directory of the machine is the default only where the store is one, too: other machines could not read it. */
export function blobLocation({ ARTIFACTS_URL, DATABASE_URL, DATA_DIR }: Config): BlobLocation | undefined {
  if (ARTIFACTS_URL) return ARTIFACTS_URL
  return DATABASE_URL === undefined ? { kind: 'directory', path: join(DATA_DIR, 'blobs') } : undefined
}

const startRetryMilliseconds = { interval: 100, max: 30_000 }

/**
 * Retries while the store is unavailable. When many processes start together, the database may have no free connection,
 * and locks take long.
 */
export async function retryAtStart<Result>(act: () => Promise<Result>): Promise<Result> {
  const deadline = performance.now() + startRetryMilliseconds.max
  for (;;) {
    try {
      return await act()
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || performance.now() > deadline) throw error
      await delay(startRetryMilliseconds.interval)
    }
  }
}

/**
 * Creates the key file if the store has no encrypted data and no key is configured.
 *
 * @throws {ConfigError} if the store was encrypted with another key, or the key file cannot be used.
 */
export async function openEncryption(config: Config, store: Store): Promise<Encryption> {
  return retryAtStart(() => createEncryption(config, store))
}

async function createEncryption(config: Config, store: Store): Promise<Encryption> {
  const path = keyFilePath(config.DATA_DIR)
  if (!config.ENCRYPTION_KEY) {
    // The store is checked before the file, because another process that starts now creates the file first.
    const isEncrypted = await hasEncryptedValues(store.read, encryptedColumns)
    if (isEncrypted && !existsSync(path)) {
      throw new ConfigError(
        `The encryption key ${path} is missing: restore it from a backup, or set ENCRYPTION_KEY if the key was configured there.`,
      )
    }
    if (!isEncrypted) await inDataDirectory(config, async () => createKeyFile(path))
  }
  const ring = await openKeyRing(config)
  const encryption = new Encryption(ring)
  if (await verifyEncryptionKeys(store, encryption, encryptedColumns)) return encryption
  throw new ConfigError(`The store was encrypted with another key: ${ring.missingKeyAdvice}.`)
}

/** Whether a process has already decided on the key with which the store is encrypted. */
export function hasEncryptionKey(store: Store): Promise<boolean> {
  return hasEncryptedValues(store.read, encryptedColumns)
}

/** @throws {ConfigError} if the key file cannot be used. */
export async function openKeyRing(config: Config): Promise<KeyRing> {
  const { DATA_DIR, ENCRYPTION_KEY, ENCRYPTION_KEY_PREVIOUS } = config
  if (ENCRYPTION_KEY) return new FixedKeys([ENCRYPTION_KEY, ...(ENCRYPTION_KEY_PREVIOUS ?? [])])
  return inDataDirectory(config, async () => new KeyFile(keyFilePath(DATA_DIR)))
}

/** Reports a missing, unwritable or full directory as an error of the configuration. */
async function inDataDirectory<Result>({ DATA_DIR }: Config, act: () => Promise<Result>): Promise<Result> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof KeyFileError) throw new ConfigError(error.message)
    const { syscall, message } = error as NodeJS.ErrnoException
    if (syscall === undefined && !(error instanceof StoreUnavailable)) throw error
    throw new ConfigError(`DATA_DIR (${DATA_DIR}) cannot be used: ${message}. Set it to a writable directory.`)
  }
}
