/** What the dashboard needs: users who sign in, their sessions and links, the audit log, and the workers that live. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await users(db)
  await signIn(db)
  await auditLog(db)
  await db.schema
    .createTable('workers')
    .addColumn('id', 'text', (it) => it.primaryKey())
    .addColumn('host', 'text', (it) => it.notNull())
    .addColumn('slots', 'integer', (it) => it.notNull())
    .addColumn('started_at', 'bigint', (it) => it.notNull())
    .addColumn('alive_until', 'bigint', (it) => it.notNull())
    .execute()
  await db.schema.alterTable('runs').addColumn('user_id', 'text').execute()
  // For counts by account; runs that are not delayed are not in it, and cost nothing.
  await sql`CREATE INDEX runs_delayed_by_account ON runs (account_id, id)
    WHERE status = 'queued' AND delayed = 1`.execute(db)
  await db.schema.alterTable('api_keys').addColumn('last_used_by', 'text').execute()
}

async function users(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('users').addColumn('email', 'text').execute()
  await db.schema.alterTable('users').addColumn('password_hash', 'text').execute()
  await db.schema
    .alterTable('users')
    .addColumn('role', 'text', (it) => it.notNull().defaultTo('member'))
    .execute()
  await db.schema.alterTable('users').addColumn('last_signed_in_at', 'bigint').execute()
  await db.schema.alterTable('users').addColumn('removed_at', 'bigint').execute()
  // Until now an account had one user, who came with it.
  await sql`UPDATE users SET role = 'owner'`.execute(db)
  await sql`CREATE UNIQUE INDEX users_by_email ON users (email) WHERE removed_at IS NULL`.execute(db)
  await db.schema.createIndex('users_by_account').on('users').column('account_id').execute()
}

async function signIn(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('sessions')
    .addColumn('hash', 'blob', (it) => it.primaryKey())
    .addColumn('user_id', 'text', (it) => it.notNull().references('users.id'))
    .addColumn('data', 'text', (it) => it.notNull())
    .addColumn('expires_at', 'bigint', (it) => it.notNull())
    .execute()
  await db.schema.createIndex('sessions_by_user').on('sessions').column('user_id').execute()
  await db.schema.createIndex('sessions_expiring').on('sessions').column('expires_at').execute()
  await db.schema
    .createTable('sign_in_links')
    .addColumn('id', 'text', (it) => it.primaryKey())
    .addColumn('hash', 'blob', (it) => it.notNull().unique())
    .addColumn('kind', 'text', (it) => it.notNull())
    .addColumn('account_id', 'text', (it) => it.notNull().references('accounts.id'))
    .addColumn('user_id', 'text', (it) => it.references('users.id'))
    .addColumn('role', 'text')
    .addColumn('label', 'text')
    .addColumn('created_by', 'text')
    .addColumn('created_at', 'bigint', (it) => it.notNull())
    .addColumn('expires_at', 'bigint', (it) => it.notNull())
    .addColumn('ended_at', 'bigint')
    .execute()
  await db.schema.createIndex('sign_in_links_by_account').on('sign_in_links').column('account_id').execute()
}

async function auditLog(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('audit_log')
    .addColumn('id', 'text', (it) => it.primaryKey())
    .addColumn('account_id', 'text', (it) => it.notNull().references('accounts.id'))
    .addColumn('at', 'bigint', (it) => it.notNull())
    .addColumn('action', 'text', (it) => it.notNull())
    .addColumn('actor_kind', 'text', (it) => it.notNull())
    .addColumn('actor_id', 'text')
    .addColumn('actor_name', 'text', (it) => it.notNull())
    .addColumn('subject_id', 'text')
    .addColumn('subject_name', 'text')
    .addColumn('details', 'text', (it) => it.notNull())
    .execute()
  // The ids are UUIDs of version 7, so that their order is that of the entries.
  await db.schema.createIndex('audit_log_by_account').on('audit_log').columns(['account_id', 'id']).execute()
}
