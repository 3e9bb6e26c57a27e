/** Accounts, users, API keys, runs with their events and steps, and browser contexts. */
import { type Kysely, sql } from 'kysely'
import { growingKey, textType } from './dialects.ts'

export async function up(db: Kysely<unknown>): Promise<void> {
  await accountsAndKeys(db)
  await runs(db)
  await runParts(db)
  await browserContexts(db)
}

async function accountsAndKeys(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('accounts')
    .addColumn('id', 'text', (it) => it.primaryKey())
    .addColumn('name', 'text', (it) => it.notNull())
    .addColumn('scopes_enabled', 'integer', (it) => it.notNull())
    .addColumn('created_at', 'bigint', (it) => it.notNull())
    .execute()
  await db.schema
    .createTable('users')
    .addColumn('id', 'text', (it) => it.primaryKey())
    .addColumn('account_id', 'text', (it) => it.notNull().references('accounts.id'))
    .addColumn('name', 'text', (it) => it.notNull())
    .addColumn('created_at', 'bigint', (it) => it.notNull())
    .execute()
  await db.schema
    .createTable('api_keys')
    .addColumn('id', 'text', (it) => it.primaryKey())
    .addColumn('account_id', 'text', (it) => it.notNull().references('accounts.id'))
    .addColumn('user_id', 'text', (it) => it.notNull().references('users.id'))
    .addColumn('name', 'text', (it) => it.notNull())
    .addColumn('hash', 'blob', (it) => it.notNull().unique())
    .addColumn('prefix', 'text', (it) => it.notNull())
    .addColumn('scopes', 'text')
    .addColumn('created_at', 'bigint', (it) => it.notNull())
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
    .addColumn('id', 'text', (it) => it.primaryKey())
    .addColumn('account_id', 'text', (it) => it.notNull().references('accounts.id'))
    .addColumn('api_key_id', 'text')
    .addColumn('workflow_id', 'text', (it) => it.notNull())
    .addColumn('workflow_version', 'text', (it) => it.notNull())
    .addColumn('status', 'text', (it) => it.notNull())
    .addColumn('reason', 'text')
    .addColumn('priority', 'integer', (it) => it.notNull())
    .addColumn('attempts', 'integer', (it) => it.notNull().defaultTo(0))
    .addColumn('failures', 'integer', (it) => it.notNull().defaultTo(0))
    .addColumn('losses', 'integer', (it) => it.notNull().defaultTo(0))
    .addColumn('variables', 'text', (it) => it.notNull())
    .addColumn('secrets', 'blob')
    .addColumn('output', 'text')
    .addColumn('error', 'text')
    .addColumn('progress', 'text')
    .addColumn('cancel_requested', 'integer', (it) => it.notNull().defaultTo(0))
    .addColumn('created_at', 'bigint', (it) => it.notNull())
    .addColumn('delayed', 'integer', (it) => it.notNull().defaultTo(0))
    .addColumn('available_at', 'bigint')
    .addColumn('expires_at', 'bigint')
    .addColumn('started_at', 'bigint')
    .addColumn('finished_at', 'bigint')
    .addColumn('worker_id', 'text')
    .addColumn('lease_expires_at', 'bigint')
    .execute()
  // For lists: the ids are UUIDs of version 7, so that their order is that of creation.
  await sql`CREATE INDEX runs_by_account ON runs (account_id, id)`.execute(db)
  await sql`CREATE INDEX runs_by_workflow ON runs (account_id, workflow_id, id)`.execute(db)
  await sql`CREATE INDEX runs_by_status ON runs (account_id, status, id)`.execute(db)
  // For the queue: each covers only the rows it is asked for, so that finished runs cost nothing.
  await sql`CREATE INDEX runs_ready ON runs (workflow_id, priority DESC, id)
    WHERE status = 'queued' AND delayed = 0`.execute(db)
  await sql`CREATE INDEX runs_delayed ON runs (available_at)
    WHERE status = 'queued' AND delayed = 1`.execute(db)
  await sql`CREATE INDEX runs_expiring ON runs (expires_at)
    WHERE status = 'queued' AND expires_at IS NOT NULL`.execute(db)
  await sql`CREATE INDEX runs_leased ON runs (workflow_id, lease_expires_at) WHERE status = 'running'`.execute(db)
}

async function runParts(db: Kysely<unknown>): Promise<void> {
  await sql`CREATE TABLE run_events (
    id ${growingKey(db)},
    run_id ${textType(db)} NOT NULL REFERENCES runs (id),
    sequence INTEGER NOT NULL,
    at BIGINT NOT NULL,
    type ${textType(db)} NOT NULL,
    data ${textType(db)} NOT NULL
  )`.execute(db)
  await db.schema.createIndex('run_events_by_run').unique().on('run_events').columns(['run_id', 'sequence']).execute()
  await db.schema
    .createTable('run_steps')
    .addColumn('run_id', 'text', (it) => it.notNull().references('runs.id'))
    .addColumn('name', 'text', (it) => it.notNull())
    .addColumn('value', 'blob', (it) => it.notNull())
    .addPrimaryKeyConstraint('run_steps_key', ['run_id', 'name'])
    .execute()
  await db.schema
    .createTable('idempotency_keys')
    .addColumn('account_id', 'text', (it) => it.notNull())
    .addColumn('key', 'text', (it) => it.notNull())
    .addColumn('fingerprint', 'blob', (it) => it.notNull())
    .addColumn('run_id', 'text', (it) => it.notNull())
    .addColumn('expires_at', 'bigint', (it) => it.notNull())
    .addPrimaryKeyConstraint('idempotency_keys_key', ['account_id', 'key'])
    .execute()
  await db.schema.createIndex('idempotency_keys_expiring').on('idempotency_keys').column('expires_at').execute()
}

async function browserContexts(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('browser_contexts')
    .addColumn('id', 'text', (it) => it.primaryKey())
    .addColumn('account_id', 'text', (it) => it.notNull().references('accounts.id'))
    .addColumn('name', 'text', (it) => it.notNull())
    .addColumn('created_at', 'bigint', (it) => it.notNull())
    .addColumn('updated_at', 'bigint', (it) => it.notNull())
    .addUniqueConstraint('browser_contexts_name', ['account_id', 'name'])
    .execute()
  await db.schema
    .createIndex('browser_contexts_by_account')
    .on('browser_contexts')
    .columns(['account_id', 'id'])
    .execute()
}
