/** Requests of dashboard processes to be sent what the browser of a run shows. */
import type { ColumnTypes } from './migrations.ts'

// Workers read all of it once a second while they run browsers: it has a row for each run that someone watches.
export const script = ({ text }: ColumnTypes) => `
CREATE TABLE live_views (
  id ${text} PRIMARY KEY, run_id ${text} NOT NULL, address ${text} NOT NULL, expires_at BIGINT NOT NULL
)`
