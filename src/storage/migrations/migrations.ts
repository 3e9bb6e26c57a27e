/**
 * Applies schema migrations. Released migrations never change; a new one is appended.
 * docs/adding-a-migration.md says what a migration may do while processes of earlier versions serve.
 */
import { type Kysely, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import packageJson from '../../../package.json' with { type: 'json' }
import * as schema from './0001-schema.ts'

/** What the databases name or do differently; the rest is the same text. */
export interface ColumnTypes {
  autoIncrementKey: string
  blob: string
  /** Compared bytewise. */
  text: string
  /** Returns a further statement for PostgreSQL, and nothing for SQLite. */
  inPostgres(statement: string): string
  /** Returns the text for SQLite, and nothing for PostgreSQL. */
  inSqlite(text: string): string
  /** Returns the statements that create an index while other processes write to its table, where the database can. */
  createIndex(name: string, definition: string): string[]
}

interface Script {
  /** Statements that end with a semicolon at the end of a line. PostgreSQL runs them in one transaction. */
  script(types: ColumnTypes): string
}

interface Indexes {
  /** By name, such as `ON runs (status) WHERE progress IS NOT NULL`. An interrupted migration creates all of them again. */
  indexes: Readonly<Record<string, string>>
}

interface Expanding {
  /** Adds what earlier versions ignore: they run on the schema that it leaves as on the one before. */
  kind: 'expand'
}

interface Contracting {
  /** Removes or restricts what versions before `compatibleFrom` use, so that these do not run any more. */
  kind: 'contract'
  compatibleFrom: string
}

export type SchemaMigration = { name: string } & (Expanding | Contracting) & (Script | Indexes)

export const migrations: SchemaMigration[] = [
  { name: '0001-schema', kind: 'contract', compatibleFrom: '0.2.0', script: schema.script },
]

/** The lowest version that runs on the schema after each migration, by its name. */
export function compatibleVersions(all: readonly SchemaMigration[] = migrations): Map<string, string> {
  let lowest = '0.0.0'
  return new Map(
    all.map((migration) => {
      if (migration.kind === 'contract') lowest = migration.compatibleFrom
      return [migration.name, lowest]
    }),
  )
}

/** A newer version of the service has migrated the store; the message says what to do. */
export class StoreTooNew extends Error {}

/**
 * Migrates the store to this version's schema. Changes nothing in the schema of a newer version on which this one runs.
 *
 * @param target the last migration to apply.
 * @throws {StoreTooNew}
 */
export async function migrate<Tables>(
  db: Kysely<Tables>,
  types: ColumnTypes,
  target = migrations.at(-1)?.name,
): Promise<void> {
  if (await canServe(db)) return
  const applied: readonly string[] = await readApplied(db).catch(() => [])
  const last = migrations.findIndex(({ name }) => name === target)
  // One call for each, so that each has a transaction, and what an interruption leaves is complete.
  for (const migration of migrations.slice(0, last + 1)) {
    if (!applied.includes(migration.name)) await apply(db, types, migration)
  }
}

async function apply<Tables>(
  db: Kysely<Tables>,
  types: ColumnTypes,
  { name, ...rest }: SchemaMigration,
): Promise<void> {
  const provider = { getMigrations: async () => kyselyMigrations(types) }
  // PostgreSQL creates an index without blocking writes only outside of a transaction.
  const { error } = await new Migrator({ db, provider }).migrateTo(name, { disableTransactions: 'indexes' in rest })
  if (error) throw error
}

function kyselyMigrations(types: ColumnTypes): Record<string, Migration> {
  const compatible = compatibleVersions()
  const toMigration = (migration: SchemaMigration): Migration => ({
    async up(db) {
      for (const statement of statementsOf(migration, types)) await sql.raw(statement).execute(db)
      await sql`INSERT INTO schema_compatibility (migration, compatible_from)
        VALUES (${migration.name}, ${compatible.get(migration.name)}) ON CONFLICT DO NOTHING`.execute(db)
    },
  })
  return Object.fromEntries(migrations.map((migration) => [migration.name, toMigration(migration)]))
}

/** Returns each statement by itself, since SQLite prepares only the first of several. */
export function statementsOf(migration: SchemaMigration, types: ColumnTypes): string[] {
  if ('script' in migration)
    return migration
      .script(types)
      .split(/;$/m)
      .filter((statement) => statement.trim() !== '')
  return Object.entries(migration.indexes).flatMap(([name, definition]) => types.createIndex(name, definition))
}

/**
 * Whether this version runs on the schema as it is: on its own, or on that of a newer version which only added to it.
 *
 * @throws {StoreTooNew} when the schema is one of a newer version on which this one does not run.
 */
export async function canServe<Tables>(db: Kysely<Tables>): Promise<boolean> {
  const { pending, newer, isCompatible, compatibleFrom } = await compare(db, await readApplied(db).catch(() => []))
  if (isCompatible) return newer.length > 0 || pending.length === 0
  const requirement = compatibleFrom === undefined ? '' : ` and requires version ${compatibleFrom} or later`
  throw new StoreTooNew(
    `The store was written by a newer version of this service${requirement}: start that version, or restore a backup.`,
  )
}

/** What sets this version's schema apart from that of a store. */
export interface SchemaDifference {
  /** Migrations that this version would apply. */
  pending: string[]
  /** Applied migrations that this version does not know. */
  newer: string[]
  /** Whether this version runs with the newer migrations, because they only added to its schema. */
  isCompatible: boolean
}

export async function schemaDifference<Tables>(db: Kysely<Tables>): Promise<SchemaDifference> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true })
  const isMigrated = tables.some(({ name }) => name === 'kysely_migration')
  return compare(db, isMigrated ? await readApplied(db) : [])
}

async function readApplied<Tables>(db: Kysely<Tables>): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`SELECT name FROM kysely_migration`.execute(db)
  return rows.map(({ name }) => name)
}

async function compare<Tables>(
  db: Kysely<Tables>,
  applied: readonly string[],
): Promise<SchemaDifference & { compatibleFrom?: string }> {
  const known = migrations.map(({ name }) => name)
  const pending = known.filter((name) => !applied.includes(name))
  const newer = applied.filter((name) => !known.includes(name))
  if (newer.length === 0) return { pending, newer, isCompatible: true }
  const { rows } = await sql<{ migration: string; version: string }>`SELECT migration, compatible_from AS version
    FROM schema_compatibility`.execute(db)
  const versions = newer.map((name) => rows.find(({ migration }) => migration === name)?.version)
  const compatibleFrom = versions.reduce((a, b) => (a && b && isAtLeast(a, b) ? a : a && b))
  if (compatibleFrom === undefined) return { pending, newer, isCompatible: false }
  const isCompatible = pending.length === 0 && isAtLeast(packageJson.version, compatibleFrom)
  return { pending, newer, isCompatible, compatibleFrom }
}

/** Compares versions such as 0.10.0, without what follows a hyphen. */
export function isAtLeast(version: string, minimum: string): boolean {
  const [a, b] = [version, minimum].map((each) => (each.split('-')[0] ?? '').split('.').map(Number))
  const different = [0, 1, 2].find((part) => a?.[part] !== b?.[part])
  return different === undefined || (a?.[different] ?? 0) > (b?.[different] ?? 0)
}
