/** The rows of runs are the queue in both stores: pg-boss, which had a job for each run in PostgreSQL, is gone. */
import type { ColumnTypes } from './migrations.ts'

export const script = ({ dropSchema }: ColumnTypes) => `
ALTER TABLE runs DROP COLUMN job_id;
ALTER TABLE runs DROP COLUMN job_retry_count${dropSchema('execution_service_jobs')}`
