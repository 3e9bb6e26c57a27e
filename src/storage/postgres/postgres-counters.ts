/** Counters in PostgreSQL: an unlogged table, whose changes alone make no commit wait for the disk. */
import type { Pool } from 'pg'
import { type Count, type Counters, expiryIntervalMilliseconds } from '../store.ts'
import { toStoreError } from './postgres-errors.ts'

const createSql = 'CREATE UNLOGGED TABLE IF NOT EXISTS counters (name text PRIMARY KEY, count int, ends_at bigint)'

/** The server's, so that the clocks of the machines need not agree. */
const now = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

/** A window that seems to end later than one that would begin now is of a clock that has been set back since. */
const goesOn = 'it.ends_at > excluded.ends_at - $3 AND it.ends_at <= excluded.ends_at'

/** What is left may be nothing by the time that the statement ends, which may have waited for others. */
const addSql = `INSERT INTO counters AS it (name, count, ends_at) VALUES ($1, GREATEST(0, $2::int), ${now} + $3::bigint)
  ON CONFLICT (name) DO UPDATE SET
    count = GREATEST(0, $2::int + CASE WHEN ${goesOn} THEN it.count ELSE 0 END),
    ends_at = CASE WHEN ${goesOn} THEN it.ends_at ELSE excluded.ends_at END
  RETURNING count, GREATEST(1, LEAST($3::bigint, ends_at - ${now})) AS "millisecondsLeft"`

/** What others add to at this moment is not waited for. */
const removeSql = `DELETE FROM counters WHERE name IN
  (SELECT name FROM counters WHERE ends_at <= ${now} FOR UPDATE SKIP LOCKED)`

export class PostgresCounters implements Counters {
  readonly #pool: Pool
  #removedAt = Number.NEGATIVE_INFINITY

  constructor(pool: Pool) {
    this.#pool = pool
  }

  /** Makes the table where needed; one process at a time. */
  async prepare(): Promise<void> {
    await this.#pool.query(createSql)
  }

  async add(name: string, amount: number, windowMilliseconds: number): Promise<Count> {
    this.#removeSometimes()
    const values = [name, amount, windowMilliseconds]
    try {
      const { rows } = await this.#pool.query<Count>({ name: 'count', text: addSql, values })
      return rows[0] as Count
    } catch (error) {
      throw toStoreError(error)
    }
  }

  #removeSometimes(): void {
    if (performance.now() - this.#removedAt < expiryIntervalMilliseconds) return
    this.#removedAt = performance.now()
    // What cannot be removed now is removed later, by whichever process.
    this.#pool.query(removeSql).catch(() => {})
  }
}
