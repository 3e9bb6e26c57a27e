/** `rotate-encryption-key`: makes a new key where there is a key file, and encrypts everything anew with the current one. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Config, readConfig } from '../config.ts'
import { encryptedColumns } from '../domain/encrypted-columns.ts'
import { openEncryption, openStore } from '../domain/installation.ts'
import { type Reencrypted, reencrypt } from '../storage/encrypted-columns.ts'
import { keyRefreshMilliseconds } from '../storage/encryption-keys.ts'
import { addKeyInTransaction, keyFilePath } from '../storage/key-file.ts'
import { ignoreUnavailable } from '../storage/store.ts'
import { CommandError } from './exit-with-error.ts'
import { print } from './print.ts'

/**
 * Until every process seals under the new key: the first second is the time in which they notice it, the second one is
 * for writing what was sealed just before.
 */
const settlingMilliseconds = 2 * keyRefreshMilliseconds

export async function rotateEncryptionKey(): Promise<void> {
  const config = readConfig(process.env)
  const store = await openStore(config)
  try {
    const encryption = await openEncryption(config, store, encryptedColumns)
    if (!config.ENCRYPTION_KEY) {
      await addKeyInTransaction(store, keyFilePath(config.DATA_DIR))
      print('Made a new key. Waiting until every process uses it…')
      await delay(settlingMilliseconds)
    }
    const resealed = await reencrypt(store, encryption, encryptedColumns)
    // What stood there under the older keys is not to stay in the files; where others read all the time, it takes longer.
    await store.scrub().catch(ignoreUnavailable)
    print(said(config, resealed))
    if (resealed.failures.length > 0) throw new CommandError(complaint(resealed.failures))
  } finally {
    await store.close()
  }
}

function said(config: Config, { values }: Reencrypted): string {
  const count = `Encrypted ${values} ${values === 1 ? 'value' : 'values'} anew.`
  if (!config.ENCRYPTION_KEY) {
    const path = keyFilePath(config.DATA_DIR)
    return `${count} The older keys stay in ${path}, for backups of the store that were made before: back up that file now.`
  }
  if (values > 0) return `${count} ENCRYPTION_KEY_PREVIOUS is needed for backups of the store that were made before.`
  return [
    'Nothing was encrypted with an older key. To change the key: make one with `openssl rand -base64 32`, start all',
    'processes anew with it as ENCRYPTION_KEY and with the present one in ENCRYPTION_KEY_PREVIOUS, and call this again.',
    'To start them one after the other, do so first with the new key in ENCRYPTION_KEY_PREVIOUS.',
  ].join('\n')
}

const refusedShownMax = 10

function complaint(refused: readonly string[]): string {
  const shown = refused.slice(0, refusedShownMax).map((each) => `  ${each}`)
  const more = refused.length > refusedShownMax ? [`  and ${refused.length - refusedShownMax} more`] : []
  const head = `These do not open, and were left as they are (${refused.length}):`
  return [head, ...shown, ...more].join('\n')
}
