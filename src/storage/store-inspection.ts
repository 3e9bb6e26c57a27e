/** Read-only access to an existing store. Opening one creates, migrates and writes nothing. */
import { type Store, StoreUnavailable, type Transaction } from './store.ts'

export interface StoreInspection {
  /** For messages: the file, or the database without its password. */
  path: string
  /** Rejects writes. */
  store: Store
  /** Migrations that this version would apply, and applied ones that it does not know. */
  schema: { pending: string[]; newer: string[] }
  close(): void | Promise<void>
}

export function readOnlyStore(tx: Transaction, close: () => Promise<void>): Store {
  const refuse = async () => {
    throw new StoreUnavailable('The store is open for reading only.')
  }
  return {
    read: tx,
    write: refuse,
    counters: { add: refuse },
    scrub: refuse,
    notify: () => {},
    listen: () => () => {},
    observe: () => {},
    check: async () => {},
    close,
  }
}
