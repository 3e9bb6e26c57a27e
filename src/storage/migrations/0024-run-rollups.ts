/** Statistics of finished runs, which maintenance adds up by account, workflow and time. */
import type { ColumnTypes } from './migrations.ts'

// The second index is that of the rows to delete.
export const script = ({ text }: ColumnTypes) => `
CREATE TABLE run_rollups (
  account_id ${text} NOT NULL, period_seconds INTEGER NOT NULL, starts_at BIGINT NOT NULL, workflow_id ${text} NOT NULL,
  succeeded INTEGER NOT NULL, failed INTEGER NOT NULL, timed_out INTEGER NOT NULL, cancelled INTEGER NOT NULL,
  expired INTEGER NOT NULL, durations ${text} NOT NULL, last_finished_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, period_seconds, starts_at, workflow_id)
);
CREATE INDEX run_rollups_by_time ON run_rollups (period_seconds, starts_at);
CREATE TABLE run_rollup_progress (id INTEGER PRIMARY KEY, finished_until BIGINT NOT NULL)`
