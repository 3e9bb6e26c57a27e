/** What can be read of a store that is there without making, migrating or writing anything, whichever store it is. */
import { type Store, StoreUnavailable, type Transaction } from './store.ts'

export interface StoreInspection {
  /** Where it is, for people: a file, or a database without its password. */
  path: string
  /** For what takes a store to read from it; it refuses to write. */
  store: Store
  /** Migrations that this version would make, and those that it does not know. */
  schema: { pending: string[]; newer: string[] }
  /** The latest moment at which anything was written, in milliseconds since 1970; `undefined` when nothing was. */
  findLastWriteAt(): Promise<number | undefined>
  close(): void | Promise<void>
}

export function readOnlyStore(tx: Transaction, close: () => Promise<void>): Store {
  const refuse = async () => {
    throw new StoreUnavailable('The store was opened to be read.')
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

/** Of every table that grows the row that was written last, by its key; of the others all rows. */
const moments = [
  'SELECT at FROM run_events ORDER BY id DESC LIMIT 1',
  'SELECT at FROM audit_log ORDER BY id DESC LIMIT 1',
  'SELECT created_at AS at FROM artifacts ORDER BY created_at DESC LIMIT 1',
  'SELECT max(created_at) AS at FROM accounts',
  'SELECT max(last_used_at) AS at FROM api_keys',
  'SELECT max(last_signed_in_at) AS at FROM users',
  'SELECT max(created_at) AS at FROM browser_context_versions',
  'SELECT max(started_at) AS at FROM workers',
]

export async function newestMoment(tx: Transaction): Promise<number | undefined> {
  let latest = 0
  for (const sql of moments) {
    const rows = await tx.all<{ at: number | null }>(sql, []).catch(notYet)
    latest = Math.max(latest, ...rows.map(({ at }) => at ?? 0))
  }
  return latest > 0 ? latest : undefined
}

/** A store of an earlier version lacks some tables and columns. */
function notYet(error: unknown): [] {
  if (error instanceof Error && /^no such (table|column)|^(relation|column) .* does not exist$/.test(error.message))
    return []
  throw error
}
