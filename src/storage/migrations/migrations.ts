/** Every migration in order. A landed one never changes; a new one is added below. */
import { type Kysely, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import * as initial from './0001-initial.ts'
import * as dashboard from './0002-dashboard.ts'
import * as encryptionCheck from './0003-encryption-check.ts'
import * as browserContexts from './0004-browser-contexts.ts'
import * as severalMachines from './0005-several-machines.ts'

const migrations: Record<string, Migration> = {
  '0001-initial': initial,
  '0002-dashboard': dashboard,
  '0003-encryption-check': encryptionCheck,
  '0004-browser-contexts': browserContexts,
  '0005-several-machines': severalMachines,
}

/** A newer version has migrated the store; the message says what to do. */
export class StoreTooNew extends Error {}

/**
 * Brings the store to this version's schema.
 *
 * @throws {StoreTooNew}
 */
export async function migrate<Tables>(db: Kysely<Tables>): Promise<void> {
  // Most often there is nothing to be done, which a look tells in a tenth of the time.
  if (await isUpToDate(db)) return
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } })
  const { error } = await migrator.migrateToLatest()
  if (!error) return
  const message = error instanceof Error ? error.message : String(error)
  if (/corrupted migrations/.test(message)) {
    throw new StoreTooNew(
      'The store was written by a newer version of this service: start that version, or restore a backup.',
    )
  }
  throw error
}

/** Whether there is nothing to migrate; false also where that cannot be told. */
export async function isUpToDate<Tables>(db: Kysely<Tables>): Promise<boolean> {
  const done = await namesDone(db).catch(() => [])
  return done.length === Object.keys(migrations).length && done.every((name) => migrations[name])
}

async function namesDone<Tables>(db: Kysely<Tables>): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`SELECT name FROM kysely_migration`.execute(db)
  return rows.map(({ name }) => name)
}

/** Where the store's schema differs from this version's: what `migrate` would do, and what a newer version has done. */
export async function schemaDifference<Tables>(db: Kysely<Tables>): Promise<{ pending: string[]; newer: string[] }> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true })
  const isMigrated = tables.some(({ name }) => name === 'kysely_migration')
  const names = new Set(isMigrated ? await namesDone(db) : [])
  const pending = Object.keys(migrations).filter((name) => !names.has(name))
  return { pending, newer: [...names].filter((name) => !migrations[name]) }
}
