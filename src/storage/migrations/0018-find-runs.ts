/** Tags of runs, the terms by which runs are found, and lists by reason and by API key. */
import type { ColumnTypes } from './migrations.ts'

// A run has terms only if it was queued with tags, or has failed: queueing a run without tags writes nothing here. Each
// term has two rows, of which `scope` is '' or the workflow, so that one index has the order of both lists. The trigger
// covers each statement that changes a status, and costs runs without tags the comparison in its condition.
// Successful runs have no reason, so they are in neither index by reason. `orderOf` in run-list.ts says why the indexes
// of `runs` end with expressions; so does the index of a run's terms, by which no list must walk.
export const script = ({ text, inPostgres, inSqlite }: ColumnTypes) => `
ALTER TABLE runs ADD COLUMN tags ${text};
CREATE TABLE run_terms (
  account_id ${text} NOT NULL, term ${text} NOT NULL, scope ${text} NOT NULL, status ${text} NOT NULL,
  run_id ${text} NOT NULL, CONSTRAINT run_terms_key PRIMARY KEY (account_id, term, scope, status, run_id))${inSqlite(' WITHOUT ROWID')};
CREATE INDEX run_terms_by_run ON run_terms ((run_id || ''));
CREATE INDEX runs_by_reason ON runs (account_id, reason, status, (id || '')) WHERE reason IS NOT NULL;
CREATE INDEX runs_by_reason_and_workflow ON runs (account_id, reason, workflow_id, status, (workflow_id || id))
  WHERE reason IS NOT NULL;
CREATE INDEX runs_finished_by_key ON runs (api_key_id, status, (id || ''))
  WHERE api_key_id IS NOT NULL AND finished_at IS NOT NULL${inSqlite(`;
CREATE TRIGGER run_terms_status AFTER UPDATE OF status ON runs
  WHEN NEW.tags IS NOT NULL AND NEW.status <> OLD.status
  BEGIN UPDATE run_terms SET status = NEW.status WHERE run_id || '' = NEW.id; END`)}${inPostgres(`CREATE FUNCTION set_run_terms_status() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN UPDATE run_terms SET status = NEW.status WHERE run_id || '' = NEW.id; RETURN NULL; END $$`)}${inPostgres(`CREATE TRIGGER run_terms_status AFTER UPDATE OF status ON runs FOR EACH ROW
  WHEN (NEW.tags IS NOT NULL AND NEW.status <> OLD.status) EXECUTE FUNCTION set_run_terms_status()`)}`
