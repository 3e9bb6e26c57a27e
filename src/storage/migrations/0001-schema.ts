/** The schema of version 0.2.0. */
import { notifications } from './0001-notifications.ts'
import type { ColumnTypes } from './migrations.ts'
import { idInPostgres, idInSqlite, isOpenAnswer, isSignInNeeded, postgresFunction } from './trigger-parts.ts'

const accounts = ({ text, blob }: ColumnTypes) => `
CREATE TABLE accounts (
  id ${text} PRIMARY KEY, name ${text} NOT NULL, scopes_enabled INTEGER NOT NULL, created_at BIGINT NOT NULL,
  second_factor_required INTEGER NOT NULL DEFAULT 0, parent_id ${text}, environment ${text},
  values_version INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX accounts_by_environment ON accounts (parent_id, environment) WHERE parent_id IS NOT NULL;

CREATE TABLE users (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL REFERENCES accounts (id), name ${text} NOT NULL,
  created_at BIGINT NOT NULL, email ${text}, password_hash ${text}, role ${text} DEFAULT 'viewer',
  last_signed_in_at BIGINT, removed_at BIGINT, credentials_epoch INTEGER NOT NULL DEFAULT 0,
  totp_secret ${blob}, totp_step BIGINT NOT NULL DEFAULT 0,
  identity_issuer ${text}, identity_subject ${text}, role_from ${text});
CREATE UNIQUE INDEX users_by_identity ON users (identity_issuer, identity_subject) WHERE identity_issuer IS NOT NULL;
CREATE UNIQUE INDEX users_by_email ON users (email) WHERE removed_at IS NULL;
CREATE INDEX users_by_account ON users (account_id);

CREATE TABLE recovery_codes (
  user_id ${text} NOT NULL REFERENCES users (id), hash ${blob} NOT NULL,
  CONSTRAINT recovery_codes_key PRIMARY KEY (user_id, hash));

CREATE TABLE sessions (
  id ${text} PRIMARY KEY, hash ${blob} NOT NULL UNIQUE, user_id ${text} NOT NULL REFERENCES users (id),
  credentials_epoch INTEGER NOT NULL, by_link INTEGER NOT NULL, address ${text} NOT NULL, user_agent ${text} NOT NULL,
  created_at BIGINT NOT NULL, last_used_at BIGINT NOT NULL, expires_at BIGINT NOT NULL, environment_id ${text});
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_expiring ON sessions (expires_at);

CREATE TABLE sign_in_links (
  id ${text} PRIMARY KEY, hash ${blob} NOT NULL UNIQUE, kind ${text} NOT NULL,
  account_id ${text} NOT NULL REFERENCES accounts (id), user_id ${text} REFERENCES users (id), role ${text},
  label ${text}, created_by ${text}, created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL, ended_at BIGINT);
CREATE INDEX sign_in_links_by_account ON sign_in_links (account_id);

CREATE TABLE api_keys (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL REFERENCES accounts (id),
  user_id ${text} NOT NULL REFERENCES users (id), name ${text} NOT NULL, hash ${blob} NOT NULL UNIQUE,
  prefix ${text} NOT NULL, role ${text}, scopes ${text}, workflow_ids ${text}, created_at BIGINT NOT NULL, last_used_at BIGINT,
  last_used_by ${text}, lifetime BIGINT, expires_at BIGINT, expired_at BIGINT, deleted_at BIGINT);
CREATE INDEX api_keys_by_account ON api_keys (account_id);

-- Ids are UUIDs of version 7, which sort by time.
CREATE TABLE audit_log (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL REFERENCES accounts (id), at BIGINT NOT NULL,
  action ${text} NOT NULL, actor_kind ${text} NOT NULL, actor_id ${text}, actor_name ${text} NOT NULL,
  subject_id ${text}, subject_name ${text}, details ${text} NOT NULL);
CREATE INDEX audit_log_by_account ON audit_log (account_id, id);
CREATE INDEX audit_log_by_age ON audit_log (at);

-- Secrets and settings of accounts, which workflows declare.
CREATE TABLE account_values (
  account_id ${text} NOT NULL REFERENCES accounts (id), kind ${text} NOT NULL, name ${text} NOT NULL,
  version INTEGER NOT NULL, updated_at BIGINT NOT NULL, updated_by ${text} NOT NULL, value ${blob} NOT NULL,
  CONSTRAINT account_values_key PRIMARY KEY (account_id, kind, name));

-- How many bytes each account stores, as maintenance last measured it.
CREATE TABLE storage_usage (account_id ${text} PRIMARY KEY REFERENCES accounts (id), bytes BIGINT NOT NULL);

-- The most that each account stored on a day (UTC), of the measurements that ended on it.
CREATE TABLE storage_days (
  account_id ${text} NOT NULL REFERENCES accounts (id), day ${text} NOT NULL, bytes BIGINT NOT NULL,
  CONSTRAINT storage_days_key PRIMARY KEY (account_id, day));
CREATE INDEX storage_days_by_day ON storage_days (day);

-- The process that has the lease does the maintenance of the store. Each new owner increases the fence.
CREATE TABLE leases (
  name ${text} PRIMARY KEY, owner ${text} NOT NULL, precedence INTEGER NOT NULL, fence BIGINT NOT NULL,
  expires_at BIGINT NOT NULL);

-- The lowest version of the service that runs on the schema which each migration leaves.
CREATE TABLE schema_compatibility (migration ${text} PRIMARY KEY, compatible_from ${text} NOT NULL);

-- A known encrypted value, with which a process verifies its keys.
CREATE TABLE encryption_check (id INTEGER PRIMARY KEY, value ${blob} NOT NULL);
`

