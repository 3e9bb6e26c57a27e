/** The embedded store: one SQLite file in the data directory, shared by the processes of one machine. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { isUpToDate, migrate } from '../migrations/migrations.ts'
import { type Store, StoreUnavailable } from '../store.ts'
import { FileNotifications } from './file-notifications.ts'
import { GroupCommit } from './group-commit.ts'
import { connect, retryWhileLocked, wrapStoreErrors } from './sqlite-connection.ts'
import { SqliteCounters } from './sqlite-counters.ts'

export interface SqliteOptions {
  /** How long opening the store waits for another process that opens, migrates or closes it. */
  openWaitMillisecondsMax: number
  /** How long a write waits for another process's transaction before it is refused. */
  lockWaitMillisecondsMax: number
  /** How long scrubbing waits for readers before it gives up. */
  scrubWaitMillisecondsMax: number
  /** Bells ring this often by themselves, in case the file system does not report changes. */
  fallbackNotifyMilliseconds: number
}

const defaults: SqliteOptions = {
  openWaitMillisecondsMax: 30_000,
  lockWaitMillisecondsMax: 5000,
  scrubWaitMillisecondsMax: 5000,
  fallbackNotifyMilliseconds: 1000,
}

/** Opens the store in `directory`, making and migrating it first where needed. */
export async function openSqliteStore(directory: string, options: Partial<SqliteOptions> = {}): Promise<Store> {
  const {
    openWaitMillisecondsMax,
    lockWaitMillisecondsMax,
    scrubWaitMillisecondsMax,
    fallbackNotifyMilliseconds: fallbackRingMilliseconds,
  } = {
    ...defaults,
    ...options,
  }
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const path = join(directory, 'service.db')
  const writer = await retryWhileLocked(path, openWaitMillisecondsMax, async () => {
    await migrateFile(path)
    return connect(path, { readOnly: false })
  })
  // A connection of its own, so that reads never see what is not committed yet.
  const reader = connect(path, { readOnly: true })
  const commits = new GroupCommit(writer, lockWaitMillisecondsMax)
  const bells = new FileNotifications(join(directory, 'bells'), fallbackRingMilliseconds)
  const counters = new SqliteCounters(directory)
  return {
    read: reader.tx,
    counters,
    write: (work, options) => commits.write(work, options),
    notify: (bell) => bells.notify(bell),
    listen: (bell, listener) => bells.listen(bell, listener),
    scrub: () => emptyLog(writer.database, scrubWaitMillisecondsMax),
    check: async () => {
      // Reads the file; a statement without a table would succeed whatever has become of it.
      wrapStoreErrors(() => reader.database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get())
    },
    observe: (observer) => {
      commits.observer = observer
    },
    close: async () => {
      await commits.idle()
      bells.close()
      counters.close()
      reader.database.close()
      writer.database.close()
    },
  }
}

/**
 * Moves the write-ahead log into the file and truncates it: until then it holds pages as they were. Whoever reads from
 * it or writes to it is waited for with timers.
 */
async function emptyLog(database: DatabaseSync, milliseconds: number): Promise<void> {
  const deadline = performance.now() + milliseconds
  for (;;) {
    // Between this process's own transactions, which are on the same connection.
    if (!database.isOpen || !database.isTransaction) {
      const [result] = wrapStoreErrors(() => database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').all())
      if (result?.busy === 0) return
    }
    if (performance.now() > deadline) throw new StoreUnavailable('Others read from the store for too long.')
    await delay(1)
  }
}

/**
 * Processes that start together take turns: each migrates in a transaction of its own. Where nothing is to be done, none
 * waits for whoever writes, who may be frozen.
 */
async function migrateFile(path: string): Promise<void> {
  const { database, tx } = connect(path, { readOnly: false })
  try {
    if (await isUpToDate(tx.query)) return
    database.exec('BEGIN IMMEDIATE')
    await migrate(tx.query)
    database.exec('COMMIT')
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  } finally {
    database.close()
  }
}
