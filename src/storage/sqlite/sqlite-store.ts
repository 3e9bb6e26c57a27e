/** The embedded store: one SQLite file in the data directory, shared by the processes of one machine. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { migrate } from '../migrations/migrations.ts'
import type { Store } from '../store.ts'
import { Bells } from './bells.ts'
import { Commits } from './commits.ts'
import { answering, connect, isBusy } from './connection.ts'

/** Opens the store in `directory`, making and migrating it first where needed. */
export async function openSqliteStore(directory: string): Promise<Store> {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const path = join(directory, 'service.db')
  await migrateFile(path)
  const writer = connect(path, { readOnly: false })
  // A connection of its own, so that reads never see what is not committed yet.
  const reader = connect(path, { readOnly: true })
  const commits = new Commits(writer)
  const bells = new Bells(join(directory, 'bells'))
  return {
    read: reader.session,
    write: (work) => commits.write(work),
    ring: (bell) => bells.ring(bell),
    listen: (bell, listener) => bells.listen(bell, listener),
    check: async () => {
      answering(() => reader.database.prepare('SELECT 1').get())
    },
    close: async () => {
      await commits.idle()
      bells.close()
      reader.database.close()
      writer.database.close()
    },
  }
}

/** Migrates on a connection that waits for the lock, so that processes that start together take turns. */
async function migrateFile(path: string): Promise<void> {
  const { database, session } = connect(path, { readOnly: false })
  try {
    database.exec('PRAGMA busy_timeout = 10000; BEGIN IMMEDIATE')
    await migrate(session.query)
    database.exec('COMMIT')
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    if (isBusy(error)) throw new Error(`${path} is locked by another program.`, { cause: error })
    throw error
  } finally {
    database.close()
  }
}