// Runs have no foreign key: a finished run may outlive its deployment. Nor do deployments refer to `runs`, whose
// unfinished rows are searched by id when a superseded deployment is about to be deleted.
const deployments = ({ text, blob, autoIncrementKey }: ColumnTypes) => `
CREATE TABLE deployments (
  id ${text} PRIMARY KEY, account_id ${text} REFERENCES accounts (id), created_at BIGINT NOT NULL,
  size_bytes INTEGER NOT NULL, is_remote INTEGER NOT NULL DEFAULT 0, workflows ${text} NOT NULL, files ${blob} NOT NULL);

-- The newest activation of an account, or of the installation (NULL), says which deployment is current.
CREATE TABLE deployment_activations (
  id ${autoIncrementKey}, account_id ${text}, deployment_id ${text} NOT NULL REFERENCES deployments (id),
  kind ${text} NOT NULL, directory ${text}, at BIGINT NOT NULL);
CREATE INDEX deployment_activations_by_account ON deployment_activations (account_id, id);
CREATE INDEX deployment_activations_by_deployment ON deployment_activations (deployment_id, id);

-- Workflows that workers outside of the service execute. Each version has a deployment without files.
CREATE TABLE remote_workflows (
  id ${autoIncrementKey}, account_id ${text} NOT NULL REFERENCES accounts (id), workflow_id ${text} NOT NULL,
  version ${text} NOT NULL, deployment_id ${text} NOT NULL REFERENCES deployments (id), seen_at BIGINT NOT NULL,
  CONSTRAINT remote_workflows_version UNIQUE (account_id, workflow_id, version));
`

