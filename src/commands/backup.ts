/** `backup FILE`: writes a snapshot of the embedded store and its encryption key to one file. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Config, readConfig } from '../config/config.ts'
import { ConfigError } from '../config/setting-kinds.ts'
import { blobLocation, openKeyRing } from '../domain/installation.ts'
import { decryptLatest } from '../storage/encrypted-columns.ts'
import { DecryptionError, Encryption, FixedKeys } from '../storage/encryption.ts'
import { keyFilePath, parseKeys } from '../storage/key-file.ts'
import { writeBackup } from '../storage/sqlite/sqlite-backup.ts'
import { connect } from '../storage/sqlite/sqlite-connection.ts'
import { type Inspection, inspectSqliteStore, schemaDeviations } from '../storage/sqlite/sqlite-inspection.ts'
import { findEncryptedColumns } from './doctor/encryption-key.ts'
import { formatBytes } from './doctor/finding.ts'
import { CommandError, print } from './output.ts'

export interface BackupOptions {
  withoutKey?: boolean
  overwrite?: boolean
}

export async function backup(
  file: string,
  { withoutKey = false, overwrite = false }: BackupOptions,
  environment: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  refusePostgres(environment)
  const config = readConfig(environment)
  const inspection = await openStore(config)
  const target = resolve(file)
  const keyPath = keyFilePath(config.DATA_DIR)
  const blobs = blobLocation(config)
  let signer: Encryption | undefined
  const hasKey = !config.ENCRYPTION_KEY && !withoutKey && existsSync(keyPath)
  try {
    await writeBackup(inspection, target, {
      overwrite,
      blobDirectory: blobs?.kind === 'directory' ? blobs.path : undefined,
      keyFile: () => (hasKey ? readFileSync(keyPath, 'utf8') : null),
      findSigner: async (copy, keyFile) => {
        signer = await findSigner(copy, keyFile, inspection, config, withoutKey)
        return signer
      },
    })
  } finally {
    inspection.close()
  }
  print(`Backed up ${inspection.path} to ${target} (${formatBytes(statSync(target).size)}).`)
  print(keyNote(config, hasKey, withoutKey))
  if (blobs?.kind === 'bucket') print(`It does not contain artifacts above 1 MiB, which are in ${blobs.url}.`)
  if (!signer) print('It is not signed, because no key of this store was found: `restore` needs --unsigned.')
}

/** @throws {CommandError} */
export function refusePostgres({ DATABASE_URL }: NodeJS.ProcessEnv): void {
  if (!DATABASE_URL) return
  throw new CommandError(
    [
      'DATABASE_URL is set: this command is for the embedded store. Back up PostgreSQL with its own tools, such as',
      `\`pg_dump --format=custom --schema='execution_service*' --file=FILE "$DATABASE_URL"\` and`,
      '`pg_restore --clean --if-exists --dbname="$DATABASE_URL" FILE` while all processes are stopped,',
      'or pg_basebackup with WAL archiving. Keep the encryption key apart from the backup.',
    ].join('\n'),
  )
}

async function openStore({ DATA_DIR }: Config): Promise<Inspection> {
  const inspection = await inspectSqliteStore(DATA_DIR)
  if (!inspection) throw new CommandError(`There is no store in ${DATA_DIR}: set DATA_DIR to the service's directory.`)
  const { newer } = inspection.schema
  if (newer.length === 0) return inspection
  inspection.close()
  throw new CommandError('The store was written by a newer version of this service: back it up with that version.')
}

/**
 * The keys that sign the backup: the installation's, if they decrypt the values of the copy.
 *
 * @param keyFile the key file in the backup, which another process may have changed since.
 */
async function findSigner(
  copy: string,
  keyFile: string | null,
  { path, schema }: Inspection,
  config: Config,
  withoutKey: boolean,
): Promise<Encryption | undefined> {
  const keyPath = keyFilePath(config.DATA_DIR)
  const { tx, database } = connect(copy, { readOnly: true })
  try {
    const deviations = await schemaDeviations(database)
    if (deviations.length > 0) {
      throw new CommandError(
        `The schema of ${path} is not that of this service (${deviations.join(', ')}), and \`restore\` would refuse the backup: undo the change.`,
      )
    }
    const columns = await findEncryptedColumns({ read: tx, schema })
    if (columns.length === 0 && !config.ENCRYPTION_KEY && !existsSync(keyPath)) return undefined
    const ring = keyFile === null ? await openKeyRing(config) : new FixedKeys(parseKeys(keyFile, keyPath))
    const encryption = new Encryption(ring)
    await decryptLatest(tx, encryption, columns)
    return encryption
  } catch (error) {
    if (withoutKey && (error instanceof DecryptionError || error instanceof ConfigError)) return undefined
    if (!(error instanceof DecryptionError)) throw error
    throw new CommandError(
      `The installation's key does not decrypt the values in ${path}: restore the right key, or use --without-key.`,
    )
  } finally {
    database.close()
  }
}

function keyNote({ ENCRYPTION_KEY, DATA_DIR }: Config, hasKey: boolean, withoutKey: boolean): string {
  if (hasKey) return 'It contains the encryption key, which decrypts everything. Keep it as safe as DATA_DIR.'
  if (!ENCRYPTION_KEY && !withoutKey) return 'There is no encryption key yet, because nothing is encrypted.'
  const place = ENCRYPTION_KEY ? 'ENCRYPTION_KEY' : keyFilePath(DATA_DIR)
  return `It does not contain the encryption key (${place}). Back that up separately: secrets and browser contexts are lost without it.`
}
