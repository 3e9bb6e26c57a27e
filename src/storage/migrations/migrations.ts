/** Applies schema migrations. Released migrations never change; a new one is appended. */
import { type Kysely, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import * as schema from './0001-schema.ts'

/** Column types that the databases name differently; the others have the same name. */
export interface ColumnTypes {
  autoIncrementKey: string
  blob: string
  /** Compared bytewise. */
  text: string
  /** Returns a further statement for PostgreSQL, and nothing for SQLite. */
  inPostgres(statement: string): string
  /** Returns the text for SQLite, and nothing for PostgreSQL. */
  inSqlite(text: string): string
}

const scripts: Record<string, (types: ColumnTypes) => string> = {
  '0001-schema': schema.script,
}
const names = Object.keys(scripts)

/** Kysely's migrations for a store. Runs each statement of a script by itself, since SQLite prepares only the first. */
export function migrationsFor(types: ColumnTypes): Record<string, Migration> {
  const toMigration = (script: (types: ColumnTypes) => string): Migration => ({
    async up(db) {
      for (const statement of script(types).split(/;$/m)) await sql.raw(statement).execute(db)
    },
  })
  return Object.fromEntries(Object.entries(scripts).map(([name, script]) => [name, toMigration(script)]))
}

/** A newer version of the service has migrated the store; the message says what to do. */
export class StoreTooNew extends Error {}

/**
 * Migrates the store to this version's schema.
 *
 * @param target the last migration to apply.
 * @throws {StoreTooNew}
 */
export async function migrate<Tables>(db: Kysely<Tables>, types: ColumnTypes, target = names.at(-1)): Promise<void> {
  // This check takes a tenth of the migrator's time.
  if (await isUpToDate(db)) return
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrationsFor(types) } })
  const { error } = await migrator.migrateTo(target ?? '')
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
