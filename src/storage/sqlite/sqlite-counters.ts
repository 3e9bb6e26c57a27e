/** The embedded store's counters: a file of their own in the data directory, which no backup needs. */
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { type Count, type Counters, expiryIntervalMilliseconds, StoreUnavailable } from '../store.ts'
import { retryWhileLocked } from './sqlite-connection.ts'

/** A process that adds has the file locked for some 20 µs; one that was stopped meanwhile is not waited for longer. */
const lockWaitMilliseconds = 1000

/** With NORMAL, no commit waits for the disk, and a power cut breaks nothing: it loses what was committed last. */
const settings = 'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL'

const createSql = 'CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, count INTEGER, ends_at INTEGER) STRICT'

/** A window that seems to end later than one that would begin now is of a clock that has begun anew since. */
const goesOn = 'ends_at > ?3 AND ends_at <= excluded.ends_at'

/** The name, the amount, now, and the window's length. */
const addSql = `INSERT INTO counters (name, count, ends_at) VALUES (?1, MAX(0, ?2), ?3 + ?4)
  ON CONFLICT (name) DO UPDATE SET
    count = MAX(0, ?2 + CASE WHEN ${goesOn} THEN count ELSE 0 END),
    ends_at = CASE WHEN ${goesOn} THEN ends_at ELSE excluded.ends_at END
  RETURNING count, ends_at - ?3 AS millisecondsLeft`

const removeSql = 'DELETE FROM counters WHERE ends_at <= ?'

interface Connection {
  database: DatabaseSync
  add: StatementSync
  remove: StatementSync
}

export class SqliteCounters implements Counters {
  readonly #path: string
  readonly #now: () => number
  #connection: Connection | undefined
  #closed = false
  #removedAt = Number.NEGATIVE_INFINITY

  /** @param now milliseconds of a clock that all processes of the machine share. */
  constructor(directory: string, now: () => number = sinceBoot) {
    this.#path = join(directory, 'counters.db')
    this.#now = now
  }

  async add(name: string, amount: number, windowMilliseconds: number): Promise<Count> {
    try {
      return await retryWhileLocked(this.#path, lockWaitMilliseconds, async () => {
        this.#connection ??= this.#open()
        const { add, remove } = this.#connection
        const now = this.#now()
        if (Math.abs(now - this.#removedAt) >= expiryIntervalMilliseconds) {
          remove.run(now)
          this.#removedAt = now
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

  /** Opened when first needed: most processes count nothing. */
  #open(): Connection {
    if (this.#closed) throw new StoreUnavailable('The store is closed.')
    const database = new DatabaseSync(this.#path, { timeout: 0 })
    try {
      database.exec(`${settings}; ${createSql}`)
      return { database, add: database.prepare(addSql), remove: database.prepare(removeSql) }
    } catch (error) {
      database.close()
      throw error
    }
  }
}

/** Nobody sets this clock: it goes on from the machine's start, the same for all of its processes. */
function sinceBoot(): number {
  return Number(process.hrtime.bigint() / 1_000_000n)
}