// Columns that may be large come last, the largest at the end: to read a column, SQLite walks all pages of those before.
const runs = ({ text, blob, autoIncrementKey, inPostgres }: ColumnTypes) => `
CREATE TABLE runs (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL REFERENCES accounts (id), api_key_id ${text}, user_id ${text},
  workflow_id ${text} NOT NULL, workflow_version ${text} NOT NULL, deployment_id ${text},
  status ${text} NOT NULL, reason ${text}, priority INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0, losses INTEGER NOT NULL DEFAULT 0,
  cancel_requested INTEGER NOT NULL DEFAULT 0, cancelled_by_key_id ${text}, cancelled_by_user_id ${text},
  created_at BIGINT NOT NULL, delayed INTEGER NOT NULL DEFAULT 0, waiting_for ${text} NOT NULL DEFAULT '', available_at BIGINT,
  expires_at BIGINT, started_at BIGINT, attempt_started_at BIGINT, finished_at BIGINT,
  worker_id ${text}, lease_expires_at BIGINT, browser_context_id ${text}, persist_context ${text},
  concurrency_group ${text}, schedule_id ${text}, scheduled_for BIGINT, rerun_of ${text}, parent_run_id ${text},
  continues INTEGER NOT NULL DEFAULT 0, continuations INTEGER NOT NULL DEFAULT 0, executed_ms BIGINT NOT NULL DEFAULT 0,
  total_executed_ms BIGINT NOT NULL DEFAULT 0,
  has_waits INTEGER NOT NULL DEFAULT 0, signs_in ${text}, trace_context ${text},
  deployment_problem ${text}, attempt_ends ${text}, tags ${text}, progress ${text},
  secrets ${blob}, error ${text}, variables ${text} NOT NULL, output ${text});

-- A queued run has entries in runs_queued and in the index of the queue that it is in. Finished and waiting runs are in
-- neither, and have the indexes of lists. Each condition has only columns that its index has too, or is one term in parentheses:
-- SQLite then counts and lists without reading rows.
CREATE INDEX runs_queued ON runs (account_id, id, workflow_id, api_key_id) WHERE status = 'queued';
CREATE INDEX runs_ready ON runs (account_id, workflow_id, priority DESC, id)
  WHERE status = 'queued' AND (delayed = 0 AND waiting_for = '');
CREATE INDEX runs_continuing ON runs (account_id, workflow_id, priority DESC, id)
  WHERE status = 'queued' AND (delayed = 0 AND waiting_for = '') AND continues = 1;
CREATE INDEX runs_queued_again ON runs (account_id, id)
  WHERE status = 'queued' AND (delayed = 0 AND (available_at IS NOT NULL OR attempts > 0));
CREATE INDEX runs_delayed ON runs (available_at, workflow_id) WHERE status = 'queued' AND delayed = 1;
CREATE INDEX runs_delayed_by_account ON runs (account_id, id) WHERE status = 'queued' AND delayed = 1;
CREATE INDEX runs_expiring ON runs (expires_at) WHERE status = 'queued' AND expires_at IS NOT NULL;
CREATE INDEX runs_waiting_for_context ON runs (browser_context_id, priority DESC, id, workflow_id)
  WHERE status = 'queued' AND waiting_for = 'browserContext';
CREATE INDEX runs_waiting_for_group ON runs (concurrency_group, priority DESC, id, workflow_id)
  WHERE status = 'queued' AND waiting_for = 'concurrencyGroup';
CREATE INDEX runs_leased ON runs (workflow_id, account_id, lease_expires_at) WHERE status = 'running';
CREATE INDEX runs_running_by_group ON runs (concurrency_group)
  WHERE status = 'running' AND concurrency_group IS NOT NULL;

-- Lists of the runs of one status, by id. The order of StatusQuery in run-list.ts says why some end with expressions.
CREATE INDEX runs_finished ON runs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX runs_finished_by_status ON runs (account_id, status, id)
  WHERE status <> 'queued' AND status <> 'running';
CREATE INDEX runs_finished_by_workflow ON runs (account_id, workflow_id, status, id)
  WHERE status <> 'queued' AND status <> 'running';
CREATE INDEX runs_by_context ON runs (browser_context_id, status, (id || '')) WHERE browser_context_id IS NOT NULL;
CREATE INDEX runs_by_context_and_workflow ON runs (browser_context_id, workflow_id, status, (workflow_id || id))
  WHERE browser_context_id IS NOT NULL;
CREATE INDEX runs_by_reason ON runs (account_id, reason, status, (id || '')) WHERE reason IS NOT NULL;
CREATE INDEX runs_by_reason_and_workflow ON runs (account_id, reason, workflow_id, status, (workflow_id || id))
  WHERE reason IS NOT NULL;
CREATE INDEX runs_finished_by_key ON runs (api_key_id, status, (id || ''))
  WHERE api_key_id IS NOT NULL AND status <> 'queued' AND status <> 'running';
CREATE INDEX runs_by_schedule ON runs (schedule_id, status, (id || '')) WHERE schedule_id IS NOT NULL;
-- For metrics; lists of waiting runs read the indexes of finished ones.
CREATE INDEX runs_waiting ON runs (account_id, workflow_id, waiting_for) WHERE status = 'waiting';
-- For runs that wait for a session, and the one run that signs their browser context in.
CREATE INDEX runs_waiting_for_sign_in ON runs (browser_context_id) WHERE status = 'waiting' AND waiting_for = 'signIn';
CREATE INDEX runs_waiting_for_sign_in_until ON runs (available_at) WHERE status = 'waiting' AND waiting_for = 'signIn';
CREATE UNIQUE INDEX runs_signing_in ON runs (browser_context_id) WHERE signs_in IS NOT NULL AND finished_at IS NULL;
CREATE INDEX runs_by_parent ON runs (parent_run_id, status, (id || '')) WHERE parent_run_id IS NOT NULL;
-- A time of a schedule has at most one run, whatever the processes do. Runs that a caller started have no time, and
-- NULLs differ from each other.
CREATE UNIQUE INDEX runs_by_scheduled_time ON runs (schedule_id, scheduled_for) WHERE schedule_id IS NOT NULL;

CREATE TABLE run_events (
  id ${autoIncrementKey}, run_id ${text} NOT NULL REFERENCES runs (id), sequence INTEGER NOT NULL,
  at BIGINT NOT NULL, type ${text} NOT NULL, data ${text} NOT NULL);
CREATE UNIQUE INDEX run_events_by_run ON run_events (run_id, sequence);

CREATE TABLE run_steps (
  run_id ${text} NOT NULL REFERENCES runs (id), name ${text} NOT NULL, position INTEGER NOT NULL,
  value ${blob} NOT NULL, CONSTRAINT run_steps_key PRIMARY KEY (run_id, name));

CREATE TABLE artifacts (
  run_id ${text} NOT NULL REFERENCES runs (id), name ${text} NOT NULL, media_type ${text} NOT NULL,
  kind ${text} NOT NULL DEFAULT 'workflow', size_bytes INTEGER NOT NULL, attempt INTEGER NOT NULL,
  created_at BIGINT NOT NULL, content ${blob} NOT NULL, blob ${text},
  CONSTRAINT artifacts_key PRIMARY KEY (run_id, name));
CREATE INDEX artifacts_by_age ON artifacts (created_at);

CREATE TABLE idempotency_keys (
  account_id ${text} NOT NULL, key ${text} NOT NULL, fingerprint ${blob} NOT NULL, run_id ${text} NOT NULL,
  run_ids ${text}, expires_at BIGINT NOT NULL, CONSTRAINT idempotency_keys_key PRIMARY KEY (account_id, key));
CREATE INDEX idempotency_keys_expiring ON idempotency_keys (expires_at);

-- The id of a worker outside of the service begins with its account, so that it is no one else's.
CREATE TABLE workers (
  id ${text} PRIMARY KEY, host ${text} NOT NULL, slots INTEGER NOT NULL, started_at BIGINT NOT NULL,
  alive_until BIGINT NOT NULL, account_id ${text}, api_key_id ${text}, name ${text}, language ${text}, version ${text},
  seen_at BIGINT, executes_deployed INTEGER, has_browser INTEGER, workflows ${text});
CREATE INDEX workers_by_account ON workers (account_id, id) WHERE account_id IS NOT NULL;

-- How many events a worker outside of the service has sent of the latest attempt of a run, their length, how many
-- artifacts it has written, and the secrets and settings that it has got.
CREATE TABLE attempt_reports (
  run_id ${text} PRIMARY KEY REFERENCES runs (id), attempt INTEGER NOT NULL, position INTEGER NOT NULL,
  length INTEGER NOT NULL, artifact_writes INTEGER NOT NULL DEFAULT 0, declared ${blob});

-- Only throttles at their rate have a row. The starts of a throttle are numbered without gaps; those outside of the
-- period are deleted.
CREATE TABLE throttles (
  id ${text} PRIMARY KEY, limit_count INTEGER NOT NULL, period_seconds INTEGER NOT NULL, permits_at BIGINT NOT NULL);
CREATE INDEX throttles_by_time ON throttles (permits_at);
CREATE TABLE throttle_starts (
  throttle_id ${text} NOT NULL, number INTEGER NOT NULL, started_at BIGINT NOT NULL, expires_at BIGINT NOT NULL,
  PRIMARY KEY (throttle_id, number));
CREATE INDEX throttle_starts_by_expiry ON throttle_starts (expires_at);

CREATE TABLE run_rollups (
  account_id ${text} NOT NULL, period_seconds INTEGER NOT NULL, starts_at BIGINT NOT NULL, workflow_id ${text} NOT NULL,
  succeeded INTEGER NOT NULL, failed INTEGER NOT NULL, timed_out INTEGER NOT NULL, cancelled INTEGER NOT NULL,
  expired INTEGER NOT NULL, durations ${text} NOT NULL, last_finished_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, period_seconds, starts_at, workflow_id));
-- Of the rows to delete.
CREATE INDEX run_rollups_by_time ON run_rollups (period_seconds, starts_at);
-- What the runs used that finished on a day (UTC). Rows outlive the runs.
CREATE TABLE run_usage (
  account_id ${text} NOT NULL, day ${text} NOT NULL, workflow_id ${text} NOT NULL,
  succeeded INTEGER NOT NULL, failed INTEGER NOT NULL, timed_out INTEGER NOT NULL, cancelled INTEGER NOT NULL,
  expired INTEGER NOT NULL, attempts BIGINT NOT NULL, executed_ms BIGINT NOT NULL, browser_ms BIGINT NOT NULL,
  artifact_bytes BIGINT NOT NULL, PRIMARY KEY (account_id, day, workflow_id));
CREATE INDEX run_usage_by_day ON run_usage (day);

CREATE TABLE run_rollup_progress (id INTEGER PRIMARY KEY, finished_until BIGINT NOT NULL);

-- Workers read all of it while they run browsers: it has a row for each run that someone watches.
CREATE TABLE live_views (
  id ${text} PRIMARY KEY, run_id ${text} NOT NULL, address ${text} NOT NULL, expires_at BIGINT NOT NULL)${
    // A claim reads past the index entries of runs that have started until VACUUM removes them. By default, that waits
    // until a fifth of all runs has changed.
    inPostgres('ALTER TABLE runs SET (autovacuum_vacuum_scale_factor = 0.02)')
  };
`

