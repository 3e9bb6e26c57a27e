/** For the history of attempts, and for who cancelled a run. Null in runs of earlier versions. */
import type { ColumnTypes } from './migrations.ts'

export const script = ({ text }: ColumnTypes) => `
ALTER TABLE runs ADD COLUMN attempt_started_at BIGINT;
ALTER TABLE runs ADD COLUMN attempt_ends ${text};
ALTER TABLE runs ADD COLUMN cancelled_by_key_id ${text};
ALTER TABLE runs ADD COLUMN cancelled_by_user_id ${text}`
