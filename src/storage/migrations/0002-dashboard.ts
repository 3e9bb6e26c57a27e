/** For the dashboard: sign-in (users, sessions, links), the audit log, and registered workers. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await users(db)
  await signIn(db)
  await auditLog(db)
  await db.schema
    .createTable('workers')
    .addColumn('id', 'text', (col) => col.primaryKey())
    .addColumn('host', 'text', (col) => col.notNull())
    .addColumn('slots', 'integer', (col) => col.notNull())
    .addColumn('started_at', 'bigint', (col) => col.notNull())
    .addColumn('alive_until', 'bigint', (col) => col.notNull())
    .execute()
  await db.schema.alterTable('runs').addColumn('user_id', 'text').execute()
  // For counts by account.
  await sql`CREATE INDEX runs_delayed_by_account ON runs (account_id, id)
    WHERE status = 'queued' AND delayed = 1`.execute(db)
  await db.schema.alterTable('api_keys').addColumn('last_used_by', 'text').execute()
}

async function users(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('users').addColumn('email', 'text').execute()
  await db.schema.alterTable('users').addColumn('password_hash', 'text').execute()
  await db.schema
    .alterTable('users')
    .addColumn('role', 'text', (col) => col.notNull().defaultTo('member'))
    .execute()
  await db.schema.alterTable('users').addColumn('last_signed_in_at', 'bigint').execute()
  await db.schema.alterTable('users').addColumn('removed_at', 'bigint').execute()
  // Until this version, an account had exactly one user.
  await sql`UPDATE users SET role = 'owner'`.execute(db)
  await sql`CREATE UNIQUE INDEX users_by_email ON users (email) WHERE removed_at IS NULL`.execute(db)
  await db.schema.createIndex('users_by_account').on('users').column('account_id').execute()
}

async function signIn(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('sessions')
    .addColumn('hash', 'blob', (col) => col.primaryKey())
    .addColumn('user_id', 'text', (col) => col.notNull().references('users.id'))
    .addColumn('data', 'text', (col) => col.notNull())
    .addColumn('expires_at', 'bigint', (col) => col.notNull())
    .execute()
  await db.schema.createIndex('sessions_by_user').on('sessions').column('user_id').execute()
  await db.schema.createIndex('sessions_expiring').on('sessions').column('expires_at').execute()
  await db.schema
    .createTable('sign_in_links')
    .addColumn('id', 'text', (col) => col.primaryKey())
    .addColumn('hash', 'blob', (col) => col.notNull().unique())
    .addColumn('kind', 'text', (col) => col.notNull())
    .addColumn('account_id', 'text', (col) => col.notNull().references('accounts.id'))
    .addColumn('user_id', 'text', (col) => col.references('users.id'))
    .addColumn('role', 'text')
    .addColumn('label', 'text')
    .addColumn('created_by', 'text')
    .addColumn('created_at', 'bigint', (col) => col.notNull())
    .addColumn('expires_at', 'bigint', (col) => col.notNull())
    .addColumn('ended_at', 'bigint')
    .execute()
  await db.schema.createIndex('sign_in_links_by_account').on('sign_in_links').column('account_id').execute()
}

async function auditLog(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('audit_log')
    .addColumn('id', 'text', (col) => col.primaryKey())
    .addColumn('account_id', 'text', (col) => col.notNull().references('accounts.id'))
    .addColumn('at', 'bigint', (col) => col.notNull())
    .addColumn('action', 'text', (col) => col.notNull())
    .addColumn('actor_kind', 'text', (col) => col.notNull())
    .addColumn('actor_id', 'text')
    .addColumn('actor_name', 'text', (col) => col.notNull())
    .addColumn('subject_id', 'text')
    .addColumn('subject_name', 'text')
    .addColumn('details', 'text', (col) => col.notNull())
    .execute()
  // Ids are UUIDs of version 7, which sort by time.
  await db.schema.createIndex('audit_log_by_account').on('audit_log').columns(['account_id', 'id']).execute()
}
