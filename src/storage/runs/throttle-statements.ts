/** The SQL statements of throttles, which limit how many runs of a workflow start within a period. */
import { statement } from '../store.ts'
import type { ThrottlesTable } from '../tables/run-tables.ts'

export const throttleStatements = {
  /** The number of the latest start; `null` without any. */
  latestStart: statement<{ number: number | null }, [throttleId: string]>(
    'SELECT MAX(number) AS number FROM throttle_starts WHERE throttle_id = ?',
  ),

  findStart: statement<{ started_at: number }, [throttleId: string, number: number]>(
    'SELECT started_at FROM throttle_starts WHERE throttle_id = ? AND number = ?',
  ),

  insertStart: statement<object, [throttleId: string, number: number, startedAt: number, expiresAt: number]>(
    'INSERT INTO throttle_starts (throttle_id, number, started_at, expires_at) VALUES (?, ?, ?, ?)',
  ),

  deleteStarts: statement<object, [throttleId: string, number: number]>(
    'DELETE FROM throttle_starts WHERE throttle_id = ? AND number <= ?',
  ),

  /** Stores that the throttle is at its rate. */
  setThrottle: statement<object, [id: string, limit: number, periodSeconds: number, permitsAt: number]>(
    `INSERT INTO throttles (id, limit_count, period_seconds, permits_at) VALUES (?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET limit_count = excluded.limit_count, period_seconds = excluded.period_seconds,
      permits_at = excluded.permits_at`,
  ),

  deleteThrottle: statement<object, [id: string]>('DELETE FROM throttles WHERE id = ?'),

  /** Deletes the throttles that permit a start now, 500 at most. */
  deletePermitting: statement<Pick<ThrottlesTable, 'id'>, [now: number, now: number]>(
    `DELETE FROM throttles WHERE id IN (SELECT id FROM throttles WHERE permits_at <= ? ORDER BY permits_at LIMIT 500)
      AND permits_at <= ? RETURNING id`,
  ),

  listThrottles: statement<ThrottlesTable, []>('SELECT * FROM throttles'),
}
