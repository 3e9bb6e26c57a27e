/** The jobs of a queue engine, turns among accounts, what is found by its age to be removed, and what is measured. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('runs').addColumn('job_id', 'text').execute()
  await db.schema.alterTable('runs').addColumn('job_retry_count', 'integer').execute()
  // Accounts take turns: each is asked for its best run of a workflow. The parentheses let SQLite count from the index
  // alone: of three terms in a row it takes two for known, and reads each row for the third.
  await sql`DROP INDEX runs_ready`.execute(db)
  await sql`CREATE INDEX runs_ready ON runs (account_id, workflow_id, priority DESC, id)
    WHERE status = 'queued' AND (delayed = 0 AND waits_for_context = 0)`.execute(db)
  await sql`DROP INDEX runs_leased`.execute(db)
  await sql`CREATE INDEX runs_leased ON runs (workflow_id, account_id, lease_expires_at)
    WHERE status = 'running'`.execute(db)
  // For lists of a workflow's runs with a status: one that has few of them was looked for among all of the account's.
  await sql`CREATE INDEX runs_finished_by_workflow ON runs (account_id, workflow_id, status, id)
    WHERE finished_at IS NOT NULL`.execute(db)
  await sql`CREATE INDEX runs_finished ON runs (finished_at) WHERE finished_at IS NOT NULL`.execute(db)
  await db.schema.createIndex('audit_log_by_age').on('audit_log').column('at').execute()
  // For traces: what a run's attempts belong to.
  await db.schema.alterTable('runs').addColumn('trace_context', 'text').execute()
  // For metrics: counted by workflow from the index alone.
  await sql`DROP INDEX runs_delayed`.execute(db)
  await sql`CREATE INDEX runs_delayed ON runs (available_at, workflow_id)
    WHERE status = 'queued' AND delayed = 1`.execute(db)
  await sql`DROP INDEX runs_waiting_for_context`.execute(db)
  await sql`CREATE INDEX runs_waiting_for_context ON runs (browser_context_id, priority DESC, id, workflow_id)
    WHERE status = 'queued' AND waits_for_context = 1`.execute(db)
}
