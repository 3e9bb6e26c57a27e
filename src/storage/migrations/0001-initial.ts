/** Accounts, users, API keys, runs with their events and steps, and browser contexts. */
import { type Kysely, sql } from 'kysely'
import type { ColumnTypes } from './migrations.ts'

export async function up(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await accountsAndKeys(db)
  await runs(db)
  await runDetails(db, types)
  await browserContexts(db)
}

async function accountsAndKeys(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('accounts')
    .addColumn('id', 'text', (col) => col.primaryKey())
    .addColumn('name', 'text', (col) => col.notNull())
    .addColumn('scopes_enabled', 'integer', (col) => col.notNull())
    .addColumn('created_at', 'bigint', (col) => col.notNull())
    .execute()
  await db.schema
    .createTable('users')
    .addColumn('id', 'text', (col) => col.primaryKey())
    .addColumn('account_id', 'text', (col) => col.notNull().references('accounts.id'))
    .addColumn('name', 'text', (col) => col.notNull())
    .addColumn('created_at', 'bigint', (col) => col.notNull())
    .execute()
  await db.schema
    .createTable('api_keys')
    .addColumn('id', 'text', (col) => col.primaryKey())
    .addColumn('account_id', 'text', (col) => col.notNull().references('accounts.id'))
    .addColumn('user_id', 'text', (col) => col.notNull().references('users.id'))
    .addColumn('name', 'text', (col) => col.notNull())
    .addColumn('hash', 'blob', (col) => col.notNull().unique())
    .addColumn('prefix', 'text', (col) => col.notNull())
    .addColumn('scopes', 'text')
    .addColumn('created_at', 'bigint', (col) => col.notNull())
    .addColumn('last_used_at', 'bigint')
    .addColumn('expires_at', 'bigint')
    .addColumn('expired_at', 'bigint')
    .addColumn('deleted_at', 'bigint')
    .execute()
  await db.schema.createIndex('api_keys_by_account').on('api_keys').column('account_id').execute()
}

async function runs(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('runs')
    .addColumn('id', 'text', (col) => col.primaryKey())
    .addColumn('account_id', 'text', (col) => col.notNull().references('accounts.id'))
    .addColumn('api_key_id', 'text')
    .addColumn('workflow_id', 'text', (col) => col.notNull())
    .addColumn('workflow_version', 'text', (col) => col.notNull())
    .addColumn('status', 'text', (col) => col.notNull())
    .addColumn('reason', 'text')
    .addColumn('priority', 'integer', (col) => col.notNull())
    .addColumn('attempts', 'integer', (col) => col.notNull().defaultTo(0))
    .addColumn('failures', 'integer', (col) => col.notNull().defaultTo(0))
    .addColumn('losses', 'integer', (col) => col.notNull().defaultTo(0))
    .addColumn('variables', 'text', (col) => col.notNull())
    .addColumn('secrets', 'blob')
    .addColumn('output', 'text')
    .addColumn('error', 'text')
    .addColumn('progress', 'text')
    .addColumn('cancel_requested', 'integer', (col) => col.notNull().defaultTo(0))
    .addColumn('created_at', 'bigint', (col) => col.notNull())
    .addColumn('delayed', 'integer', (col) => col.notNull().defaultTo(0))
    .addColumn('available_at', 'bigint')
    .addColumn('expires_at', 'bigint')
    .addColumn('started_at', 'bigint')
    .addColumn('finished_at', 'bigint')
    .addColumn('worker_id', 'text')
    .addColumn('lease_expires_at', 'bigint')
    .execute()
  // For lists. Ids are UUIDs of version 7, which sort by time of creation.
  await sql`CREATE INDEX runs_by_account ON runs (account_id, id)`.execute(db)
  await sql`CREATE INDEX runs_by_workflow ON runs (account_id, workflow_id, id)`.execute(db)
  await sql`CREATE INDEX runs_by_status ON runs (account_id, status, id)`.execute(db)
  // For the queue. These partial indexes exclude finished runs.
  await sql`CREATE INDEX runs_ready ON runs (workflow_id, priority DESC, id)
    WHERE status = 'queued' AND delayed = 0`.execute(db)
  await sql`CREATE INDEX runs_delayed ON runs (available_at)
    WHERE status = 'queued' AND delayed = 1`.execute(db)
  await sql`CREATE INDEX runs_expiring ON runs (expires_at)
    WHERE status = 'queued' AND expires_at IS NOT NULL`.execute(db)
  await sql`CREATE INDEX runs_leased ON runs (workflow_id, lease_expires_at) WHERE status = 'running'`.execute(db)
}

async function runDetails(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await sql`CREATE TABLE run_events (
    id ${types.autoIncrementKey},
    run_id ${types.text} NOT NULL REFERENCES runs (id),
    sequence INTEGER NOT NULL,
    at BIGINT NOT NULL,
    type ${types.text} NOT NULL,
    data ${types.text} NOT NULL
  )`.execute(db)
  await db.schema.createIndex('run_events_by_run').unique().on('run_events').columns(['run_id', 'sequence']).execute()
  await db.schema
    .createTable('run_steps')
    .addColumn('run_id', 'text', (col) => col.notNull().references('runs.id'))
    .addColumn('name', 'text', (col) => col.notNull())
    .addColumn('value', 'blob', (col) => col.notNull())
    .addPrimaryKeyConstraint('run_steps_key', ['run_id', 'name'])
    .execute()
  await db.schema
    .createTable('idempotency_keys')
    .addColumn('account_id', 'text', (col) => col.notNull())
    .addColumn('key', 'text', (col) => col.notNull())
    .addColumn('fingerprint', 'blob', (col) => col.notNull())
    .addColumn('run_id', 'text', (col) => col.notNull())
    .addColumn('expires_at', 'bigint', (col) => col.notNull())
    .addPrimaryKeyConstraint('idempotency_keys_key', ['account_id', 'key'])
    .execute()
  await db.schema.createIndex('idempotency_keys_expiring').on('idempotency_keys').column('expires_at').execute()
}

async function browserContexts(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('browser_contexts')
    .addColumn('id', 'text', (col) => col.primaryKey())
    .addColumn('account_id', 'text', (col) => col.notNull().references('accounts.id'))
    .addColumn('name', 'text', (col) => col.notNull())
    .addColumn('created_at', 'bigint', (col) => col.notNull())
    .addColumn('updated_at', 'bigint', (col) => col.notNull())
    .addUniqueConstraint('browser_contexts_name', ['account_id', 'name'])
    .execute()
  await db.schema
    .createIndex('browser_contexts_by_account')
    .on('browser_contexts')
    .columns(['account_id', 'id'])
    .execute()
}
