/** For the dashboard: sign-in (users, sessions, links), the audit log, and registered workers. */
import type { ColumnTypes } from './migrations.ts'

export const script = ({ text, blob }: ColumnTypes) => `
ALTER TABLE users ADD COLUMN email ${text};
ALTER TABLE users ADD COLUMN password_hash ${text};
ALTER TABLE users ADD COLUMN role ${text} NOT NULL DEFAULT 'member';
ALTER TABLE users ADD COLUMN last_signed_in_at BIGINT;
ALTER TABLE users ADD COLUMN removed_at BIGINT;
-- Until this version, an account had exactly one user.
UPDATE users SET role = 'owner';
CREATE UNIQUE INDEX users_by_email ON users (email) WHERE removed_at IS NULL;
CREATE INDEX users_by_account ON users (account_id);

CREATE TABLE sessions (
  hash ${blob} PRIMARY KEY, user_id ${text} NOT NULL REFERENCES users (id), data ${text} NOT NULL,
  expires_at BIGINT NOT NULL);
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_expiring ON sessions (expires_at);

CREATE TABLE sign_in_links (
  id ${text} PRIMARY KEY, hash ${blob} NOT NULL UNIQUE, kind ${text} NOT NULL,
  account_id ${text} NOT NULL REFERENCES accounts (id), user_id ${text} REFERENCES users (id),
  role ${text}, label ${text}, created_by ${text},
  created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL, ended_at BIGINT);
CREATE INDEX sign_in_links_by_account ON sign_in_links (account_id);

CREATE TABLE audit_log (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL REFERENCES accounts (id), at BIGINT NOT NULL,
  action ${text} NOT NULL, actor_kind ${text} NOT NULL, actor_id ${text}, actor_name ${text} NOT NULL,
  subject_id ${text}, subject_name ${text}, details ${text} NOT NULL);
-- Ids are UUIDs of version 7, which sort by time.
CREATE INDEX audit_log_by_account ON audit_log (account_id, id);

CREATE TABLE workers (
  id ${text} PRIMARY KEY, host ${text} NOT NULL, slots INTEGER NOT NULL, started_at BIGINT NOT NULL,
  alive_until BIGINT NOT NULL);

ALTER TABLE runs ADD COLUMN user_id ${text};
-- For counts by account.
CREATE INDEX runs_delayed_by_account ON runs (account_id, id) WHERE status = 'queued' AND delayed = 1;
ALTER TABLE api_keys ADD COLUMN last_used_by ${text}`
