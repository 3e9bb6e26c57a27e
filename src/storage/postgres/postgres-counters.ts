/** Counters in PostgreSQL: an unlogged table, whose commits do not wait for the disk. */
import type { Pool } from 'pg'
import { type Count, type Counters, expiryIntervalMilliseconds } from '../store.ts'
import { toStoreError } from './postgres-errors.ts'

const createSql = 'CREATE UNLOGGED TABLE IF NOT EXISTS counters (name text PRIMARY KEY, count int, ends_at bigint)'

/** The server's clock, so that clocks of machines need not agree. */
const now = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

/** A window that ends later than one starting now was started before the clock was set back. */
const isOpen = 'it.ends_at > excluded.ends_at - $3 AND it.ends_at <= excluded.ends_at'

/** GREATEST: the window may end while the statement waits for a lock. */
const addSql = `INSERT INTO counters AS it (name, count, ends_at) VALUES ($1, GREATEST(0, $2::int), ${now} + $3::bigint)
  ON CONFLICT (name) DO UPDATE SET
    count = GREATEST(0, $2::int + CASE WHEN ${isOpen} THEN it.count ELSE 0 END),
    ends_at = CASE WHEN ${isOpen} THEN it.ends_at ELSE excluded.ends_at END
  RETURNING count, GREATEST(1, LEAST($3::bigint, ends_at - ${now})) AS "millisecondsLeft"`

const deleteExpiredSql = `DELETE FROM counters WHERE name IN
  (SELECT name FROM counters WHERE ends_at <= ${now} FOR UPDATE SKIP LOCKED)`

export class PostgresCounters implements Counters {
  readonly #pool: Pool
  #expiredAt = Number.NEGATIVE_INFINITY

  constructor(pool: Pool) {
    this.#pool = pool
  }

  /** Creates the table where needed. The caller prevents concurrent calls. */
  async prepare(): Promise<void> {
    await this.#pool.query(createSql)
  }

  async add(name: string, amount: number, windowMilliseconds: number): Promise<Count> {
    if (performance.now() - this.#expiredAt >= expiryIntervalMilliseconds) {
      this.#expiredAt = performance.now()
      // Best effort: another process or a later call deletes the rest.
      this.#pool.query(deleteExpiredSql).catch(() => {})
    }
    const values = [name, amount, windowMilliseconds]
    try {
      const { rows } = await this.#pool.query<Count>({ name: 'count', text: addSql, values })
      return rows[0] as Count
    } catch (error) {
      throw toStoreError(error)
    }
  }
}
