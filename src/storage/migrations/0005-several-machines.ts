/** For several machines: jobs of the queue engine, fair scheduling, retention, traces and metrics. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('runs').addColumn('job_id', 'text').execute()
  await db.schema.alterTable('runs').addColumn('job_retry_count', 'integer').execute()
  // For fair scheduling, which selects the queue head of each account and workflow. With the parentheses, SQLite counts
  // from the index alone; without them it proves only two of the three terms and reads each row for the third.
  await sql`DROP INDEX runs_ready`.execute(db)
  await sql`CREATE INDEX runs_ready ON runs (account_id, workflow_id, priority DESC, id)
    WHERE status = 'queued' AND (delayed = 0 AND waits_for_context = 0)`.execute(db)
  await sql`DROP INDEX runs_leased`.execute(db)
  await sql`CREATE INDEX runs_leased ON runs (workflow_id, account_id, lease_expires_at)
    WHERE status = 'running'`.execute(db)
  // For lists of a workflow's runs by status. Without it, a rare status scans all runs of the account.
  await sql`CREATE INDEX runs_finished_by_workflow ON runs (account_id, workflow_id, status, id)
    WHERE finished_at IS NOT NULL`.execute(db)
  await sql`CREATE INDEX runs_finished ON runs (finished_at) WHERE finished_at IS NOT NULL`.execute(db)
  await db.schema.createIndex('audit_log_by_age').on('audit_log').column('at').execute()
  // For traces: the parent of a run's attempts.
  await db.schema.alterTable('runs').addColumn('trace_context', 'text').execute()
  // For metrics, which count runs by workflow from the index alone.
  await sql`DROP INDEX runs_delayed`.execute(db)
  await sql`CREATE INDEX runs_delayed ON runs (available_at, workflow_id)
    WHERE status = 'queued' AND delayed = 1`.execute(db)
  await sql`DROP INDEX runs_waiting_for_context`.execute(db)
  await sql`CREATE INDEX runs_waiting_for_context ON runs (browser_context_id, priority DESC, id, workflow_id)
    WHERE status = 'queued' AND waits_for_context = 1`.execute(db)
}
