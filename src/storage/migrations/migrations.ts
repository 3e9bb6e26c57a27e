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

/** Brings the store to this version's schema. Refuses one that a newer version has migrated. */
export async function migrate<Tables>(db: Kysely<Tables>): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } })
  const { error } = await migrator.migrateToLatest()
  if (!error) return
  const message = error instanceof Error ? error.message : String(error)
  if (/corrupted migrations/.test(message)) {
    throw new Error(
      'The store was written by a newer version of this service: start that version, or restore a backup.',
    )
  }
  throw error
}

/** Where the store's schema differs from this version's: what `migrate` would do, and what a newer version has done. */
export async function schemaDifference<Tables>(db: Kysely<Tables>): Promise<{ pending: string[]; newer: string[] }> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true })
  const isMigrated = tables.some(({ name }) => name === 'kysely_migration')
  const done = isMigrated ? (await sql<{ name: string }>`SELECT name FROM kysely_migration`.execute(db)).rows : []
  const names = new Set(done.map(({ name }) => name))
  const pending = Object.keys(migrations).filter((name) => !names.has(name))
  return { pending, newer: [...names].filter((name) => !migrations[name]) }
}
