/**
 * Whether the keys at hand are those that the store was encrypted with: the store remembers a sealed value, which every
 * process opens before it encrypts anything. A lost key is thus noticed before another one takes its place.
 */

import { type EncryptedColumn, encryptedColumn, lockEncrypted, openLatest } from './encrypted-columns.ts'
import { DecryptionError, type Encryption } from './encryption.ts'
import type { Store } from './store.ts'

const owner = 'encryption-check'
const rowId = 1

export const encryptedCheck: EncryptedColumn = encryptedColumn({
  table: 'encryption_check',
  key: ['id'],
  column: 'value',
  ownerParts: {},
  owner: () => owner,
})

/** Whether anything was ever encrypted that is still there. */
export function isEncrypted(store: Store, columns: readonly EncryptedColumn[]): Promise<boolean> {
  return lockEncrypted(store.read, [encryptedCheck, ...columns])
}

/** Whether these are the store's keys; those of a store that has nothing encrypted become so. */
export async function fits(
  store: Store,
  encryption: Encryption,
  columns: readonly EncryptedColumn[],
): Promise<boolean> {
  try {
    if (!(await lockEncrypted(store.read, [encryptedCheck]))) {
      // Of an earlier version, or new.
      await openLatest(store.read, encryption, columns)
      await remember(store, encryption)
    }
    await openLatest(store.read, encryption, [encryptedCheck])
    return true
  } catch (error) {
    if (error instanceof DecryptionError) return false
    throw error
  }
}

/** Another process that starts at the same time may be first. */
async function remember(store: Store, encryption: Encryption): Promise<void> {
  const row = { id: rowId, value: encryption.encrypt('', owner) }
  await store.write(({ query }) =>
    query
      .insertInto('encryption_check')
      .values(row)
      .onConflict((it) => it.doNothing())
      .execute(),
  )
}
