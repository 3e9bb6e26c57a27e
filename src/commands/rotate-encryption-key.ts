/** `rotate-encryption-key`: adds a key to the key file, if there is one, and re-encrypts everything with the newest key. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Config, readConfig } from '../config/config.ts'
import { encryptedColumns, openEncryption, openStore } from '../domain/installation.ts'
import { type Reencrypted, reencrypt } from '../storage/encrypted-columns.ts'
import { keyRefreshMilliseconds } from '../storage/encryption.ts'
import { addKeyInTransaction, keyFilePath } from '../storage/key-file.ts'
import { schemaDifference } from '../storage/migrations/migrations.ts'
import { ignoreUnavailable } from '../storage/store.ts'
import { requireStore } from './accounts.ts'
import { CommandError, print } from './output.ts'

/** Processes reload the key file within one refresh interval; a second one lets writes under the old key finish. */
const waitMilliseconds = 2 * keyRefreshMilliseconds

export async function rotateEncryptionKey(): Promise<void> {
  const config = readConfig(process.env)
  await requireStore(config)
  const store = await openStore(config)
  try {
    const { newer } = await schemaDifference(store.read.query)
    if (newer.length > 0) {
      throw new CommandError(
        'The store was written by a newer version of this service: rotate the key with that version, which knows all encrypted columns.',
      )
    }
    const encryption = await openEncryption(config, store)
    if (!config.ENCRYPTION_KEY) {
      await addKeyInTransaction(store, keyFilePath(config.DATA_DIR))
      print('Created a new key. Waiting until every process uses it…')
      await delay(waitMilliseconds)
    }
    const result = await reencrypt(store, encryption, encryptedColumns)
    // Removes the old ciphertext from the files. Skipped when other processes keep the store busy.
    await store.scrub().catch(ignoreUnavailable)
    print(summary(config, result))
    if (result.failures.length > 0) throw new CommandError(failureList(result.failures))
  } finally {
    await store.close()
  }
}

function summary(config: Config, { values }: Reencrypted): string {
  const count = `Re-encrypted ${values} ${values === 1 ? 'value' : 'values'}.`
  if (!config.ENCRYPTION_KEY) {
    const path = keyFilePath(config.DATA_DIR)
    return `${count} Older keys stay in ${path}, because older backups of the store need them. Back up that file now.`
  }
  if (values > 0) return `${count} Keep the keys of ENCRYPTION_KEY_PREVIOUS: older backups of the store need them.`
  return [
    'Nothing is encrypted with an older key. To rotate the key:',
    '  1. Create a key with `openssl rand -base64 32`.',
    '  2. Restart all processes with it as ENCRYPTION_KEY and the present key in ENCRYPTION_KEY_PREVIOUS.',
    '     To restart one at a time, first restart each with the new key in ENCRYPTION_KEY_PREVIOUS.',
    '  3. Run this command again.',
  ].join('\n')
}

const failuresShownMax = 10

function failureList(failures: readonly string[]): string {
  const shown = failures.slice(0, failuresShownMax).map((each) => `  ${each}`)
  const more = failures.length > failuresShownMax ? [`  and ${failures.length - failuresShownMax} more`] : []
  return [`These values cannot be decrypted and were left unchanged (${failures.length}):`, ...shown, ...more].join(
    '\n',
  )
}
