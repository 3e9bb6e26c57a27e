/** The embedded store: one SQLite file in the data directory, shared by the processes of one machine. */
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { createDirectory } from '../directories.ts'
import { isUpToDate, migrate } from '../migrations/migrations.ts'
import { type Store, StoreUnavailable } from '../store.ts'
import { FileNotifications } from './file-notifications.ts'
import { GroupCommit } from './group-commit.ts'
import { connect, retryWhileLocked, sqliteColumnTypes, wrapStoreErrors } from './sqlite-connection.ts'
import { SqliteCounters } from './sqlite-counters.ts'

const defaults = {
  /** How long opening the store waits for another process that opens, migrates or closes it. */
  openWaitMillisecondsMax: 30_000,
  /** How long a write waits for another process's transaction before it fails. */
  lockWaitMillisecondsMax: 5000,
  /** How long `scrub` waits for readers before it fails. */
  scrubWaitMillisecondsMax: 5000,
  /** Interval of a notification on every topic, for file systems that report no changes. */
  fallbackNotifyMilliseconds: 1000,
}

export type SqliteOptions = typeof defaults

/** Opens the store in `directory`, and creates or migrates it where needed. */
export async function openSqliteStore(directory: string, options: Partial<SqliteOptions> = {}): Promise<Store> {
  const limits = { ...defaults, ...options }
  createDirectory(directory)
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
 * Migrates in one transaction, so that processes which start together migrate one after another. Takes no lock when the
 * schema is up to date, since a paused process may hold it.
 */
async function migrateFile(path: string): Promise<void> {
  const { database, tx } = connect(path, { readOnly: false })
  try {
    if (await isUpToDate(tx.query)) return
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
