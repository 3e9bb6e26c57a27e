/** Whether the encryption key is there for its owner alone, and opens what the store holds. */
import { stat } from 'node:fs/promises'
import type { Config } from '../../config.ts'
import { encryptedColumns, openKeyRing } from '../../domain/installation.ts'
import { decryptLatest, type EncryptedColumn, hasEncryptedValues } from '../../storage/encrypted-columns.ts'
import { Encryption } from '../../storage/encryption.ts'
import { keyFilePath } from '../../storage/key-file.ts'
import type { Store } from '../../storage/store.ts'
import type { StoreInspection } from '../../storage/store-inspection.ts'
import { type Finding, fail, ok, reasonOf, unchecked, warn } from './finding.ts'
import type { Read } from './store.ts'

export async function checkEncryptionKey(config: Config, read: Read): Promise<Finding> {
  if ('refused' in read) return unchecked('the store does not open', 'the store')
  const { inspection } = read
  const sealed = inspection
    ? await findEncryptedColumns({ read: inspection.store.read, schema: inspection.schema })
    : []
  const path = keyFilePath(config.DATA_DIR)
  const place = config.ENCRYPTION_KEY ? 'ENCRYPTION_KEY' : path
  if (!config.ENCRYPTION_KEY) {
    const found = await stat(path).catch(() => undefined)
    if (!found) return missing(path, sealed, config)
    const fault = await fileFault(
      path,
      found,
      config.DATABASE_URL ? config.DATA_DIR : (inspection?.path ?? config.DATA_DIR),
    )
    if (fault) return fault
  }
  try {
    // Not as a start opens it, which would have a store without anything encrypted remember the key.
    const encryption = new Encryption(await openKeyRing(config))
    if (inspection) await decryptLatest(inspection.store.read, encryption, sealed)
  } catch (error) {
    return fail(
      `${place} does not open what the store holds (${reasonOf(error)})`,
      config.ENCRYPTION_KEY
        ? 'Set ENCRYPTION_KEY to the key that the store was encrypted with, or add that to ENCRYPTION_KEY_PREVIOUS.'
        : `Restore ${path} from a backup, or set ENCRYPTION_KEY if the key was there.`,
    )
  }
  if (config.DATABASE_URL && !config.ENCRYPTION_KEY) {
    return warn(
      `the key is in ${path}, which other machines do not have`,
      'Set ENCRYPTION_KEY to the first line of that file wherever a process of the service runs.',
    )
  }
  return ok(sealed.length > 0 ? `${place} opens what the store holds` : `${place}; the store holds nothing encrypted`)
}

/** The columns that hold any value. A store of an earlier version lacks some of them. */
export async function findEncryptedColumns({
  read,
  schema,
}: Pick<Store, 'read'> & Pick<StoreInspection, 'schema'>): Promise<EncryptedColumn[]> {
  const found: EncryptedColumn[] = []
  for (const column of encryptedColumns) {
    const holds = hasEncryptedValues(read, [column])
    if (await (schema.pending.length > 0 ? holds.catch(() => false) : holds)) found.push(column)
  }
  return found
}

function missing(path: string, sealed: readonly EncryptedColumn[], { DATABASE_URL }: Config): Finding {
  if (sealed.length === 0) {
    const found = `there is none yet; the next start makes it in ${path}`
    if (!DATABASE_URL) return ok(found)
    return warn(`${found}, which other machines do not have`, 'Set ENCRYPTION_KEY on all of them before that.')
  }
  return fail(
    `${path} is missing, and the store is encrypted with the key that it held`,
    'Restore it from a backup, or set ENCRYPTION_KEY if the key was there.',
  )
}

/** @param beside what belongs to the user whom the service runs as. */
async function fileFault(
  path: string,
  { mode, uid }: { mode: number; uid: number },
  beside: string,
): Promise<Finding | undefined> {
  if ((mode & 0o077) !== 0) {
    const octal = (mode & 0o777).toString(8).padStart(4, '0')
    return fail(`${path} can be read by others than its owner (its mode is ${octal})`, `Run \`chmod 600 ${path}\`.`)
  }
  const { uid: expected } = await stat(beside)
  if (uid === expected) return undefined
  return fail(
    `${path} belongs to user ${uid}, and the store to user ${expected}`,
    `Run \`chown ${expected} ${path}\`, so that the service can read it.`,
  )
}
