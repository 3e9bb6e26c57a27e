/** Sessions that belong to the user's present credentials, and a second factor. Signs all users out once. */
import type { ColumnTypes } from './migrations.ts'

export const script = ({ text, blob }: ColumnTypes) => `
ALTER TABLE accounts ADD COLUMN second_factor_required INTEGER NOT NULL DEFAULT 0;

ALTER TABLE users ADD COLUMN credentials_epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN totp_secret ${blob};
ALTER TABLE users ADD COLUMN totp_step BIGINT NOT NULL DEFAULT 0;

CREATE TABLE recovery_codes (
  user_id ${text} NOT NULL REFERENCES users (id), hash ${blob} NOT NULL,
  CONSTRAINT recovery_codes_key PRIMARY KEY (user_id, hash));

DROP TABLE sessions;
CREATE TABLE sessions (
  id ${text} PRIMARY KEY, hash ${blob} NOT NULL UNIQUE, user_id ${text} NOT NULL REFERENCES users (id),
  credentials_epoch INTEGER NOT NULL, by_link INTEGER NOT NULL, address ${text} NOT NULL, user_agent ${text} NOT NULL,
  created_at BIGINT NOT NULL, last_used_at BIGINT NOT NULL, expires_at BIGINT NOT NULL);
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_expiring ON sessions (expires_at)`
