/** Row types of accounts: users, their sign-in, API keys and the audit log. */
import type { Generated } from 'kysely'
import type { Flag, Json, Milliseconds } from './tables.ts'

export interface AccountsTable {
  id: string
  name: string
  /** Whether API keys of this account can be restricted to scopes. */
  scopes_enabled: Flag
  created_at: Milliseconds
  /** Whether every user of the account needs a second factor. */
  second_factor_required: Generated<Flag>
  /** Of an environment: the account that it belongs to, which has the users. Its name and flags are copies of that account's. */
  parent_id: string | null
  /** The name of the environment; `null` for an account with one environment. */
  environment: string | null
  /** Increases with each change of its secrets and settings. */
  values_version: Generated<number>
}

export interface UsersTable {
  id: string
  account_id: string
  name: string
  created_at: Milliseconds
  /** In lower case, and unique among users that are not removed; `null` until the user has chosen one. */
  email: string | null
  /** In the PHC string format, which includes the algorithm and its parameters. */
  password_hash: string | null
  /** `null` for a member of an identity provider whose groups have no role. */
  role: Generated<string | null>
  last_signed_in_at: Milliseconds | null
  removed_at: Milliseconds | null
  /** Increases with each change of the password or second factor. A session of an earlier epoch is invalid. */
  credentials_epoch: Generated<number>
  /** Secret of the second factor, encrypted; `null` without one. */
  totp_secret: Uint8Array | null
  /** Time step of the last accepted code. Codes of this step and of earlier ones are refused. */
  totp_step: Generated<number>
  /** Of a member who signs in by an identity provider: who the provider is, and its name for the person. */
  identity_issuer: string | null
  identity_subject: string | null
  /** The provider's group that gave the role. */
  role_from: string | null
}

export interface ApiKeysTable {
  id: string
  account_id: string
  user_id: string
  name: string
  /** SHA-256 of the key's value, which is not stored. */
  hash: Uint8Array
  /** The value's first 8 characters, which identify the key to people. */
  prefix: string
  /** The creator's role, which limits the scopes; changed together with it. `null` when the creator has no role. */
  role: string | null
  /** A JSON array, or `null` for a key with full access. */
  scopes: Json | null
  /** The workflows to which the key is restricted, as a JSON array; `null` for a key of all workflows. */
  workflow_ids: Json | null
  created_at: Milliseconds
  last_used_at: Milliseconds | null
  /** Address and user agent of the last caller. */
  last_used_by: string | null
  expires_at: Milliseconds | null
  /** When the expiry was first observed. The key stays expired even if the clock is set back. */
  expired_at: Milliseconds | null
  deleted_at: Milliseconds | null
  /**
   * How long the key was to be valid before a rotation with an overlap shortened it, in milliseconds; 0 for a key that was
   * not to expire. `null` unless it was shortened.
   */
  lifetime: number | null
}

export interface SessionsTable {
  id: string
  /** SHA-256 of the token in the cookie, which only the browser stores. */
  hash: Uint8Array
  user_id: string
  /** The user's `credentials_epoch` at sign-in. */
  credentials_epoch: number
  by_link: Flag
  /** Address and user agent of the last recorded use. */
  address: string
  user_agent: string
  created_at: Milliseconds
  last_used_at: Milliseconds
  expires_at: Milliseconds
  /** The account of the environment that its pages show; `null` for that of the user. */
  environment_id: string | null
}

export interface RecoveryCodesTable {
  user_id: string
  /** HMAC-SHA-256 of the code, keyed with the user's TOTP secret. */
  hash: Uint8Array
}

export interface SignInLinksTable {
  id: string
  /** SHA-256 of the token in the link, which is not stored. */
  hash: Uint8Array
  kind: string
  account_id: string
  /** The user to sign in; `null` for an invitation, which creates one. */
  user_id: string | null
  role: string | null
  /** The creator's description of the recipient. */
  label: string | null
  /** The user who created the link; `null` when it was created on the command line. */
  created_by: string | null
  created_at: Milliseconds
  expires_at: Milliseconds
  /** When it was used or revoked. */
  ended_at: Milliseconds | null
}

export interface AuditLogTable {
  id: string
  account_id: string
  at: Milliseconds
  action: string
  actor_kind: string
  actor_id: string | null
  /** Names at the time of the action. */
  actor_name: string
  subject_id: string | null
  subject_name: string | null
  details: Json
}

/** A secret or a setting of an account. */
export interface AccountValuesTable {
  account_id: string
  kind: string
  name: string
  /** From 1, by one more with each value. */
  version: number
  updated_at: Milliseconds
  /** The actor of the audit log that stored it. */
  updated_by: Json
  /** JSON, encrypted. */
  value: Uint8Array
}

export interface StorageUsageTable {
  account_id: string
  /** As last measured. */
  bytes: number
}

export interface StorageDaysTable {
  account_id: string
  /** A date in UTC, such as `2026-11-27`. */
  day: string
  /** The most that a measurement of the day found. */
  bytes: number
}
