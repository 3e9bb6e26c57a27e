/** Bulk actions: cancelling or repeating the runs of a filter, batch by batch. */
import type { ColumnTypes } from './migrations.ts'

// Unfinished actions are found in the order in which they were last worked on, so that all of them advance in turn.
export const script = ({ text, blob }: ColumnTypes) => `
CREATE TABLE bulk_actions (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL, kind ${text} NOT NULL, filter ${text} NOT NULL,
  api_key_id ${text}, user_id ${text}, uses_browser_contexts INTEGER NOT NULL, idempotency_key ${text},
  fingerprint ${blob}, last_run_id ${text}, matched INTEGER NOT NULL, done INTEGER NOT NULL, skipped INTEGER NOT NULL,
  failed INTEGER NOT NULL, first_failure ${text}, waits_for ${text}, limit_reached INTEGER NOT NULL,
  next_at BIGINT NOT NULL, created_at BIGINT NOT NULL, finished_at BIGINT
);
CREATE INDEX bulk_actions_unfinished ON bulk_actions (next_at) WHERE finished_at IS NULL;
CREATE INDEX bulk_actions_by_account ON bulk_actions (account_id, id)`
