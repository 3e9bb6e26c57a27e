/** Versions of browser contexts, the runs that use them, and artifacts. */
import type { ColumnTypes } from './migrations.ts'

export const script = ({ text, blob }: ColumnTypes) => `
ALTER TABLE browser_contexts ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE browser_contexts ADD COLUMN version_id ${text};
ALTER TABLE browser_contexts ADD COLUMN held_by_run_id ${text};
ALTER TABLE browser_contexts ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE browser_contexts ADD COLUMN last_used_at BIGINT;
ALTER TABLE browser_contexts ADD COLUMN deleted_at BIGINT;
-- For erasures that are not finished.
CREATE INDEX browser_contexts_deleted ON browser_contexts (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE browser_context_versions (
  id ${text} PRIMARY KEY, browser_context_id ${text} NOT NULL REFERENCES browser_contexts (id), version INTEGER,
  size_bytes INTEGER NOT NULL, cookie_domains ${text} NOT NULL, created_at BIGINT NOT NULL,
  run_id ${text}, api_key_id ${text}, user_id ${text}, restored_from INTEGER, state ${blob} NOT NULL,
  CONSTRAINT browser_context_versions_number UNIQUE (browser_context_id, version));
CREATE INDEX browser_context_versions_unfinished ON browser_context_versions (created_at) WHERE version IS NULL;

ALTER TABLE runs ADD COLUMN browser_context_id ${text};
ALTER TABLE runs ADD COLUMN persist_context ${text};
ALTER TABLE runs ADD COLUMN waits_for_context INTEGER NOT NULL DEFAULT 0;
DROP INDEX runs_ready;
CREATE INDEX runs_ready ON runs (workflow_id, priority DESC, id)
  WHERE status = 'queued' AND delayed = 0 AND waits_for_context = 0;
CREATE INDEX runs_waiting_for_context ON runs (browser_context_id, priority DESC, id)
  WHERE status = 'queued' AND waits_for_context = 1;

-- The content is the last column, so that SQLite reads the others without it.
CREATE TABLE artifacts (
  run_id ${text} NOT NULL REFERENCES runs (id), name ${text} NOT NULL, media_type ${text} NOT NULL,
  size_bytes INTEGER NOT NULL, attempt INTEGER NOT NULL, created_at BIGINT NOT NULL, content ${blob} NOT NULL,
  CONSTRAINT artifacts_key PRIMARY KEY (run_id, name));
CREATE INDEX artifacts_by_age ON artifacts (created_at)`
