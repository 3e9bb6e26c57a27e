/** Statements of schedules, and their encrypted column. */
import type { EncryptedColumn } from '../../storage/encrypted-columns.ts'
import { hasUnfinishedRun } from '../../storage/runs/run-lookups.ts'
import { inList, parseId } from '../../storage/statement-values.ts'
import { statement, type Transaction, type Value } from '../../storage/store.ts'
import type { SchedulesTable } from '../../storage/tables/tables.ts'

export async function findSchedule(
  { query }: Transaction,
  accountId: string,
  id: string,
): Promise<SchedulesTable | undefined> {
  const parsed = parseId(id)
  if (parsed === undefined) return undefined
  const rows = query.selectFrom('schedules').selectAll().where('id', '=', parsed)
  return rows.where('account_id', '=', accountId).executeTakeFirst()
}

const isDue = 'paused_reason IS NULL AND waits_for_run = 0'

export const findNextDue = statement<{ at: number | null }, []>(
  `SELECT MIN(next_at) AS at FROM schedules WHERE ${isDue}`,
)

/** Schedules that are due, the longest overdue first. */
export const findDue = statement<SchedulesTable, [now: number, countMax: number]>(
  `SELECT * FROM schedules WHERE ${isDue} AND next_at <= ? ORDER BY next_at LIMIT ?`,
)

/** Schedules that wait for a run although all of theirs have ended. One index look-up for each that waits. */
export const findResumable = statement<SchedulesTable, [countMax: number]>(
  `SELECT * FROM schedules WHERE waits_for_run = 1 AND NOT ${hasUnfinishedRun} LIMIT ?`,
)

const decidedColumns = {
  id: 'TEXT',
  next_at: 'BIGINT',
  waits_for_run: 'INTEGER',
  paused_reason: 'TEXT',
  paused_detail: 'TEXT',
  last_run_id: 'TEXT',
  last_run_for: 'BIGINT',
  last_skipped_for: 'BIGINT',
  last_skip_reason: 'TEXT',
} as const satisfies Partial<Record<keyof SchedulesTable, string>>

/** The columns that the decision on due times changes. */
export type DecidedSchedule = Pick<SchedulesTable, keyof typeof decidedColumns>

/** Updates all of them by one statement. */
export async function updateDecided(tx: Transaction, schedules: readonly DecidedSchedule[]): Promise<void> {
  const columns = Object.keys(decidedColumns) as (keyof DecidedSchedule)[]
  const row = `(${Object.values(decidedColumns).map((type) => `CAST(? AS ${type})`)})`
  const set = columns.slice(1).map((column, index) => `${column} = decided.column${index + 2}`)
  // The number of rows determines the text; powers of two bound how many are prepared. The last row is repeated.
  const { values } = inList(schedules.map(({ id }) => id))
  const byId = new Map(schedules.map((schedule) => [schedule.id, schedule]))
  const rows = values.flatMap((id) => byId.get(id) ?? [])
  await tx.all(
    `UPDATE schedules SET ${set} FROM (VALUES ${rows.map(() => row)}) AS decided WHERE schedules.id = decided.column1`,
    rows.flatMap((schedule): Value[] => columns.map((column) => schedule[column])),
  )
}

/** Binds encrypted secrets to their schedule. */
export function secretsAad(accountId: string, scheduleId: string): string {
  return `${accountId}/schedules/${scheduleId}/secrets`
}

export const encryptedInSchedules: readonly EncryptedColumn[] = [
  { table: 'schedules', key: ['id'], column: 'secrets', aadColumns: ['account_id', 'id'], aad: secretsAad },
]
