/** Counters of the embedded store, in a separate SQLite file, which backups omit. */
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { createPrivateFile } from '../directories.ts'
import { type Count, type Counters, expiryIntervalMilliseconds, StoreUnavailable } from '../store.ts'
import { retryWhileLocked } from './sqlite-connection.ts'

/** An addition locks the file for about 20 µs; only a paused process keeps the lock longer. */
const lockWaitMilliseconds = 1000

/** With NORMAL, commits do not wait for the disk. A power cut loses the latest counts and corrupts nothing. */
const settings = 'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL'

const createSql = 'CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, count INTEGER, ends_at INTEGER) STRICT'

/** A window that ends later than one starting now was started before the clock was reset. */
const isOpen = 'ends_at > ?3 AND ends_at <= excluded.ends_at'

/** Parameters: name, amount, current time, length of the window. */
const addSql = `INSERT INTO counters (name, count, ends_at) VALUES (?1, MAX(0, ?2), ?3 + ?4)
  ON CONFLICT (name) DO UPDATE SET
    count = MAX(0, ?2 + CASE WHEN ${isOpen} THEN count ELSE 0 END),
    ends_at = CASE WHEN ${isOpen} THEN ends_at ELSE excluded.ends_at END
  RETURNING count, ends_at - ?3 AS millisecondsLeft`

const deleteExpiredSql = 'DELETE FROM counters WHERE ends_at <= ?'

interface Connection {
  database: DatabaseSync
  add: StatementSync
  deleteExpired: StatementSync
}

export class SqliteCounters implements Counters {
  readonly #path: string
  readonly #now: () => number
  #connection: Connection | undefined
  #closed = false
  #expiredAt = Number.NEGATIVE_INFINITY

  /** @param now milliseconds of a clock that all processes of the machine share. */
  constructor(directory: string, now: () => number = millisecondsSinceBoot) {
    this.#path = join(directory, 'counters.db')
    this.#now = now
  }

  async add(name: string, amount: number, windowMilliseconds: number): Promise<Count> {
    try {
      return await retryWhileLocked(this.#path, lockWaitMilliseconds, async () => {
        this.#connection ??= this.#open()
        const { add, deleteExpired } = this.#connection
        const now = this.#now()
        if (Math.abs(now - this.#expiredAt) >= expiryIntervalMilliseconds) {
          deleteExpired.run(now)
          this.#expiredAt = now
        }
        return { ...(add.get(name, amount, now, windowMilliseconds) as unknown as Count) }
      })
    } catch (error) {
      throw error instanceof StoreUnavailable ? error : new StoreUnavailable('Counters fail.', { cause: error })
    }
  }

  close(): void {
    this.#closed = true
    this.#connection?.database.close()
    this.#connection = undefined
  }

  /** Opens the file on first use, since most processes never count. */
  #open(): Connection {
    if (this.#closed) throw new StoreUnavailable('The store is closed.')
    createPrivateFile(this.#path)
    const database = new DatabaseSync(this.#path, { timeout: 0 })
    try {
      database.exec(`${settings}; ${createSql}`)
      return { database, add: database.prepare(addSql), deleteExpired: database.prepare(deleteExpiredSql) }
    } catch (error) {
      database.close()
      throw error
    }
  }
}

/** A clock that cannot be set and that all processes of the machine share. */
function millisecondsSinceBoot(): number {
  return Number(process.hrtime.bigint() / 1_000_000n)
}
