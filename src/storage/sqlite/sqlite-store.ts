/** The embedded store: one SQLite file in the data directory, shared by the processes of one machine. */

import { EventEmitter } from 'node:events'
import { closeSync, type FSWatcher, mkdirSync, openSync, watch, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { createDirectory, createPrivateFile } from '../directories.ts'
import { canServe, migrate } from '../migrations/migrations.ts'
import {
  type Count,
  type Counters,
  expiryIntervalMilliseconds,
  reliableFactor,
  type Store,
  StoreUnavailable,
  type Topic,
  topics,
} from '../store.ts'
import { GroupCommit } from './group-commit.ts'
import { rejectMoved } from './moved-store.ts'
import { connect, retryWhileLocked, sqliteColumnTypes, wrapStoreErrors } from './sqlite-connection.ts'

const defaults = {
  /** How long opening the store waits for another process that opens, migrates or closes it. */
  openWaitMillisecondsMax: 30_000,
  /** How long a write waits for another process's transaction before it fails. */
  lockWaitMillisecondsMax: 5000,
  /** How long `scrub` waits for readers before it fails. */
  scrubWaitMillisecondsMax: 5000,
  /** Interval of a notification on every topic until the file system has reported a change. */
  fallbackNotifyMilliseconds: 1000,
}

export type SqliteOptions = typeof defaults

/** Opens the store in `directory`, and creates or migrates it where needed. */
export async function openSqliteStore(directory: string, options: Partial<SqliteOptions> = {}): Promise<Store> {
  const limits = { ...defaults, ...options }
  createDirectory(directory)
  rejectMoved(directory)
  const path = join(directory, 'service.db')
  const writer = await retryWhileLocked(path, limits.openWaitMillisecondsMax, async () => {
    await migrateFile(path)
    return connect(path, { readOnly: false })
  })
  // A separate connection, so that reads do not see uncommitted writes.
  const reader = connect(path, { readOnly: true })
  const commits = new GroupCommit(writer, limits.lockWaitMillisecondsMax)
  const notifications = new FileNotifications(join(directory, 'notifications'), limits.fallbackNotifyMilliseconds)
  const counters = new SqliteCounters(directory)
  return {
    isRemote: false,
    read: reader.tx,
    counters,
    write: (work, options) => commits.write(work, options),
    notify: (topic) => notifications.notify(topic),
    listen: (topic, listener) => notifications.listen(topic, listener),
    scrub: () => truncateLog(writer.database, limits.scrubWaitMillisecondsMax),
    check: async () => {
      // Reads from the file; a SELECT without a table would succeed without it.
      wrapStoreErrors(() => reader.database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get())
    },
    observe: (observer) => {
      commits.observer = observer
    },
    close: async () => {
      await commits.idle()
      notifications.close()
      counters.close()
      reader.database.close()
      writer.database.close()
    },
  }
}

/** Checkpoints and truncates the write-ahead log, which contains old versions of pages until then. */
async function truncateLog(database: DatabaseSync, milliseconds: number): Promise<void> {
  const deadline = performance.now() + milliseconds
  for (;;) {
    // Not during a transaction of this process, which uses the same connection.
    if (!database.isOpen || !database.isTransaction) {
      const [result] = wrapStoreErrors(() => database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').all())
      if (result?.busy === 0) return
    }
    if (performance.now() > deadline) throw new StoreUnavailable('Readers blocked the checkpoint for too long.')
    await delay(1)
  }
}

/**
 * Migrates in one transaction, so that processes which start together migrate one after another. Takes no lock when
 * there is nothing to migrate, since a paused process may hold it.
 */
async function migrateFile(path: string): Promise<void> {
  const { database, tx } = connect(path, { readOnly: false })
  try {
    if (await canServe(tx.query)) return
    database.exec('BEGIN IMMEDIATE')
    await migrate(tx.query, sqliteColumnTypes)
    database.exec('COMMIT')
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  } finally {
    database.close()
  }
}

// Counters of the embedded store, in a separate SQLite file, which backups omit.

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

// Notifications between processes on one machine: a watched file for each topic, written to on notify. Delivery took
// less than a millisecond, and an idle service costs nothing, unlike with polling.

/** How long a change of a run waits for others before listeners are notified. */
const runsMilliseconds = 5

class FileNotifications {
  readonly #directory: string
  readonly #files: Map<Topic, number>
  readonly #listeners = new EventEmitter<Record<Topic, []>>().setMaxListeners(0)
  readonly #pending = new Set<Topic>()
  /** Of topics that have listeners: every change of a watched file wakes the process. */
  readonly #watchers = new Map<Topic, FSWatcher>()
  readonly #fallback: NodeJS.Timeout
  #intervals = 0
  /** Whether every topic that has listeners is watched, and one of them has reported a change. */
  #isReliable = false

  /** @param fallbackMilliseconds interval of a notification on every topic until the file system has reported a change. */
  constructor(directory: string, fallbackMilliseconds: number) {
    this.#directory = directory
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    this.#files = new Map(topics.map((topic) => [topic, openSync(join(directory, topic), 'w', 0o600)]))
    this.#fallback = setInterval(() => this.#fallBack(), fallbackMilliseconds).unref()
  }

  /**
   * Coalesces all calls in one iteration of the event loop. Followers of runs wait a little longer, so that most runs
   * notify them once.
   */
  notify(topic: Topic): void {
    if (this.#pending.has(topic)) return
    this.#pending.add(topic)
    if (topic === 'runs') setTimeout(() => this.#flush(), runsMilliseconds)
    else setImmediate(() => this.#flush())
  }

  listen(topic: Topic, listener: () => void): () => void {
    this.#listeners.on(topic, listener)
    if (!this.#watchers.has(topic)) this.#watch(topic)
    return () => {
      this.#listeners.off(topic, listener)
      if (this.#listeners.listenerCount(topic) > 0) return
      this.#stopWatching(topic)
    }
  }

  close(): void {
    this.#flush()
    clearInterval(this.#fallback)
    for (const watcher of this.#watchers.values()) watcher.close()
    for (const file of this.#files.values()) closeSync(file)
    this.#files.clear()
  }

  #watch(topic: Topic): void {
    if (!this.#files.has(topic)) return
    try {
      const watcher = watch(join(this.#directory, topic), { persistent: false }, () => {
        this.#isReliable = true
        this.#listeners.emit(topic)
      })
      watcher.on('error', () => this.#stopWatching(topic))
      this.#watchers.set(topic, watcher)
    } catch {
      // The machine is out of watchers, or the file system has none: the fallback remains.
    }
  }

  #stopWatching(topic: Topic): void {
    this.#watchers.get(topic)?.close()
    this.#watchers.delete(topic)
  }

  #fallBack(): void {
    this.#intervals += 1
    const isWatched = topics.every((topic) => this.#watchers.has(topic) || this.#listeners.listenerCount(topic) === 0)
    if (this.#isReliable && isWatched && this.#intervals % reliableFactor !== 0) return
    for (const topic of topics) this.#listeners.emit(topic)
    // Whether the file system reports changes, this change shows.
    const [watched] = this.#watchers.keys()
    if (!this.#isReliable && watched) this.notify(watched)
  }

  #flush(): void {
    for (const topic of this.#pending) {
      const file = this.#files.get(topic)
      if (file !== undefined) writeSync(file, '!', 0)
    }
    this.#pending.clear()
  }
}
