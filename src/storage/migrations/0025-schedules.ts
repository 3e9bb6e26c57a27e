/** Schedules, and the runs that they queue. */
import type { ColumnTypes } from './migrations.ts'

// A time of a schedule has at most one run, whatever the processes do: the first index is unique. Runs that a caller
// started have no time, and NULLs differ from each other. The second index has the order of the list of a schedule's runs
// (`orderOf` in run-list.ts), and finds its unfinished ones. Runs of no schedule are in neither.
export const script = ({ text, blob }: ColumnTypes) => `
CREATE TABLE schedules (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL, name ${text}, workflow_id ${text} NOT NULL,
  variables ${text} NOT NULL, secrets ${blob}, options ${text} NOT NULL, cron ${text}, time_zone ${text},
  interval_seconds INTEGER, interval_starts_at BIGINT, missed ${text} NOT NULL, overlap ${text} NOT NULL,
  paused_reason ${text}, paused_detail ${text}, next_at BIGINT, waits_for_run INTEGER NOT NULL, last_run_id ${text},
  last_run_for BIGINT, last_skipped_for BIGINT, last_skip_reason ${text}, created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX schedules_by_account ON schedules (account_id, id);
CREATE INDEX schedules_due ON schedules (next_at) WHERE paused_reason IS NULL AND waits_for_run = 0;
CREATE INDEX schedules_waiting ON schedules (id) WHERE waits_for_run = 1;
ALTER TABLE runs ADD COLUMN schedule_id ${text};
ALTER TABLE runs ADD COLUMN scheduled_for BIGINT;
CREATE UNIQUE INDEX runs_by_scheduled_time ON runs (schedule_id, scheduled_for) WHERE schedule_id IS NOT NULL;
CREATE INDEX runs_by_schedule ON runs (schedule_id, status, (id || '')) WHERE schedule_id IS NOT NULL`