// Files that runs take as variables. The parts of a file follow each other without gaps. A file becomes visible when its last
// part is stored, and is invisible again before its parts are deleted. Rows that refer to a file keep it from its expiry.
const files = ({ text, blob }: ColumnTypes) => `
CREATE TABLE files (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL REFERENCES accounts (id), name ${text} NOT NULL,
  media_type ${text} NOT NULL, status ${text} NOT NULL, size_bytes BIGINT NOT NULL, sha256 ${text},
  created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL);
CREATE INDEX files_by_account ON files (account_id, id);
CREATE UNIQUE INDEX files_by_content ON files (account_id, sha256, name, media_type) WHERE status = 'ready';
CREATE INDEX files_expiring ON files (expires_at, id);

CREATE TABLE file_parts (
  file_id ${text} NOT NULL REFERENCES files (id), position BIGINT NOT NULL, size_bytes INTEGER NOT NULL,
  blob ${text}, content ${blob} NOT NULL, CONSTRAINT file_parts_key PRIMARY KEY (file_id, position));

CREATE TABLE run_files (
  run_id ${text} NOT NULL REFERENCES runs (id), file_id ${text} NOT NULL REFERENCES files (id),
  CONSTRAINT run_files_key PRIMARY KEY (run_id, file_id));
CREATE INDEX run_files_by_file ON run_files (file_id);

CREATE TABLE schedule_files (
  schedule_id ${text} NOT NULL REFERENCES schedules (id) ON DELETE CASCADE, file_id ${text} NOT NULL REFERENCES files (id),
  CONSTRAINT schedule_files_key PRIMARY KEY (schedule_id, file_id));
CREATE INDEX schedule_files_by_file ON schedule_files (file_id);
`

// Blobs to which no row refers: not yet, or no longer. A statement that deletes or replaces the row of a blob cannot forget it.
const blobs = ({ text, inPostgres, inSqlite }: ColumnTypes) => `
CREATE TABLE unused_blobs (key ${text} PRIMARY KEY, delete_after BIGINT NOT NULL);
CREATE INDEX unused_blobs_by_time ON unused_blobs (delete_after)${inSqlite(`;
CREATE TRIGGER artifacts_blob_deleted AFTER DELETE ON artifacts WHEN OLD.blob IS NOT NULL
  BEGIN ${insertUnusedBlob} END;
CREATE TRIGGER file_parts_blob_deleted AFTER DELETE ON file_parts WHEN OLD.blob IS NOT NULL
  BEGIN ${insertUnusedBlob} END;
CREATE TRIGGER artifacts_blob_replaced AFTER UPDATE OF blob ON artifacts
  WHEN OLD.blob IS NOT NULL AND OLD.blob IS DISTINCT FROM NEW.blob
  BEGIN ${insertUnusedBlob} END`)}${inPostgres(`CREATE FUNCTION add_unused_blob() RETURNS trigger ${postgresFunction} AS $$
  BEGIN ${insertUnusedBlob} RETURN NULL; END $$`)}${inPostgres(`CREATE TRIGGER artifacts_blob_deleted AFTER DELETE ON artifacts FOR EACH ROW
  WHEN (OLD.blob IS NOT NULL) EXECUTE FUNCTION add_unused_blob()`)}${inPostgres(`CREATE TRIGGER file_parts_blob_deleted AFTER DELETE ON file_parts FOR EACH ROW
  WHEN (OLD.blob IS NOT NULL) EXECUTE FUNCTION add_unused_blob()`)}${inPostgres(`CREATE TRIGGER artifacts_blob_replaced AFTER UPDATE OF blob ON artifacts FOR EACH ROW
  WHEN (OLD.blob IS NOT NULL AND OLD.blob IS DISTINCT FROM NEW.blob) EXECUTE FUNCTION add_unused_blob()`)};
`

const insertUnusedBlob = 'INSERT INTO unused_blobs (key, delete_after) VALUES (OLD.blob, 0);'

