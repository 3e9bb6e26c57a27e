/** Every migration in order. A landed one never changes; a new one is added below. */
import type { Kysely } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import * as initial from './0001-initial.ts'
import * as dashboard from './0002-dashboard.ts'
import * as encryptionCheck from './0003-encryption-check.ts'
import * as browserContexts from './0004-browser-contexts.ts'

const migrations: Record<string, Migration> = {
  '0001-initial': initial,
  '0002-dashboard': dashboard,
  '0003-encryption-check': encryptionCheck,
  '0004-browser-contexts': browserContexts,
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
