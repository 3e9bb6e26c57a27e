/** Groups of runs that share a concurrency limit: those of an account and workflow with the same concurrency key. */
import type { ColumnTypes } from './migrations.ts'

// A run that waits for its group has the value 2 in `waits_for_context`, which keeps it out of the index of ready runs.
// Runs without a group, which are most, are in neither index.
export const script = ({ text }: ColumnTypes) => `
ALTER TABLE runs ADD COLUMN concurrency_group ${text};
CREATE INDEX runs_waiting_for_group ON runs (concurrency_group, priority DESC, id, workflow_id)
  WHERE status = 'queued' AND waits_for_context = 2;
CREATE INDEX runs_running_by_group ON runs (concurrency_group)
  WHERE status = 'running' AND concurrency_group IS NOT NULL`
