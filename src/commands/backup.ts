/** `backup FILE`: writes the store and its encryption key to one file, beside a service that runs. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Config, readConfig } from '../config.ts'
import { openKeyRing } from '../domain/installation.ts'
import { decryptLatest } from '../storage/encrypted-columns.ts'
import { DecryptionError, Encryption } from '../storage/encryption.ts'
import { keyFilePath } from '../storage/key-file.ts'
import { BackupError, readBackupMetadata, writeBackup } from '../storage/sqlite/sqlite-backup.ts'
import { connect } from '../storage/sqlite/sqlite-connection.ts'
import { type Inspection, inspectSqliteStore } from '../storage/sqlite/sqlite-inspection.ts'
import { sealedIn } from './doctor/encryption-key.ts'
import { sizeOf } from './doctor/finding.ts'
import { CommandError } from './exit-with-error.ts'
import { refusePostgres } from './postgres-backup.ts'
import { print } from './print.ts'

export interface BackupCall {
  withoutKey?: boolean
  overwrite?: boolean
}

export async function backup(
  file: string,
  { withoutKey = false, overwrite = false }: BackupCall,
  environment: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  refusePostgres(environment)
  const config = readConfig(environment)
  const inspection = await openedStore(config)
  const target = resolve(file)
  const keyPath = keyFilePath(config.DATA_DIR)
  const hasKey = !config.ENCRYPTION_KEY && !withoutKey && existsSync(keyPath)
  try {
    await writeBackup(inspection, target, {
      overwrite,
      keyFile: () => (hasKey ? readFileSync(keyPath, 'utf8') : null),
      verify: (draft) => verify(draft, inspection, withoutKey ? undefined : config),
    })
  } finally {
    inspection.close()
  }
  print(`Backed up ${inspection.path} to ${target} (${sizeOf(statSync(target).size)}).`)
  print(ofKey(config, hasKey, withoutKey))
}

async function openedStore({ DATA_DIR }: Config): Promise<Inspection> {
  const inspection = await inspectSqliteStore(DATA_DIR)
  if (!inspection) throw new CommandError(`There is no store in ${DATA_DIR}: set DATA_DIR to the service's.`)
  const { newer } = inspection.schema
  if (newer.length === 0) return inspection
  inspection.close()
  throw new CommandError('The store was written by a newer version of this service: back it up with that version.')
}

/** It is whole, and the installation's keys open what it holds; whoever keeps them elsewhere may call this without. */
async function verify(draft: string, { path, schema }: Inspection, config: Config | undefined): Promise<void> {
  try {
    readBackupMetadata(draft)
  } catch (error) {
    if (!(error instanceof BackupError)) throw error
    throw new CommandError(
      `What was copied of ${path} is not whole, and was not kept: look for the fault by \`doctor\`.`,
    )
  }
  if (!config) return
  const { tx, database } = connect(draft, { readOnly: true })
  try {
    const columns = await sealedIn({ read: tx, schema })
    if (columns.length > 0) await decryptLatest(tx, new Encryption(await openKeyRing(config)), columns)
  } catch (error) {
    if (!(error instanceof DecryptionError)) throw error
    throw new CommandError(
      `The installation's key does not open what ${path} holds: put the right one there, or call this with --without-key.`,
    )
  } finally {
    database.close()
  }
}

function ofKey({ ENCRYPTION_KEY, DATA_DIR }: Config, hasKey: boolean, withoutKey: boolean): string {
  if (hasKey)
    return 'The encryption key is in it: whoever reads this file reads everything. Keep it as safe as DATA_DIR.'
  const without = 'is not in it; without it, secrets and browser contexts are lost. Keep it, apart from this file.'
  if (ENCRYPTION_KEY) return `The encryption key, which ENCRYPTION_KEY holds, ${without}`
  return withoutKey
    ? `The encryption key, which ${keyFilePath(DATA_DIR)} holds, ${without}`
    : 'There is no encryption key yet, because nothing is encrypted.'
}