// A run has terms only if it was queued with tags, or has failed. Each term has two rows, with `scope` '' and with the
// workflow as `scope`, so that one index has the order of both lists. The trigger covers each statement that changes a status.
const terms = ({ text, inPostgres, inSqlite }: ColumnTypes) => `
CREATE TABLE run_terms (
  account_id ${text} NOT NULL, term ${text} NOT NULL, scope ${text} NOT NULL, status ${text} NOT NULL,
  run_id ${text} NOT NULL, CONSTRAINT run_terms_key PRIMARY KEY (account_id, term, scope, status, run_id))${inSqlite(' WITHOUT ROWID')};
CREATE INDEX run_terms_by_run ON run_terms ((run_id || ''))${inSqlite(`;
CREATE TRIGGER run_terms_status AFTER UPDATE OF status ON runs
  WHEN NEW.tags IS NOT NULL AND NEW.status <> OLD.status
  BEGIN UPDATE run_terms SET status = NEW.status WHERE run_id || '' = NEW.id; END`)}${inPostgres(`CREATE FUNCTION set_run_terms_status() RETURNS trigger ${postgresFunction} AS $$
  BEGIN UPDATE run_terms SET status = NEW.status WHERE run_id || '' = NEW.id; RETURN NULL; END $$`)}${inPostgres(`CREATE TRIGGER run_terms_status AFTER UPDATE OF status ON runs FOR EACH ROW
  WHEN (NEW.tags IS NOT NULL AND NEW.status <> OLD.status) EXECUTE FUNCTION set_run_terms_status()`)};
`

// What runs wait for. An answer may come before its run has reached the wait. Whoever ends a wait has locked its run before,
// and triggers let the run go on in the same transaction, so that no end of a wait is missed or counts twice.
const waits = ({ text, blob, inPostgres, inSqlite }: ColumnTypes) => `
CREATE TABLE run_waits (
  run_id ${text} NOT NULL REFERENCES runs (id), name ${text} NOT NULL, id ${text} NOT NULL UNIQUE,
  account_id ${text} NOT NULL, workflow_id ${text} NOT NULL, kind ${text} NOT NULL, status ${text} NOT NULL,
  reached_at BIGINT, deadline BIGINT, completed_at BIGINT, completed_by ${text}, delivered INTEGER NOT NULL DEFAULT 0,
  child_run_id ${text}, is_detached INTEGER NOT NULL DEFAULT 0, title ${text}, shown ${text}, value ${blob},
  CONSTRAINT run_waits_key PRIMARY KEY (run_id, name));
CREATE INDEX run_waits_by_account ON run_waits (account_id, id);
CREATE INDEX run_waits_by_status ON run_waits (account_id, status, kind, id);
CREATE INDEX run_waits_open ON run_waits (run_id, kind) WHERE status = 'open';
CREATE INDEX run_waits_due ON run_waits (deadline) WHERE status = 'open' AND deadline IS NOT NULL;

-- Addresses at which a person without an account answers.
CREATE TABLE wait_links (
  hash ${blob} PRIMARY KEY, id ${text} NOT NULL UNIQUE, account_id ${text} NOT NULL,
  run_id ${text} NOT NULL REFERENCES runs (id), name ${text} NOT NULL, created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL, used_at BIGINT, api_key_id ${text}, user_id ${text});
CREATE INDEX wait_links_by_run ON wait_links (run_id, name)${inSqlite(`;
CREATE TRIGGER run_waits_ended AFTER UPDATE OF status ON run_waits WHEN OLD.status = 'open' AND NEW.status <> 'open'
  BEGIN ${resumeRun} END;
CREATE TRIGGER run_waits_of_child AFTER UPDATE OF status ON runs
  WHEN NEW.parent_run_id IS NOT NULL AND NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL
  BEGIN ${endWaitOfParent} END;
CREATE TRIGGER run_waits_of_run AFTER UPDATE OF status ON runs
  WHEN NEW.has_waits = 1 AND NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL
  BEGIN ${cancelWaits} END`)}${inPostgres(`CREATE FUNCTION resume_waiting_run() RETURNS trigger ${postgresFunction} AS $$
  BEGIN IF NEW.kind = 'run' THEN ${resumeRun} ELSE ${resumeNow} END IF; RETURN NULL; END $$`)}${inPostgres(`CREATE TRIGGER run_waits_ended AFTER UPDATE OF status ON run_waits FOR EACH ROW
  WHEN (OLD.status = 'open' AND NEW.status <> 'open') EXECUTE FUNCTION resume_waiting_run()`)}${inPostgres(`CREATE FUNCTION end_wait_of_parent() RETURNS trigger ${postgresFunction} AS $$
  BEGIN PERFORM 1 FROM runs WHERE id = NEW.parent_run_id FOR UPDATE; ${endWaitOfParent} RETURN NULL; END $$`)}${inPostgres(`CREATE TRIGGER run_waits_of_child AFTER UPDATE OF status ON runs FOR EACH ROW
  WHEN (NEW.parent_run_id IS NOT NULL AND NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL)
  EXECUTE FUNCTION end_wait_of_parent()`)}${inPostgres(`CREATE FUNCTION cancel_waits_of_run() RETURNS trigger ${postgresFunction} AS $$
  BEGIN ${cancelWaits} RETURN NULL; END $$`)}${inPostgres(`CREATE TRIGGER run_waits_of_run AFTER UPDATE OF status ON runs FOR EACH ROW
  WHEN (NEW.has_waits = 1 AND NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL)
  EXECUTE FUNCTION cancel_waits_of_run()`)};
`

/**
 * A run that waits for several others goes on after a pause in which more of them may end: 10 ms for each that has not
 * ended, at most 30 s. Otherwise a run with 1,000 calls would go on 1,000 times.
 */
const openCalls = `(SELECT COUNT(*) FROM (SELECT 1 FROM run_waits
  WHERE run_id = NEW.run_id AND status = 'open' AND kind = 'run' LIMIT 3000) AS open)`
const isLast = `(NEW.kind <> 'run' OR NOT EXISTS (SELECT 1 FROM run_waits
  WHERE run_id = NEW.run_id AND status = 'open' AND kind = 'run'))`
