/** Checks that the encryption key is private and decrypts the values in the store. */
import { stat } from 'node:fs/promises'
import type { Config } from '../../config/config.ts'
import { encryptedColumns, openKeyRing } from '../../domain/installation.ts'
import { decryptLatest, type EncryptedColumn, hasEncryptedValues } from '../../storage/encrypted-columns.ts'
import { Encryption } from '../../storage/encryption.ts'
import { keyFilePath } from '../../storage/key-file.ts'
import type { Store, StoreInspection } from '../../storage/store.ts'
import { type Finding, fail, notChecked, type Opened, ok, shortMessage, warn } from './finding.ts'

export async function checkEncryptionKey(config: Config, opened: Opened): Promise<Finding> {
  if ('error' in opened) return notChecked('the store cannot be opened', 'the store')
  const { inspection } = opened
  const columns = inspection
    ? await findEncryptedColumns({ read: inspection.store.read, schema: inspection.schema })
    : []
  const path = keyFilePath(config.DATA_DIR)
  const place = config.ENCRYPTION_KEY ? 'ENCRYPTION_KEY' : path
  if (!config.ENCRYPTION_KEY) {
    const file = await stat(path).catch(() => undefined)
    if (!file) return missingKey(path, columns, config)
    const reference = config.DATABASE_URL ? config.DATA_DIR : (inspection?.path ?? config.DATA_DIR)
    const problem = await checkFile(path, file, reference)
    if (problem) return problem
  }
  try {
    // Unlike a start, this does not record the key in a store without encrypted values.
    const encryption = new Encryption(await openKeyRing(config))
    if (inspection) await decryptLatest(inspection.store.read, encryption, columns)
  } catch (error) {
    return fail(
      `${place} does not decrypt the values in the store (${shortMessage(error)})`,
      config.ENCRYPTION_KEY
        ? 'Set ENCRYPTION_KEY to the key that encrypted the store, or add that key to ENCRYPTION_KEY_PREVIOUS.'
        : `Restore ${path} from a backup, or set ENCRYPTION_KEY if the key was there.`,
    )
  }
  if (config.DATABASE_URL && !config.ENCRYPTION_KEY) {
    return warn(
      `the key is in ${path}, which other machines do not have`,
      'Set ENCRYPTION_KEY to the first line of that file for every process of the service.',
    )
  }
  return ok(columns.length > 0 ? `${place} decrypts the values in the store` : `${place}; nothing is encrypted yet`)
}

/** The columns that contain a value. A store of an earlier version lacks some columns. */
export async function findEncryptedColumns({
  read,
  schema,
}: Pick<Store, 'read'> & Pick<StoreInspection, 'schema'>): Promise<EncryptedColumn[]> {
  const found: EncryptedColumn[] = []
  for (const column of encryptedColumns) {
    const hasValues = hasEncryptedValues(read, [column])
    if (await (schema.pending.length > 0 ? hasValues.catch(() => false) : hasValues)) found.push(column)
  }
  return found
}

function missingKey(path: string, columns: readonly EncryptedColumn[], { DATABASE_URL }: Config): Finding {
  if (columns.length === 0) {
    const found = `none yet; the next start creates it in ${path}`
    if (!DATABASE_URL) return ok(found)
    return warn(`${found}, which other machines do not have`, 'Set ENCRYPTION_KEY on all machines before that.')
  }
  return fail(
    `${path} is missing, and values in the store are encrypted with its key`,
    'Restore it from a backup, or set ENCRYPTION_KEY if the key was there.',
  )
}

/** @param reference a file or directory that belongs to the user of the service. */
async function checkFile(
  path: string,
  { mode, uid }: { mode: number; uid: number },
  reference: string,
): Promise<Finding | undefined> {
  if ((mode & 0o077) !== 0) {
    const octal = (mode & 0o777).toString(8).padStart(4, '0')
    return fail(`other users can read ${path} (its mode is ${octal})`, `Run \`chmod 600 ${path}\`.`)
  }
  const { uid: expected } = await stat(reference)
  if (uid === expected) return undefined
  return fail(
    `${path} belongs to user ${uid}, and the store to user ${expected}`,
    `Run \`chown ${expected} ${path}\`, so that the service can read it.`,
  )
}
