/** For batches of runs: a repeated request with an idempotency key returns all runs of the first one. */
import type { ColumnTypes } from './migrations.ts'

export const script = ({ text }: ColumnTypes) => `
ALTER TABLE idempotency_keys ADD COLUMN run_ids ${text}`