const resumeRun = `UPDATE runs SET status = 'queued', waiting_for = '', delayed = CASE WHEN ${isLast} THEN 0 ELSE 1 END,
    available_at = NEW.completed_at + CASE WHEN ${isLast} THEN 0 ELSE 10 * ${openCalls} END
  WHERE id = NEW.run_id AND (status = 'waiting' OR status = 'queued' AND delayed = 1 AND continues = 1 AND ${isLast});`
/** The same for the other kinds, without counting calls. */
const resumeNow = `UPDATE runs SET status = 'queued', waiting_for = '', delayed = 0, available_at = NEW.completed_at
  WHERE id = NEW.run_id AND CASE WHEN status = 'waiting' OR status = 'queued' AND delayed = 1 AND continues = 1
    THEN 1 ELSE 0 END = 1;`
const endWaitOfParent = `UPDATE run_waits SET status = 'completed', completed_at = NEW.finished_at
  WHERE run_id = NEW.parent_run_id AND child_run_id = NEW.id AND status = 'open';`
const cancelWaits = `UPDATE run_waits SET status = 'cancelled', completed_at = NEW.finished_at
  WHERE run_id = NEW.id AND status = 'open';`

const browserContexts = ({ text, blob }: ColumnTypes) => `
CREATE TABLE browser_contexts (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL REFERENCES accounts (id), name ${text} NOT NULL,
  created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, version INTEGER NOT NULL DEFAULT 0, version_id ${text},
  held_by_run_id ${text}, fence INTEGER NOT NULL DEFAULT 0, last_used_at BIGINT, deleted_at BIGINT,
  has_sign_in INTEGER NOT NULL DEFAULT 0, CONSTRAINT browser_contexts_name UNIQUE (account_id, name));
CREATE INDEX browser_contexts_by_account ON browser_contexts (account_id, id);
-- For erasures that are not finished.
CREATE INDEX browser_contexts_deleted ON browser_contexts (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE browser_context_versions (
  id ${text} PRIMARY KEY, browser_context_id ${text} NOT NULL REFERENCES browser_contexts (id), version INTEGER,
  size_bytes INTEGER NOT NULL, cookie_domains ${text} NOT NULL, created_at BIGINT NOT NULL,
  run_id ${text}, api_key_id ${text}, user_id ${text}, restored_from INTEGER, state ${blob} NOT NULL,
  CONSTRAINT browser_context_versions_number UNIQUE (browser_context_id, version));
CREATE INDEX browser_context_versions_unfinished ON browser_context_versions (created_at) WHERE version IS NULL;
`

// How browser contexts stay signed in. The run that signs in ends in many ways; a trigger covers all of them: it records the
// end, and lets the runs that wait for the session go on in the same transaction.
const signIns = ({ text, blob, inPostgres, inSqlite }: ColumnTypes) => `
CREATE TABLE context_sign_ins (
  browser_context_id ${text} PRIMARY KEY REFERENCES browser_contexts (id), account_id ${text} NOT NULL,
  workflow_id ${text} NOT NULL, status ${text} NOT NULL, run_id ${text}, check_every_seconds INTEGER,
  next_check_at BIGINT, checked_at BIGINT, signed_in_at BIGINT, signed_in_version INTEGER NOT NULL DEFAULT 0,
  fruitless INTEGER NOT NULL DEFAULT 0, needs_sign_in_since BIGINT, has_totp INTEGER NOT NULL DEFAULT 0, totp_step BIGINT NOT NULL DEFAULT 0, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
  error ${text}, variables ${text} NOT NULL, secrets ${blob});
CREATE INDEX context_sign_ins_by_account ON context_sign_ins (account_id, status);
CREATE INDEX context_sign_ins_due ON context_sign_ins (next_check_at) WHERE next_check_at IS NOT NULL;

CREATE TABLE context_sign_in_entries (
  id ${text} PRIMARY KEY, browser_context_id ${text} NOT NULL REFERENCES browser_contexts (id),
  run_id ${text} NOT NULL UNIQUE, kind ${text} NOT NULL, cause ${text} NOT NULL, caused_by_run_id ${text}, actor ${text},
  outcome ${text}, version INTEGER, started_at BIGINT NOT NULL, ended_at BIGINT, error ${text});
CREATE INDEX context_sign_in_entries_by_context ON context_sign_in_entries (browser_context_id, id)${inSqlite(`;
CREATE TRIGGER context_sign_ins_of_run AFTER UPDATE OF status ON runs WHEN ${endOfSignIn}
  BEGIN ${endSignIn} END`)}${inPostgres(`CREATE FUNCTION end_context_sign_in() RETURNS trigger ${postgresFunction} AS $$
  BEGIN ${endSignIn} RETURN NULL; END $$`)}${inPostgres(`CREATE TRIGGER context_sign_ins_of_run AFTER UPDATE OF status ON runs FOR EACH ROW
  WHEN (${endOfSignIn}) EXECUTE FUNCTION end_context_sign_in()`)};
`

const endOfSignIn = 'NEW.signs_in IS NOT NULL AND NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL'
const hasSignedIn = "NEW.status = 'succeeded' AND NEW.signs_in <> 'check'"
const runsWait = `EXISTS (SELECT 1 FROM runs WHERE browser_context_id = NEW.browser_context_id AND status = 'waiting'
    AND waiting_for = 'signIn')`
/** A person has ended it: the browser context is as it was, unless runs wait for the workflow to sign in. */
const isWithdrawn = `needs_sign_in_since IS NULL
    AND (NEW.signs_in = 'byHand' OR NEW.status = 'cancelled' AND NOT ${runsWait})`
/** Runs that found that they are signed out go on after a check, too, unless it has found the same: a run then signs in. */
const mayGoOn = `EXISTS (SELECT 1 FROM context_sign_ins
    WHERE browser_context_id = NEW.browser_context_id AND status <> 'needsSignIn')
  AND NOT EXISTS (SELECT 1 FROM context_sign_in_entries WHERE run_id = NEW.id AND outcome = 'signedOut')`
