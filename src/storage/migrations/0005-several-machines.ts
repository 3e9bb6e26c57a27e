/** For several machines: jobs of the queue engine, fair scheduling, retention, traces and metrics. */
import type { ColumnTypes } from './migrations.ts'

export const script = ({ text }: ColumnTypes) => `
ALTER TABLE runs ADD COLUMN job_id ${text};
ALTER TABLE runs ADD COLUMN job_retry_count INTEGER;
-- For fair scheduling, which selects the queue head of each account and workflow. With the parentheses, SQLite counts
-- from the index alone; without them it proves only two of the three terms and reads each row for the third.
DROP INDEX runs_ready;
CREATE INDEX runs_ready ON runs (account_id, workflow_id, priority DESC, id)
  WHERE status = 'queued' AND (delayed = 0 AND waits_for_context = 0);
DROP INDEX runs_leased;
CREATE INDEX runs_leased ON runs (workflow_id, account_id, lease_expires_at) WHERE status = 'running';
-- For lists of a workflow's runs by status. Without it, a rare status scans all runs of the account.
CREATE INDEX runs_finished_by_workflow ON runs (account_id, workflow_id, status, id) WHERE finished_at IS NOT NULL;
CREATE INDEX runs_finished ON runs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX audit_log_by_age ON audit_log (at);
-- For traces: the parent of a run's attempts.
ALTER TABLE runs ADD COLUMN trace_context ${text};
-- For metrics, which count runs by workflow from the index alone.
DROP INDEX runs_delayed;
CREATE INDEX runs_delayed ON runs (available_at, workflow_id) WHERE status = 'queued' AND delayed = 1;
DROP INDEX runs_waiting_for_context;
CREATE INDEX runs_waiting_for_context ON runs (browser_context_id, priority DESC, id, workflow_id)
  WHERE status = 'queued' AND waits_for_context = 1`
