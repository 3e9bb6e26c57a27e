/** Accounts, users, API keys, runs with their events and steps, and browser contexts. */
import type { ColumnTypes } from './migrations.ts'

export const script = ({ text, blob, autoIncrementKey }: ColumnTypes) => `
CREATE TABLE accounts (
  id ${text} PRIMARY KEY, name ${text} NOT NULL, scopes_enabled INTEGER NOT NULL, created_at BIGINT NOT NULL);

CREATE TABLE users (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL REFERENCES accounts (id),
  name ${text} NOT NULL, created_at BIGINT NOT NULL);

CREATE TABLE api_keys (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL REFERENCES accounts (id),
  user_id ${text} NOT NULL REFERENCES users (id), name ${text} NOT NULL,
  hash ${blob} NOT NULL UNIQUE, prefix ${text} NOT NULL, scopes ${text},
  created_at BIGINT NOT NULL, last_used_at BIGINT, expires_at BIGINT, expired_at BIGINT, deleted_at BIGINT);
CREATE INDEX api_keys_by_account ON api_keys (account_id);

CREATE TABLE runs (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL REFERENCES accounts (id), api_key_id ${text},
  workflow_id ${text} NOT NULL, workflow_version ${text} NOT NULL,
  status ${text} NOT NULL, reason ${text}, priority INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0, losses INTEGER NOT NULL DEFAULT 0,
  variables ${text} NOT NULL, secrets ${blob}, output ${text}, error ${text}, progress ${text},
  cancel_requested INTEGER NOT NULL DEFAULT 0, created_at BIGINT NOT NULL,
  delayed INTEGER NOT NULL DEFAULT 0, available_at BIGINT, expires_at BIGINT, started_at BIGINT, finished_at BIGINT,
  worker_id ${text}, lease_expires_at BIGINT);
-- For lists. Ids are UUIDs of version 7, which sort by time of creation.
CREATE INDEX runs_by_account ON runs (account_id, id);
CREATE INDEX runs_by_workflow ON runs (account_id, workflow_id, id);
CREATE INDEX runs_by_status ON runs (account_id, status, id);
-- For the queue. These partial indexes exclude finished runs.
CREATE INDEX runs_ready ON runs (workflow_id, priority DESC, id) WHERE status = 'queued' AND delayed = 0;
CREATE INDEX runs_delayed ON runs (available_at) WHERE status = 'queued' AND delayed = 1;
CREATE INDEX runs_expiring ON runs (expires_at) WHERE status = 'queued' AND expires_at IS NOT NULL;
CREATE INDEX runs_leased ON runs (workflow_id, lease_expires_at) WHERE status = 'running';

CREATE TABLE run_events (
  id ${autoIncrementKey}, run_id ${text} NOT NULL REFERENCES runs (id), sequence INTEGER NOT NULL,
  at BIGINT NOT NULL, type ${text} NOT NULL, data ${text} NOT NULL);
CREATE UNIQUE INDEX run_events_by_run ON run_events (run_id, sequence);

CREATE TABLE run_steps (
  run_id ${text} NOT NULL REFERENCES runs (id), name ${text} NOT NULL, value ${blob} NOT NULL,
  CONSTRAINT run_steps_key PRIMARY KEY (run_id, name));

CREATE TABLE idempotency_keys (
  account_id ${text} NOT NULL, key ${text} NOT NULL, fingerprint ${blob} NOT NULL, run_id ${text} NOT NULL,
  expires_at BIGINT NOT NULL, CONSTRAINT idempotency_keys_key PRIMARY KEY (account_id, key));
CREATE INDEX idempotency_keys_expiring ON idempotency_keys (expires_at);

CREATE TABLE browser_contexts (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL REFERENCES accounts (id), name ${text} NOT NULL,
  created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
  CONSTRAINT browser_contexts_name UNIQUE (account_id, name));
CREATE INDEX browser_contexts_by_account ON browser_contexts (account_id, id)`