const needsPerson = `NEW.status <> 'succeeded' AND NEW.signs_in <> 'check' AND NOT (${isWithdrawn})`
const endSignIn = `UPDATE context_sign_in_entries SET ended_at = NEW.finished_at, error = NEW.error,
    outcome = COALESCE(outcome, CASE NEW.status WHEN 'succeeded' THEN 'signedIn' WHEN 'cancelled' THEN 'cancelled' ELSE 'failed' END),
    version = CASE WHEN ${hasSignedIn} THEN (SELECT version FROM browser_contexts WHERE id = NEW.browser_context_id) END
    WHERE run_id = NEW.id; UPDATE context_sign_ins SET run_id = NULL,
    status = CASE WHEN NEW.status = 'succeeded' THEN 'signedIn' WHEN ${needsPerson} THEN 'needsSignIn'
      WHEN NEW.signs_in = 'check' THEN status WHEN signed_in_at IS NULL THEN 'unknown' ELSE 'signedIn' END,
    checked_at = CASE WHEN NEW.signs_in = 'check' THEN NEW.finished_at ELSE checked_at END,
    signed_in_at = CASE WHEN ${hasSignedIn} THEN NEW.finished_at ELSE signed_in_at END,
    signed_in_version = CASE WHEN ${hasSignedIn} THEN (SELECT version FROM browser_contexts
      WHERE id = NEW.browser_context_id) ELSE signed_in_version END,
    needs_sign_in_since = CASE WHEN NEW.status = 'succeeded' THEN NULL
      WHEN ${needsPerson} THEN COALESCE(needs_sign_in_since, NEW.finished_at) ELSE needs_sign_in_since END,
    next_check_at = CASE WHEN ${needsPerson} THEN NULL
      ELSE NEW.finished_at + 1000 * CAST(check_every_seconds AS BIGINT) END,
    error = CASE WHEN ${needsPerson} THEN NEW.error END
    WHERE run_id = NEW.id; UPDATE browser_contexts SET held_by_run_id = NULL WHERE id = NEW.browser_context_id AND held_by_run_id = NEW.id; UPDATE runs SET status = 'queued', waiting_for = '', available_at = NEW.finished_at
    WHERE browser_context_id = NEW.browser_context_id AND status = 'waiting' AND waiting_for = 'signIn' AND ${mayGoOn};`

const schedules = ({ text, blob }: ColumnTypes) => `
CREATE TABLE schedules (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL, name ${text}, workflow_id ${text} NOT NULL,
  options ${text} NOT NULL, cron ${text}, time_zone ${text}, interval_seconds INTEGER, interval_starts_at BIGINT,
  missed ${text} NOT NULL, overlap ${text} NOT NULL, paused_reason ${text}, paused_detail ${text}, next_at BIGINT,
  waits_for_run INTEGER NOT NULL, last_run_id ${text}, last_run_for BIGINT, last_skipped_for BIGINT,
  last_skip_reason ${text}, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
  variables ${text} NOT NULL, secrets ${blob});
CREATE INDEX schedules_by_account ON schedules (account_id, id);
CREATE INDEX schedules_due ON schedules (next_at) WHERE paused_reason IS NULL AND waits_for_run = 0;
CREATE INDEX schedules_waiting ON schedules (id) WHERE waits_for_run = 1;
`

// Unfinished actions are found in the order in which they were last worked on, so that all of them advance.
const bulkActions = ({ text, blob }: ColumnTypes) => `
CREATE TABLE bulk_actions (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL, kind ${text} NOT NULL, filter ${text} NOT NULL,
  api_key_id ${text}, user_id ${text}, uses_browser_contexts INTEGER NOT NULL, idempotency_key ${text},
  fingerprint ${blob}, last_run_id ${text}, total INTEGER, matched INTEGER NOT NULL, done INTEGER NOT NULL, skipped INTEGER NOT NULL,
  failed INTEGER NOT NULL, first_failure ${text}, waits_for ${text}, limit_reached INTEGER NOT NULL,
  next_at BIGINT NOT NULL, created_at BIGINT NOT NULL, finished_at BIGINT);
CREATE INDEX bulk_actions_unfinished ON bulk_actions (next_at) WHERE finished_at IS NULL;
CREATE INDEX bulk_actions_by_account ON bulk_actions (account_id, id);
`

const webhooks = ({ text, blob, inPostgres, inSqlite }: ColumnTypes) => `
CREATE TABLE webhook_endpoints (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL, url ${text} NOT NULL, events ${text} NOT NULL,
  workflow_ids ${text} NOT NULL, tags ${text} NOT NULL, secret ${blob} NOT NULL, previous_secret ${blob},
  previous_secret_expires_at BIGINT, disabled_reason ${text}, created_at BIGINT NOT NULL);
CREATE INDEX webhook_endpoints_by_account ON webhook_endpoints (account_id, id);

CREATE TABLE webhook_deliveries (
  id ${text} PRIMARY KEY, endpoint_id ${text} NOT NULL, account_id ${text} NOT NULL, event ${text} NOT NULL,
  run_id ${text}, wait_name ${text}, browser_context_id ${text}, user_id ${text}, status ${text} NOT NULL,
  attempts INTEGER NOT NULL, created_at BIGINT NOT NULL, next_attempt_at BIGINT, deadline BIGINT NOT NULL,
  last_attempt_at BIGINT, latency_ms INTEGER,
  response_status INTEGER, error ${text}, request_url ${text}, request_body ${text}, response_body ${text});
CREATE INDEX webhook_deliveries_by_endpoint ON webhook_deliveries (endpoint_id, id);
CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (endpoint_id, status, id);
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (endpoint_id, next_attempt_at)
  WHERE status = 'pending';
CREATE INDEX webhook_deliveries_unsent ON webhook_deliveries (run_id) WHERE request_body IS NULL${inSqlite(`;
${sqliteDeliveries}`)}${inPostgres(insertInPostgres('add_webhook_deliveries', endOfRun))}${inPostgres(`CREATE TRIGGER webhook_deliveries_of_run AFTER UPDATE OF status ON runs FOR EACH ROW
  WHEN (NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL) EXECUTE FUNCTION add_webhook_deliveries()`)}${inPostgres(insertInPostgres('add_webhook_deliveries_of_wait', reachedWait))}${inPostgres(`CREATE TRIGGER webhook_deliveries_of_wait AFTER INSERT ON run_waits FOR EACH ROW
  WHEN (${isOpenAnswer}) EXECUTE FUNCTION add_webhook_deliveries_of_wait()`)}${inPostgres(insertInPostgres('add_webhook_deliveries_of_sign_in', neededSignIn))}${inPostgres(`CREATE TRIGGER webhook_deliveries_of_sign_in AFTER UPDATE OF needs_sign_in_since ON context_sign_ins FOR EACH ROW
  WHEN (${isSignInNeeded}) EXECUTE FUNCTION add_webhook_deliveries_of_sign_in()`)};
`

