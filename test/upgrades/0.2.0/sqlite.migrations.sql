-- 0001-schema
CREATE TABLE accounts ( id TEXT PRIMARY KEY, name TEXT NOT NULL, scopes_enabled INTEGER NOT NULL, created_at BIGINT NOT NULL, second_factor_required INTEGER NOT NULL DEFAULT 0)
CREATE TABLE users ( id TEXT PRIMARY KEY, account_id TEXT NOT NULL REFERENCES accounts (id), name TEXT NOT NULL, created_at BIGINT NOT NULL, email TEXT, password_hash TEXT, role TEXT NOT NULL DEFAULT 'member', last_signed_in_at BIGINT, removed_at BIGINT, credentials_epoch INTEGER NOT NULL DEFAULT 0, totp_secret BLOB, totp_step BIGINT NOT NULL DEFAULT 0)
CREATE UNIQUE INDEX users_by_email ON users (email) WHERE removed_at IS NULL
CREATE INDEX users_by_account ON users (account_id)
CREATE TABLE recovery_codes ( user_id TEXT NOT NULL REFERENCES users (id), hash BLOB NOT NULL, CONSTRAINT recovery_codes_key PRIMARY KEY (user_id, hash))
CREATE TABLE sessions ( id TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, user_id TEXT NOT NULL REFERENCES users (id), credentials_epoch INTEGER NOT NULL, by_link INTEGER NOT NULL, address TEXT NOT NULL, user_agent TEXT NOT NULL, created_at BIGINT NOT NULL, last_used_at BIGINT NOT NULL, expires_at BIGINT NOT NULL)
CREATE INDEX sessions_by_user ON sessions (user_id)
CREATE INDEX sessions_expiring ON sessions (expires_at)
CREATE TABLE sign_in_links ( id TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, account_id TEXT NOT NULL REFERENCES accounts (id), user_id TEXT REFERENCES users (id), role TEXT, label TEXT, created_by TEXT, created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL, ended_at BIGINT)
CREATE INDEX sign_in_links_by_account ON sign_in_links (account_id)
CREATE TABLE api_keys ( id TEXT PRIMARY KEY, account_id TEXT NOT NULL REFERENCES accounts (id), user_id TEXT NOT NULL REFERENCES users (id), name TEXT NOT NULL, hash BLOB NOT NULL UNIQUE, prefix TEXT NOT NULL, scopes TEXT, workflow_ids TEXT, created_at BIGINT NOT NULL, last_used_at BIGINT, last_used_by TEXT, lifetime BIGINT, expires_at BIGINT, expired_at BIGINT, deleted_at BIGINT)
CREATE INDEX api_keys_by_account ON api_keys (account_id)
CREATE TABLE audit_log ( id TEXT PRIMARY KEY, account_id TEXT NOT NULL REFERENCES accounts (id), at BIGINT NOT NULL, action TEXT NOT NULL, actor_kind TEXT NOT NULL, actor_id TEXT, actor_name TEXT NOT NULL, subject_id TEXT, subject_name TEXT, details TEXT NOT NULL)
CREATE INDEX audit_log_by_account ON audit_log (account_id, id)
CREATE INDEX audit_log_by_age ON audit_log (at)
CREATE TABLE account_values ( account_id TEXT NOT NULL REFERENCES accounts (id), kind TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, updated_at BIGINT NOT NULL, updated_by TEXT NOT NULL, value BLOB NOT NULL, CONSTRAINT account_values_key PRIMARY KEY (account_id, kind, name))
CREATE TABLE storage_usage (account_id TEXT PRIMARY KEY REFERENCES accounts (id), bytes BIGINT NOT NULL)
CREATE TABLE leases ( name TEXT PRIMARY KEY, owner TEXT NOT NULL, precedence INTEGER NOT NULL, fence BIGINT NOT NULL, expires_at BIGINT NOT NULL)
CREATE TABLE schema_compatibility (migration TEXT PRIMARY KEY, compatible_from TEXT NOT NULL)
CREATE TABLE encryption_check (id INTEGER PRIMARY KEY, value BLOB NOT NULL)
CREATE TABLE deployments ( id TEXT PRIMARY KEY, account_id TEXT REFERENCES accounts (id), created_at BIGINT NOT NULL, size_bytes INTEGER NOT NULL, is_remote INTEGER NOT NULL DEFAULT 0, workflows TEXT NOT NULL, files BLOB NOT NULL)
CREATE TABLE deployment_activations ( id INTEGER PRIMARY KEY AUTOINCREMENT, account_id TEXT, deployment_id TEXT NOT NULL REFERENCES deployments (id), kind TEXT NOT NULL, directory TEXT, at BIGINT NOT NULL)
CREATE INDEX deployment_activations_by_account ON deployment_activations (account_id, id)
CREATE INDEX deployment_activations_by_deployment ON deployment_activations (deployment_id, id)
CREATE TABLE remote_workflows ( id INTEGER PRIMARY KEY AUTOINCREMENT, account_id TEXT NOT NULL REFERENCES accounts (id), workflow_id TEXT NOT NULL, version TEXT NOT NULL, deployment_id TEXT NOT NULL REFERENCES deployments (id), seen_at BIGINT NOT NULL, CONSTRAINT remote_workflows_version UNIQUE (account_id, workflow_id, version))
CREATE TABLE runs ( id TEXT PRIMARY KEY, account_id TEXT NOT NULL REFERENCES accounts (id), api_key_id TEXT, user_id TEXT, workflow_id TEXT NOT NULL, workflow_version TEXT NOT NULL, deployment_id TEXT, status TEXT NOT NULL, reason TEXT, priority INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0, losses INTEGER NOT NULL DEFAULT 0, cancel_requested INTEGER NOT NULL DEFAULT 0, cancelled_by_key_id TEXT, cancelled_by_user_id TEXT, created_at BIGINT NOT NULL, delayed INTEGER NOT NULL DEFAULT 0, waiting_for TEXT NOT NULL DEFAULT '', available_at BIGINT, expires_at BIGINT, started_at BIGINT, attempt_started_at BIGINT, finished_at BIGINT, worker_id TEXT, lease_expires_at BIGINT, browser_context_id TEXT, persist_context TEXT, concurrency_group TEXT, schedule_id TEXT, scheduled_for BIGINT, rerun_of TEXT, parent_run_id TEXT, continues INTEGER NOT NULL DEFAULT 0, continuations INTEGER NOT NULL DEFAULT 0, executed_ms BIGINT NOT NULL DEFAULT 0, has_waits INTEGER NOT NULL DEFAULT 0, trace_context TEXT, deployment_problem TEXT, attempt_ends TEXT, tags TEXT, progress TEXT, secrets BLOB, error TEXT, variables TEXT NOT NULL, output TEXT)
CREATE INDEX runs_queued ON runs (account_id, id, workflow_id, api_key_id) WHERE status = 'queued'
CREATE INDEX runs_ready ON runs (account_id, workflow_id, priority DESC, id) WHERE status = 'queued' AND (delayed = 0 AND waiting_for = '')
CREATE INDEX runs_continuing ON runs (account_id, workflow_id, priority DESC, id) WHERE status = 'queued' AND (delayed = 0 AND waiting_for = '') AND continues = 1
CREATE INDEX runs_delayed ON runs (available_at, workflow_id) WHERE status = 'queued' AND delayed = 1
CREATE INDEX runs_delayed_by_account ON runs (account_id, id) WHERE status = 'queued' AND delayed = 1
CREATE INDEX runs_expiring ON runs (expires_at) WHERE status = 'queued' AND expires_at IS NOT NULL
CREATE INDEX runs_waiting_for_context ON runs (browser_context_id, priority DESC, id, workflow_id) WHERE status = 'queued' AND waiting_for = 'browserContext'
CREATE INDEX runs_waiting_for_group ON runs (concurrency_group, priority DESC, id, workflow_id) WHERE status = 'queued' AND waiting_for = 'concurrencyGroup'
CREATE INDEX runs_leased ON runs (workflow_id, account_id, lease_expires_at) WHERE status = 'running'
CREATE INDEX runs_running_by_group ON runs (concurrency_group) WHERE status = 'running' AND concurrency_group IS NOT NULL
CREATE INDEX runs_finished ON runs (finished_at) WHERE finished_at IS NOT NULL
CREATE INDEX runs_finished_by_status ON runs (account_id, status, id) WHERE status <> 'queued' AND status <> 'running'
CREATE INDEX runs_finished_by_workflow ON runs (account_id, workflow_id, status, id) WHERE status <> 'queued' AND status <> 'running'
CREATE INDEX runs_by_context ON runs (browser_context_id, status, (id || '')) WHERE browser_context_id IS NOT NULL
CREATE INDEX runs_by_context_and_workflow ON runs (browser_context_id, workflow_id, status, (workflow_id || id)) WHERE browser_context_id IS NOT NULL
CREATE INDEX runs_by_reason ON runs (account_id, reason, status, (id || '')) WHERE reason IS NOT NULL
CREATE INDEX runs_by_reason_and_workflow ON runs (account_id, reason, workflow_id, status, (workflow_id || id)) WHERE reason IS NOT NULL
CREATE INDEX runs_finished_by_key ON runs (api_key_id, status, (id || '')) WHERE api_key_id IS NOT NULL AND status <> 'queued' AND status <> 'running'
CREATE INDEX runs_by_schedule ON runs (schedule_id, status, (id || '')) WHERE schedule_id IS NOT NULL
CREATE INDEX runs_waiting ON runs (account_id, workflow_id, waiting_for) WHERE status = 'waiting'
CREATE INDEX runs_by_parent ON runs (parent_run_id, status, (id || '')) WHERE parent_run_id IS NOT NULL
CREATE UNIQUE INDEX runs_by_scheduled_time ON runs (schedule_id, scheduled_for) WHERE schedule_id IS NOT NULL
CREATE TABLE run_events ( id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL REFERENCES runs (id), sequence INTEGER NOT NULL, at BIGINT NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL)
CREATE UNIQUE INDEX run_events_by_run ON run_events (run_id, sequence)
CREATE TABLE run_steps ( run_id TEXT NOT NULL REFERENCES runs (id), name TEXT NOT NULL, position INTEGER NOT NULL, value BLOB NOT NULL, CONSTRAINT run_steps_key PRIMARY KEY (run_id, name))
CREATE TABLE artifacts ( run_id TEXT NOT NULL REFERENCES runs (id), name TEXT NOT NULL, media_type TEXT NOT NULL, kind TEXT NOT NULL DEFAULT 'workflow', size_bytes INTEGER NOT NULL, attempt INTEGER NOT NULL, created_at BIGINT NOT NULL, content BLOB NOT NULL, CONSTRAINT artifacts_key PRIMARY KEY (run_id, name))
CREATE INDEX artifacts_by_age ON artifacts (created_at)
CREATE TABLE idempotency_keys ( account_id TEXT NOT NULL, key TEXT NOT NULL, fingerprint BLOB NOT NULL, run_id TEXT NOT NULL, run_ids TEXT, expires_at BIGINT NOT NULL, CONSTRAINT idempotency_keys_key PRIMARY KEY (account_id, key))
CREATE INDEX idempotency_keys_expiring ON idempotency_keys (expires_at)
CREATE TABLE workers ( id TEXT PRIMARY KEY, host TEXT NOT NULL, slots INTEGER NOT NULL, started_at BIGINT NOT NULL, alive_until BIGINT NOT NULL, account_id TEXT, api_key_id TEXT, name TEXT, language TEXT, version TEXT, seen_at BIGINT, executes_deployed INTEGER, has_browser INTEGER, workflows TEXT)
CREATE INDEX workers_by_account ON workers (account_id, id) WHERE account_id IS NOT NULL
CREATE TABLE attempt_reports ( run_id TEXT PRIMARY KEY REFERENCES runs (id), attempt INTEGER NOT NULL, position INTEGER NOT NULL, length INTEGER NOT NULL, artifact_writes INTEGER NOT NULL DEFAULT 0, declared BLOB)
CREATE TABLE throttles ( id TEXT PRIMARY KEY, limit_count INTEGER NOT NULL, period_seconds INTEGER NOT NULL, permits_at BIGINT NOT NULL)
CREATE INDEX throttles_by_time ON throttles (permits_at)
CREATE TABLE throttle_starts ( throttle_id TEXT NOT NULL, number INTEGER NOT NULL, started_at BIGINT NOT NULL, expires_at BIGINT NOT NULL, PRIMARY KEY (throttle_id, number))
CREATE INDEX throttle_starts_by_expiry ON throttle_starts (expires_at)
CREATE TABLE run_rollups ( account_id TEXT NOT NULL, period_seconds INTEGER NOT NULL, starts_at BIGINT NOT NULL, workflow_id TEXT NOT NULL, succeeded INTEGER NOT NULL, failed INTEGER NOT NULL, timed_out INTEGER NOT NULL, cancelled INTEGER NOT NULL, expired INTEGER NOT NULL, durations TEXT NOT NULL, last_finished_at BIGINT NOT NULL, PRIMARY KEY (account_id, period_seconds, starts_at, workflow_id))
CREATE INDEX run_rollups_by_time ON run_rollups (period_seconds, starts_at)
CREATE TABLE run_rollup_progress (id INTEGER PRIMARY KEY, finished_until BIGINT NOT NULL)
CREATE TABLE live_views ( id TEXT PRIMARY KEY, run_id TEXT NOT NULL, address TEXT NOT NULL, expires_at BIGINT NOT NULL)
CREATE TABLE run_terms ( account_id TEXT NOT NULL, term TEXT NOT NULL, scope TEXT NOT NULL, status TEXT NOT NULL, run_id TEXT NOT NULL, CONSTRAINT run_terms_key PRIMARY KEY (account_id, term, scope, status, run_id)) WITHOUT ROWID
CREATE INDEX run_terms_by_run ON run_terms ((run_id || ''))
CREATE TRIGGER run_terms_status AFTER UPDATE OF status ON runs WHEN NEW.tags IS NOT NULL AND NEW.status <> OLD.status BEGIN UPDATE run_terms SET status = NEW.status WHERE run_id || '' = NEW.id; END
CREATE TABLE run_waits ( run_id TEXT NOT NULL REFERENCES runs (id), name TEXT NOT NULL, id TEXT NOT NULL UNIQUE, account_id TEXT NOT NULL, workflow_id TEXT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL, reached_at BIGINT, deadline BIGINT, completed_at BIGINT, completed_by TEXT, delivered INTEGER NOT NULL DEFAULT 0, child_run_id TEXT, is_detached INTEGER NOT NULL DEFAULT 0, title TEXT, shown TEXT, value BLOB, CONSTRAINT run_waits_key PRIMARY KEY (run_id, name))
CREATE INDEX run_waits_by_account ON run_waits (account_id, id)
CREATE INDEX run_waits_by_status ON run_waits (account_id, status, kind, id)
CREATE INDEX run_waits_open ON run_waits (run_id, kind) WHERE status = 'open'
CREATE INDEX run_waits_due ON run_waits (deadline) WHERE status = 'open' AND deadline IS NOT NULL
CREATE TABLE wait_links ( hash BLOB PRIMARY KEY, id TEXT NOT NULL UNIQUE, account_id TEXT NOT NULL, run_id TEXT NOT NULL REFERENCES runs (id), name TEXT NOT NULL, created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL, used_at BIGINT, api_key_id TEXT, user_id TEXT)
CREATE INDEX wait_links_by_run ON wait_links (run_id, name)
CREATE TRIGGER run_waits_ended AFTER UPDATE OF status ON run_waits WHEN OLD.status = 'open' AND NEW.status <> 'open' BEGIN UPDATE runs SET status = 'queued', waiting_for = '', delayed = CASE WHEN (NEW.kind <> 'run' OR NOT EXISTS (SELECT 1 FROM run_waits WHERE run_id = NEW.run_id AND status = 'open' AND kind = 'run')) THEN 0 ELSE 1 END, available_at = NEW.completed_at + CASE WHEN (NEW.kind <> 'run' OR NOT EXISTS (SELECT 1 FROM run_waits WHERE run_id = NEW.run_id AND status = 'open' AND kind = 'run')) THEN 0 ELSE 10 * (SELECT COUNT(*) FROM (SELECT 1 FROM run_waits WHERE run_id = NEW.run_id AND status = 'open' AND kind = 'run' LIMIT 3000) AS open) END WHERE id = NEW.run_id AND (status = 'waiting' OR status = 'queued' AND delayed = 1 AND continues = 1 AND (NEW.kind <> 'run' OR NOT EXISTS (SELECT 1 FROM run_waits WHERE run_id = NEW.run_id AND status = 'open' AND kind = 'run'))); END
CREATE TRIGGER run_waits_of_child AFTER UPDATE OF status ON runs WHEN NEW.parent_run_id IS NOT NULL AND NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL BEGIN UPDATE run_waits SET status = 'completed', completed_at = NEW.finished_at WHERE run_id = NEW.parent_run_id AND child_run_id = NEW.id AND status = 'open'; END
CREATE TRIGGER run_waits_of_run AFTER UPDATE OF status ON runs WHEN NEW.has_waits = 1 AND NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL BEGIN UPDATE run_waits SET status = 'cancelled', completed_at = NEW.finished_at WHERE run_id = NEW.id AND status = 'open'; END
CREATE TABLE browser_contexts ( id TEXT PRIMARY KEY, account_id TEXT NOT NULL REFERENCES accounts (id), name TEXT NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, version INTEGER NOT NULL DEFAULT 0, version_id TEXT, held_by_run_id TEXT, fence INTEGER NOT NULL DEFAULT 0, last_used_at BIGINT, deleted_at BIGINT, CONSTRAINT browser_contexts_name UNIQUE (account_id, name))
CREATE INDEX browser_contexts_by_account ON browser_contexts (account_id, id)
CREATE INDEX browser_contexts_deleted ON browser_contexts (deleted_at) WHERE deleted_at IS NOT NULL
CREATE TABLE browser_context_versions ( id TEXT PRIMARY KEY, browser_context_id TEXT NOT NULL REFERENCES browser_contexts (id), version INTEGER, size_bytes INTEGER NOT NULL, cookie_domains TEXT NOT NULL, created_at BIGINT NOT NULL, run_id TEXT, api_key_id TEXT, user_id TEXT, restored_from INTEGER, state BLOB NOT NULL, CONSTRAINT browser_context_versions_number UNIQUE (browser_context_id, version))
CREATE INDEX browser_context_versions_unfinished ON browser_context_versions (created_at) WHERE version IS NULL
CREATE TABLE schedules ( id TEXT PRIMARY KEY, account_id TEXT NOT NULL, name TEXT, workflow_id TEXT NOT NULL, options TEXT NOT NULL, cron TEXT, time_zone TEXT, interval_seconds INTEGER, interval_starts_at BIGINT, missed TEXT NOT NULL, overlap TEXT NOT NULL, paused_reason TEXT, paused_detail TEXT, next_at BIGINT, waits_for_run INTEGER NOT NULL, last_run_id TEXT, last_run_for BIGINT, last_skipped_for BIGINT, last_skip_reason TEXT, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, variables TEXT NOT NULL, secrets BLOB)
CREATE INDEX schedules_by_account ON schedules (account_id, id)
CREATE INDEX schedules_due ON schedules (next_at) WHERE paused_reason IS NULL AND waits_for_run = 0
CREATE INDEX schedules_waiting ON schedules (id) WHERE waits_for_run = 1
CREATE TABLE bulk_actions ( id TEXT PRIMARY KEY, account_id TEXT NOT NULL, kind TEXT NOT NULL, filter TEXT NOT NULL, api_key_id TEXT, user_id TEXT, uses_browser_contexts INTEGER NOT NULL, idempotency_key TEXT, fingerprint BLOB, last_run_id TEXT, total INTEGER, matched INTEGER NOT NULL, done INTEGER NOT NULL, skipped INTEGER NOT NULL, failed INTEGER NOT NULL, first_failure TEXT, waits_for TEXT, limit_reached INTEGER NOT NULL, next_at BIGINT NOT NULL, created_at BIGINT NOT NULL, finished_at BIGINT)
CREATE INDEX bulk_actions_unfinished ON bulk_actions (next_at) WHERE finished_at IS NULL
CREATE INDEX bulk_actions_by_account ON bulk_actions (account_id, id)
CREATE TABLE webhook_endpoints ( id TEXT PRIMARY KEY, account_id TEXT NOT NULL, url TEXT NOT NULL, events TEXT NOT NULL, workflow_ids TEXT NOT NULL, tags TEXT NOT NULL, secret BLOB NOT NULL, previous_secret BLOB, previous_secret_expires_at BIGINT, disabled_reason TEXT, created_at BIGINT NOT NULL)
CREATE INDEX webhook_endpoints_by_account ON webhook_endpoints (account_id, id)
CREATE TABLE webhook_deliveries ( id TEXT PRIMARY KEY, endpoint_id TEXT NOT NULL, account_id TEXT NOT NULL, event TEXT NOT NULL, run_id TEXT, wait_name TEXT, status TEXT NOT NULL, attempts INTEGER NOT NULL, created_at BIGINT NOT NULL, next_attempt_at BIGINT, deadline BIGINT NOT NULL, last_attempt_at BIGINT, latency_ms INTEGER, response_status INTEGER, error TEXT, request_url TEXT, request_body TEXT, response_body TEXT)
CREATE INDEX webhook_deliveries_by_endpoint ON webhook_deliveries (endpoint_id, id)
CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (endpoint_id, status, id)
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (endpoint_id, next_attempt_at) WHERE status = 'pending'
CREATE INDEX webhook_deliveries_unsent ON webhook_deliveries (run_id) WHERE request_body IS NULL
CREATE TRIGGER webhook_deliveries_of_run AFTER UPDATE OF status ON runs WHEN NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL AND EXISTS (SELECT 1 FROM webhook_endpoints WHERE account_id = NEW.account_id AND disabled_reason IS NULL) BEGIN INSERT INTO webhook_deliveries (id, endpoint_id, account_id, event, run_id, wait_name, status, attempts, created_at, next_attempt_at, deadline) SELECT substr(printf('%012x', NEW.finished_at), 1, 8) || '-' || substr(printf('%012x', NEW.finished_at), 9) || '-7' || lower(substr(hex(randomblob(2)), 1, 3) || '-8' || substr(hex(randomblob(2)), 1, 3) || '-' || hex(randomblob(6))), e.id, e.account_id, 'run.' || NEW.status, NEW.id, NULL, 'pending', 0, NEW.finished_at, NEW.finished_at, NEW.finished_at + 259200000 FROM webhook_endpoints AS e WHERE e.account_id = NEW.account_id AND e.disabled_reason IS NULL AND instr(e.events, '"' || 'run.' || NEW.status || '"') > 0 AND (e.workflow_ids = '[]' OR EXISTS (SELECT 1 FROM json_each(e.workflow_ids) WHERE value = NEW.workflow_id)) AND (e.tags = '[]' OR EXISTS (SELECT 1 FROM json_each(e.tags) AS wanted JOIN json_each(COALESCE(NEW.tags, '[]')) AS found ON found.value = wanted.value)); END
CREATE TRIGGER webhook_deliveries_of_wait AFTER INSERT ON run_waits WHEN NEW.kind = 'answer' AND NEW.status = 'open' AND EXISTS (SELECT 1 FROM webhook_endpoints WHERE account_id = NEW.account_id AND disabled_reason IS NULL) BEGIN INSERT INTO webhook_deliveries (id, endpoint_id, account_id, event, run_id, wait_name, status, attempts, created_at, next_attempt_at, deadline) SELECT substr(printf('%012x', NEW.reached_at), 1, 8) || '-' || substr(printf('%012x', NEW.reached_at), 9) || '-7' || lower(substr(hex(randomblob(2)), 1, 3) || '-8' || substr(hex(randomblob(2)), 1, 3) || '-' || hex(randomblob(6))), e.id, e.account_id, 'run.waiting', NEW.run_id, NEW.name, 'pending', 0, NEW.reached_at, NEW.reached_at, NEW.reached_at + 259200000 FROM webhook_endpoints AS e WHERE e.account_id = NEW.account_id AND e.disabled_reason IS NULL AND instr(e.events, '"' || 'run.waiting' || '"') > 0 AND (e.workflow_ids = '[]' OR EXISTS (SELECT 1 FROM json_each(e.workflow_ids) WHERE value = NEW.workflow_id)) AND (e.tags = '[]' OR EXISTS (SELECT 1 FROM json_each(e.tags) AS wanted JOIN json_each(COALESCE((SELECT tags FROM runs WHERE runs.id = NEW.run_id), '[]')) AS found ON found.value = wanted.value)); END
