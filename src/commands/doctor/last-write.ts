/** Finds when a store was last written to, for the check of the clock. */
import type { Transaction } from '../../storage/store.ts'

/** The latest row of each growing table, by its index; small tables are scanned. */
const queries = [
  'SELECT at FROM run_events ORDER BY id DESC LIMIT 1',
  'SELECT at FROM audit_log ORDER BY id DESC LIMIT 1',
  'SELECT created_at AS at FROM artifacts ORDER BY created_at DESC LIMIT 1',
  'SELECT max(created_at) AS at FROM accounts',
  'SELECT max(last_used_at) AS at FROM api_keys',
  'SELECT max(last_signed_in_at) AS at FROM users',
  'SELECT max(created_at) AS at FROM browser_context_versions',
  'SELECT max(started_at) AS at FROM workers',
]

/** Returns the time in milliseconds since 1970; `undefined` for a store that is empty. */
export async function findLastWrite(tx: Transaction): Promise<number | undefined> {
  let latest = 0
  for (const sql of queries) {
    const rows = await tx.all<{ at: number | null }>(sql, []).catch(ignoreMissingColumns)
    latest = Math.max(latest, ...rows.map(({ at }) => at ?? 0))
  }
  return latest > 0 ? latest : undefined
}

/** A store of an earlier version lacks some tables and columns. */
function ignoreMissingColumns(error: unknown): [] {
  if (error instanceof Error && /^no such (table|column)|^(relation|column) .* does not exist$/.test(error.message))
    return []
  throw error
}