// The first trigger covers every statement that ends a run, in the same transaction. Without an enabled endpoint in the
// account, it costs one look-up in the index of endpoints. A delivery's id is a UUIDv7 of the time at which the run
// ended, so that the index by id has the order of the list, of `since` and of the purge. The second one covers waits for an
// answer that a run reaches.
interface EventSource {
  event: string
  runId: string
  waitName: string
  browserContextId?: string
  at: string
  tags: string
}

const endOfRun: EventSource = {
  event: "'run.' || NEW.status",
  runId: 'NEW.id',
  waitName: 'NULL',
  at: 'NEW.finished_at',
  tags: "COALESCE(NEW.tags, '[]')",
}
const reachedWait: EventSource = {
  event: "'run.waiting'",
  runId: 'NEW.run_id',
  waitName: 'NEW.name',
  at: 'NEW.reached_at',
  tags: "COALESCE((SELECT tags FROM runs WHERE runs.id = NEW.run_id), '[]')",
}
/** The run that could not sign in, if there was one, is the last of the history. */
const neededSignIn: EventSource = {
  event: "'browserContext.needsSignIn'",
  runId: 'OLD.run_id',
  waitName: 'NULL',
  browserContextId: 'NEW.browser_context_id',
  at: 'NEW.needs_sign_in_since',
  tags: "'[]'",
}

const insertDelivery = (
  { event, runId, waitName, browserContextId = 'NULL', at }: EventSource,
  id: string,
  matches: string,
) => `INSERT INTO
    webhook_deliveries (id, endpoint_id, account_id, event, run_id, wait_name, browser_context_id, status, attempts,
      created_at, next_attempt_at, deadline)
    SELECT ${id}, e.id, e.account_id, ${event}, ${runId}, ${waitName}, ${browserContextId}, 'pending', 0, ${at}, ${at}, ${at} + 259200000
    FROM webhook_endpoints AS e WHERE e.account_id = NEW.account_id AND e.disabled_reason IS NULL AND ${matches};`

const hasEndpoint =
  'EXISTS (SELECT 1 FROM webhook_endpoints WHERE account_id = NEW.account_id AND disabled_reason IS NULL)'

const insertInSqlite = (source: EventSource) =>
  insertDelivery(
    source,
    idInSqlite(source.at),
    `instr(e.events, '"' || ${source.event} || '"') > 0
      AND (e.workflow_ids = '[]' OR EXISTS (SELECT 1 FROM json_each(e.workflow_ids) WHERE value = NEW.workflow_id))
      AND (e.tags = '[]' OR EXISTS (SELECT 1 FROM json_each(e.tags) AS wanted
        JOIN json_each(${source.tags}) AS found ON found.value = wanted.value))`,
  )

const sqliteDeliveries = `CREATE TRIGGER webhook_deliveries_of_run AFTER UPDATE OF status ON runs
  WHEN NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL AND ${hasEndpoint}
  BEGIN ${insertInSqlite(endOfRun)} END;
CREATE TRIGGER webhook_deliveries_of_wait AFTER INSERT ON run_waits WHEN ${isOpenAnswer} AND ${hasEndpoint}
  BEGIN ${insertInSqlite(reachedWait)} END;
CREATE TRIGGER webhook_deliveries_of_sign_in AFTER UPDATE OF needs_sign_in_since ON context_sign_ins
  WHEN ${isSignInNeeded} AND ${hasEndpoint} BEGIN ${insertInSqlite(neededSignIn)} END`

const insertInPostgres = (
  name: string,
  source: EventSource,
) => `CREATE FUNCTION ${name}() RETURNS trigger ${postgresFunction} AS $$
  BEGIN IF ${hasEndpoint} THEN ${insertDelivery(
    source,
    idInPostgres(source.at),
    `position('"' || ${source.event} || '"' IN e.events) > 0
      AND (e.workflow_ids = '[]'
        OR EXISTS (SELECT 1 FROM json_array_elements_text(e.workflow_ids::json) AS w (id) WHERE w.id = NEW.workflow_id))
      AND (e.tags = '[]' OR EXISTS (SELECT 1 FROM json_array_elements_text(e.tags::json) AS wanted (tag)
        JOIN json_array_elements_text(${source.tags}::json) AS found (tag) ON found.tag = wanted.tag))`,
  )} END IF; RETURN NULL; END $$`

export const script = (types: ColumnTypes) =>
  [
    accounts,
    deployments,
    runs,
    terms,
    waits,
    browserContexts,
    signIns,
    schedules,
    files,
    blobs,
    bulkActions,
    webhooks,
    notifications,
  ]
    .map((part) => part(types).trim())
    .join('\n\n')
