/** The rows of runs are the queue in both stores: pg-boss, which had a job for each run in PostgreSQL, is gone. */
import type { ColumnTypes } from './migrations.ts'

// A claim reads past the index entries of runs that have started until VACUUM removes them. By default, that waits until
// a fifth of all runs has changed.
export const script = ({ inPostgres }: ColumnTypes) => `
ALTER TABLE runs DROP COLUMN job_id;
ALTER TABLE runs DROP COLUMN job_retry_count${inPostgres('ALTER TABLE runs SET (autovacuum_vacuum_scale_factor = 0.02)')}${inPostgres('DROP SCHEMA IF EXISTS execution_service_jobs CASCADE')}`
