/** Versions of browser contexts, the runs that use them, and artifacts. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await browserContexts(db)
  await runs(db)
  await artifacts(db)
}

async function browserContexts(db: Kysely<unknown>): Promise<void> {
  const contexts = db.schema.alterTable('browser_contexts')
  await contexts.addColumn('version', 'integer', (col) => col.notNull().defaultTo(0)).execute()
  await contexts.addColumn('version_id', 'text').execute()
  await contexts.addColumn('held_by_run_id', 'text').execute()
  await contexts.addColumn('fence', 'integer', (col) => col.notNull().defaultTo(0)).execute()
  await contexts.addColumn('last_used_at', 'bigint').execute()
  await contexts.addColumn('deleted_at', 'bigint').execute()
  // For erasures that are not finished.
  await sql`CREATE INDEX browser_contexts_deleted ON browser_contexts (deleted_at)
    WHERE deleted_at IS NOT NULL`.execute(db)
  await db.schema
    .createTable('browser_context_versions')
    .addColumn('id', 'text', (col) => col.primaryKey())
    .addColumn('browser_context_id', 'text', (col) => col.notNull().references('browser_contexts.id'))
    .addColumn('version', 'integer')
    .addColumn('size_bytes', 'integer', (col) => col.notNull())
    .addColumn('cookie_domains', 'text', (col) => col.notNull())
    .addColumn('created_at', 'bigint', (col) => col.notNull())
    .addColumn('run_id', 'text')
    .addColumn('api_key_id', 'text')
    .addColumn('user_id', 'text')
    .addColumn('restored_from', 'integer')
    .addColumn('state', 'blob', (col) => col.notNull())
    .addUniqueConstraint('browser_context_versions_number', ['browser_context_id', 'version'])
    .execute()
  await sql`CREATE INDEX browser_context_versions_unfinished ON browser_context_versions (created_at)
    WHERE version IS NULL`.execute(db)
}

async function runs(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('runs').addColumn('browser_context_id', 'text').execute()
  await db.schema.alterTable('runs').addColumn('persist_context', 'text').execute()
  await db.schema
    .alterTable('runs')
    .addColumn('waits_for_context', 'integer', (col) => col.notNull().defaultTo(0))
    .execute()
  await sql`DROP INDEX runs_ready`.execute(db)
  await sql`CREATE INDEX runs_ready ON runs (workflow_id, priority DESC, id)
    WHERE status = 'queued' AND delayed = 0 AND waits_for_context = 0`.execute(db)
  await sql`CREATE INDEX runs_waiting_for_context ON runs (browser_context_id, priority DESC, id)
    WHERE status = 'queued' AND waits_for_context = 1`.execute(db)
}

async function artifacts(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('artifacts')
    .addColumn('run_id', 'text', (col) => col.notNull().references('runs.id'))
    .addColumn('name', 'text', (col) => col.notNull())
    .addColumn('media_type', 'text', (col) => col.notNull())
    .addColumn('size_bytes', 'integer', (col) => col.notNull())
    .addColumn('attempt', 'integer', (col) => col.notNull())
    .addColumn('created_at', 'bigint', (col) => col.notNull())
    // The last column, so that SQLite reads the others without it.
    .addColumn('content', 'blob', (col) => col.notNull())
    .addPrimaryKeyConstraint('artifacts_key', ['run_id', 'name'])
    .execute()
  await db.schema.createIndex('artifacts_by_age').on('artifacts').column('created_at').execute()
}
