/** Throttles, which limit how many runs of a workflow start within a period, and the lifetimes of rotated API keys. */
import type { ColumnTypes } from './migrations.ts'

// Only throttles at their rate have a row in `throttles`. The starts of a throttle are numbered without gaps; those that
// are outside of the period are deleted.
export const script = ({ text }: ColumnTypes) => `
CREATE TABLE throttles (
  id ${text} PRIMARY KEY, limit_count INTEGER NOT NULL, period_seconds INTEGER NOT NULL, permits_at BIGINT NOT NULL);
CREATE INDEX throttles_by_time ON throttles (permits_at);
CREATE TABLE throttle_starts (
  throttle_id ${text} NOT NULL, number INTEGER NOT NULL, started_at BIGINT NOT NULL, expires_at BIGINT NOT NULL,
  PRIMARY KEY (throttle_id, number));
CREATE INDEX throttle_starts_by_expiry ON throttle_starts (expires_at);
ALTER TABLE api_keys ADD COLUMN lifetime BIGINT`
