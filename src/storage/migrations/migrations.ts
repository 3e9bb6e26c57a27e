/** Applies schema migrations. Released migrations never change; a new one is appended. */
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import * as initial from './0001-initial.ts'
import * as dashboard from './0002-dashboard.ts'
import * as encryptionCheck from './0003-encryption-check.ts'
import * as browserContexts from './0004-browser-contexts.ts'
import * as severalMachines from './0005-several-machines.ts'

/** Column types that the databases name differently. */
export interface ColumnTypes {
  autoIncrementKey: RawBuilder<unknown>
  /** Must equal the type that the store's Kysely dialect creates for `text`, since an index needs one collation. */
  text: RawBuilder<unknown>
}

const migrations: Record<string, { up(db: Kysely<unknown>, types: ColumnTypes): Promise<void> }> = {
  '0001-initial': initial,
  '0002-dashboard': dashboard,
  '0003-encryption-check': encryptionCheck,
  '0004-browser-contexts': browserContexts,
  '0005-several-machines': severalMachines,
}
const names = Object.keys(migrations)

/** A newer version of the service has migrated the store; the message says what to do. */
export class StoreTooNew extends Error {}

/**
 * Migrates the store to this version's schema.
 *
 * @throws {StoreTooNew}
 */
export async function migrate<Tables>(db: Kysely<Tables>, types: ColumnTypes): Promise<void> {
  // This check takes a tenth of the migrator's time.
  if (await isUpToDate(db)) return
  const bound = Object.entries(migrations).map(([name, { up }]): [string, Migration] => [
    name,
    { up: (db) => up(db, types) },
  ])
  const migrator = new Migrator({ db, provider: { getMigrations: async () => Object.fromEntries(bound) } })
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

/** Whether the schema is this version's; false when it cannot be determined. */
export async function isUpToDate<Tables>(db: Kysely<Tables>): Promise<boolean> {
  const applied = await appliedMigrations(db).catch(() => [])
  return applied.length === names.length && applied.every((name) => names.includes(name))
}

async function appliedMigrations<Tables>(db: Kysely<Tables>): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`SELECT name FROM kysely_migration`.execute(db)
  return rows.map(({ name }) => name)
}

/** Compares schemas: the migrations that `migrate` would apply, and applied ones that this version does not know. */
export async function schemaDifference<Tables>(db: Kysely<Tables>): Promise<{ pending: string[]; newer: string[] }> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true })
  const isMigrated = tables.some(({ name }) => name === 'kysely_migration')
  const applied = new Set(isMigrated ? await appliedMigrations(db) : [])
  return {
    pending: names.filter((name) => !applied.has(name)),
    newer: [...applied].filter((name) => !names.includes(name)),
  }
}
