/**
 * Whether the keys at hand are those that the store was encrypted with: the store remembers a sealed value, which every
 * process opens before it encrypts anything. A lost key is thus noticed before another one takes its place.
 */
import { type Encryption, SealRefused } from './encryption.ts'
import { holdSealed, openLatest, type SealedColumn, sealedColumn } from './sealed-columns.ts'
import type { Store } from './store.ts'

const owner = 'encryption-check'
const rowId = 1

export const sealedCheck: SealedColumn = sealedColumn({
  table: 'encryption_check',
  key: ['id'],
  column: 'value',
  ownerParts: {},
  owner: () => owner,
})

/** Whether anything was ever encrypted that is still there. */
export function isEncrypted(store: Store, columns: readonly SealedColumn[]): Promise<boolean> {
  return holdSealed(store.read, [sealedCheck, ...columns])
}

/** Whether these are the store's keys; those of a store that has nothing encrypted become so. */
export async function fits(store: Store, encryption: Encryption, columns: readonly SealedColumn[]): Promise<boolean> {
  try {
    if (!(await holdSealed(store.read, [sealedCheck]))) {
      // Of an earlier version, or new.
      await openLatest(store.read, encryption, columns)
      await remember(store, encryption)
    }
    await openLatest(store.read, encryption, [sealedCheck])
    return true
  } catch (error) {
    if (error instanceof SealRefused) return false
    throw error
  }
}

/** Another process that starts at the same time may be first. */
async function remember(store: Store, encryption: Encryption): Promise<void> {
  const row = { id: rowId, value: encryption.seal('', owner) }
  await store.write(({ query }) =>
    query
      .insertInto('encryption_check')
      .values(row)
      .onConflict((it) => it.doNothing())
      .execute(),
  )
}
