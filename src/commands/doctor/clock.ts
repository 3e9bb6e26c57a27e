/** Checks the machine's clock against the latest time in the store. */
import type { Transaction } from '../../storage/store.ts'
import { type Finding, fail, notChecked, type Opened, ok, pluralize } from './finding.ts'

const behindMillisecondsMax = 60_000
/** Before the first release. */
const earliest = Date.UTC(2026, 0)

/** @param now the clock's time, on which expiry, delays and leases depend. */
export async function checkClock(opened: Opened, now: number): Promise<Finding> {
  const time = new Date(now).toISOString().replace(/\.\d+Z$/, 'Z')
  const advice = "Set the machine's clock, and keep it right with NTP."
  if (now < earliest) return fail(`it is ${time}, before this version was released`, advice)
  if ('error' in opened) return notChecked('the store cannot be opened', 'the store')
  const lastWrite = opened.inspection && (await findLastWrite(opened.inspection.store.read))
  const behind = (lastWrite ?? 0) - now
  if (behind <= behindMillisecondsMax) return ok(`it is ${time}`)
  return fail(
    `it is ${time}, ${formatDuration(behind)} behind the latest entry in the store: keys, runs and leases would not expire`,
    advice,
  )
}

function formatDuration(milliseconds: number): string {
  const minutes = Math.round(milliseconds / 60_000)
  if (minutes < 120) return pluralize(minutes, 'minute')
  const hours = Math.round(minutes / 60)
  return hours < 48 ? pluralize(hours, 'hour') : pluralize(Math.round(hours / 24), 'day')
}

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

/** Returns the time in milliseconds since 1970; `undefined` for an empty store. */
async function findLastWrite(tx: Transaction): Promise<number | undefined> {
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
