/** Applies schema migrations. Released migrations never change; a new one is appended. */
import { type Kysely, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import * as initial from './0001-initial.ts'
import * as dashboard from './0002-dashboard.ts'
import * as encryptionCheck from './0003-encryption-check.ts'
import * as browserContexts from './0004-browser-contexts.ts'
import * as severalMachines from './0005-several-machines.ts'
import * as queue from './0006-queue.ts'
import * as storageUsage from './0007-storage-usage.ts'
import * as signIn from './0008-sign-in.ts'
import * as contextScope from './0011-context-scope.ts'
import * as deployments from './0012-deployments.ts'
import * as attemptHistory from './0013-attempt-history.ts'
import * as runIndexes from './0014-run-indexes.ts'
import * as contextFilter from './0017-context-filter.ts'
import * as findRuns from './0018-find-runs.ts'
import * as concurrencyGroups from './0019-concurrency-groups.ts'
import * as webhooks from './0021-webhooks.ts'
import * as runsAgain from './0022-runs-again.ts'
import * as evidence from './0023-evidence.ts'
import * as runRollups from './0024-run-rollups.ts'
import * as schedules from './0025-schedules.ts'
import * as reruns from './0026-reruns.ts'
import * as throttlesAndRotations from './0027-throttles-and-rotations.ts'
import * as liveViews from './0028-live-views.ts'
import * as bulkActions from './0030-bulk-actions.ts'
import * as stepOrder from './0031-step-order.ts'

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
  '0001-initial': initial.script,
  '0002-dashboard': dashboard.script,
  '0003-encryption-check': encryptionCheck.script,
  '0004-browser-contexts': browserContexts.script,
  '0005-several-machines': severalMachines.script,
  '0006-queue': queue.script,
  '0007-storage-usage': storageUsage.script,
  '0008-sign-in': signIn.script,
  '0011-context-scope': contextScope.script,
  '0012-deployments': deployments.script,
  '0013-attempt-history': attemptHistory.script,
  '0014-run-indexes': runIndexes.script,
  '0017-context-filter': contextFilter.script,
  '0018-find-runs': findRuns.script,
  '0019-concurrency-groups': concurrencyGroups.script,
  '0021-webhooks': webhooks.script,
  '0022-runs-again': runsAgain.script,
  '0023-evidence': evidence.script,
  '0024-run-rollups': runRollups.script,
  '0025-schedules': schedules.script,
  '0026-reruns': reruns.script,
  '0027-throttles-and-rotations': throttlesAndRotations.script,
  '0028-live-views': liveViews.script,
  '0030-bulk-actions': bulkActions.script,
  '0031-step-order': stepOrder.script,
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

/** Migrates the store to this version's schema. @throws {StoreTooNew} */
export async function migrate<Tables>(db: Kysely<Tables>, types: ColumnTypes): Promise<void> {
  // This check takes a tenth of the migrator's time.
  if (await isUpToDate(db)) return
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrationsFor(types) } })
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
