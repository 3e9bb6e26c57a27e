/**
 * Row types of all tables, which are the same in both stores. Times are milliseconds since 1970 in UTC, booleans are 0 or
 * 1, and `Json` columns contain JSON text.
 */
import type { Generated, Selectable } from 'kysely'

type Milliseconds = number
type Json = string
type Flag = 0 | 1

export interface Tables {
  accounts: AccountsTable
  users: UsersTable
  api_keys: ApiKeysTable
  runs: RunsTable
  run_events: RunEventsTable
  run_steps: RunStepsTable
  run_terms: RunTermsTable
  run_rollups: RunRollupsTable
  run_rollup_progress: RunRollupProgressTable
  idempotency_keys: IdempotencyKeysTable
  artifacts: ArtifactsTable
  browser_contexts: BrowserContextsTable
  browser_context_versions: BrowserContextVersionsTable
  sessions: SessionsTable
  recovery_codes: RecoveryCodesTable
  sign_in_links: SignInLinksTable
  audit_log: AuditLogTable
  workers: WorkersTable
  storage_usage: StorageUsageTable
  deployments: DeploymentsTable
  deployment_activations: DeploymentActivationsTable
  webhook_endpoints: WebhookEndpointsTable
  webhook_deliveries: WebhookDeliveriesTable
  encryption_check: EncryptionCheckTable
}

export interface AccountsTable {
  id: string
  name: string
  /** Whether API keys of this account can be restricted to scopes. */
  scopes_enabled: Flag
  created_at: Milliseconds
  /** Whether every user of the account needs a second factor. */
  second_factor_required: Generated<Flag>
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
  role: Generated<string>
  last_signed_in_at: Milliseconds | null
  removed_at: Milliseconds | null
  /** Increases with each change of the password or second factor. A session of an earlier epoch is invalid. */
  credentials_epoch: Generated<number>
  /** Secret of the second factor, encrypted; `null` without one. */
  totp_secret: Uint8Array | null
  /** Time step of the last accepted code. Codes of this step and of earlier ones are refused. */
  totp_step: Generated<number>
}

export interface ApiKeysTable {
  id: string
  account_id: string
  /** The user who created the key. */
  user_id: string
  name: string
  /** SHA-256 of the key's value, which is not stored. */
  hash: Uint8Array
  /** The value's first 8 characters, which identify the key to people. */
  prefix: string
  /** A JSON array, or `null` for a key with full access. */
  scopes: Json | null
  created_at: Milliseconds
  last_used_at: Milliseconds | null
  /** Address and user agent of the last caller. */
  last_used_by: string | null
  expires_at: Milliseconds | null
  /** When the expiry was first observed. The key stays expired even if the clock is set back. */
  expired_at: Milliseconds | null
  deleted_at: Milliseconds | null
}

export interface RunsTable {
  id: string
  account_id: string
  /** The key that queued the run; `null` when a user queued it in the dashboard. */
  api_key_id: string | null
  /** The user who queued the run in the dashboard. */
  user_id: string | null
  workflow_id: string
  workflow_version: string
  status: string
  reason: string | null
  priority: number
  /** Number of attempts that have started. The latest attempt's number is its fencing token. */
  attempts: number
  /** Number of failed attempts, which the workflow's retry policy limits. */
  failures: number
  /** Number of attempts that ended because their worker was lost. */
  losses: number
  /** When the latest attempt started. `null` before the first one, and for attempts of versions that did not store it. */
  attempt_started_at: Milliseconds | null
  /** The attempts that ended without success, oldest first: `[startedAt, sequence]` with the sequence number of the event. */
  attempt_ends: Json | null
  /** The variables, with every secret masked. */
  variables: Json
  /** The secrets by JSON Pointer, encrypted. */
  secrets: Uint8Array | null
  output: Json | null
  error: Json | null
  progress: Json | null
  cancel_requested: Flag
  /** Who cancelled it: an API key or a user of the dashboard. */
  cancelled_by_key_id: string | null
  cancelled_by_user_id: string | null
  created_at: Milliseconds
  /** 1 while the run is queued and `available_at` is in the future. Keeps such runs out of the queue's partial index. */
  delayed: Flag
  available_at: Milliseconds | null
  expires_at: Milliseconds | null
  started_at: Milliseconds | null
  finished_at: Milliseconds | null
  worker_id: string | null
  lease_expires_at: Milliseconds | null
  browser_context_id: string | null
  /** `null` for a run without a browser context. */
  persist_context: string | null
  /**
   * 1 while the run is queued and another run has leased its browser context, 2 while its concurrency group is at its
   * limit; the queue skips it.
   */
  waits_for_context: Flag | 2
  /** Account, workflow and concurrency key; `null` for a run of a workflow without a limit per key. */
  concurrency_group: string | null
  /** The caller's `traceparent` (W3C Trace Context); `null` without tracing. */
  trace_context: string | null
  /** The deployment that validated the run and executes it; `null` for runs queued before there were deployments. */
  deployment_id: string | null
  /** Why the run's worker could not get its deployment the last time; `null` if that never happened. */
  deployment_problem: Json | null
  /** An array; `null` for a run without tags. */
  tags: Json | null
}

export interface RunEventsTable {
  /** Increases across all runs in the order of writing, which may differ from the order of commits. */
  id: Generated<number>
  run_id: string
  /** Position within the run, from 1. */
  sequence: number
  at: Milliseconds
  type: string
  data: Json
}

export interface RunStepsTable {
  run_id: string
  name: string
  /** The step's result, encrypted because it may derive from a secret. */
  value: Uint8Array
}

/** What runs are found by: `tag:` and a tag, `error:` and a word. Each term of a run has a row for the account and one for its workflow. */
export interface RunTermsTable {
  account_id: string
  term: string
  /** '' or the workflow's id. */
  scope: string
  /** The run's. A trigger keeps it equal. */
  status: string
  run_id: string
}

/** The finished runs of a workflow that were created within a period. */
export interface RunRollupsTable {
  account_id: string
  period_seconds: number
  /** A multiple of the period. */
  starts_at: Milliseconds
  workflow_id: string
  succeeded: number
  failed: number
  timed_out: number
  cancelled: number
  expired: number
  /** The histogram of durations, as an object of counts by bucket. */
  durations: Json
  last_finished_at: Milliseconds
}

export interface RunRollupProgressTable {
  /** Always 1: the table has one row. */
  id: number
  /** Runs that finished up to this time are in the rollups. */
  finished_until: Milliseconds
}

export interface IdempotencyKeysTable {
  account_id: string
  key: string
  /** Keyed hash of the first request with this key. */
  fingerprint: Uint8Array
  run_id: string
  /** Ids of all runs of a batch, in their order; `null` for the key of a single run. */
  run_ids: Json | null
  expires_at: Milliseconds
}

export interface ArtifactsTable {
  run_id: string
  name: string
  media_type: string
  size_bytes: number
  attempt: number
  created_at: Milliseconds
  kind: Generated<string>
  content: Uint8Array
}

export interface BrowserContextsTable {
  id: string
  account_id: string
  name: string
  created_at: Milliseconds
  updated_at: Milliseconds
  /** Number of the current version; 0 when there is none. */
  version: Generated<number>
  version_id: string | null
  /** The run with the lease, which may write the next version. */
  held_by_run_id: string | null
  /** Fencing token: increases with each lease. A version written with an older one is rejected. */
  fence: Generated<number>
  last_used_at: Milliseconds | null
  /** Set while its versions are being erased. The context is already invisible. */
  deleted_at: Milliseconds | null
}

export type BrowserContextsRow = Selectable<BrowserContextsTable>

export interface BrowserContextVersionsTable {
  id: string
  browser_context_id: string
  /** `null` until the version is published: after it was read back and its writer has finished properly. */
  version: number | null
  /** Size of the storage state as JSON. */
  size_bytes: number
  cookie_domains: Json
  created_at: Milliseconds
  /** The author: exactly one of these three. */
  run_id: string | null
  api_key_id: string | null
  user_id: string | null
  /** Number of the version that this one restores. */
  restored_from: number | null
  /** The storage state, encrypted. */
  state: Uint8Array
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
  /** Role of the user to create. */
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

export interface WorkersTable {
  id: string
  host: string
  slots: number
  started_at: Milliseconds
  /** When the worker counts as lost, unless a heartbeat extends it. */
  alive_until: Milliseconds
}

export interface StorageUsageTable {
  account_id: string
  /** As last measured. */
  bytes: number
}

export interface DeploymentsTable {
  /** SHA-256 of the content and the account, in hexadecimal. */
  id: string
  /** The account that alone sees its workflows; `null` for all accounts of the installation. */
  account_id: string | null
  created_at: Milliseconds
  /** The definitions, without their code. */
  workflows: Json
  /** Size of the files before compression. */
  size_bytes: number
  /** The files, compressed. */
  files: Uint8Array
}

export interface DeploymentActivationsTable {
  /** Increases in the order of commits. */
  id: Generated<number>
  account_id: string | null
  deployment_id: string
  kind: 'deploy' | 'rollback'
  /** The directory that was deployed, where packages with native code are found; `null` for a rollback. */
  directory: string | null
  at: Milliseconds
}

export interface WebhookEndpointsTable {
  id: string
  account_id: string
  url: string
  events: Json
  /** Empty for all. */
  workflow_ids: Json
  /** Empty for all. */
  tags: Json
  /** Encrypted. */
  secret: Uint8Array
  /** The secret before the last rotation, encrypted. */
  previous_secret: Uint8Array | null
  previous_secret_expires_at: Milliseconds | null
  /** `null` while the endpoint is enabled. */
  disabled_reason: string | null
  created_at: Milliseconds
}

export interface WebhookDeliveriesTable {
  /** A UUIDv7, which is also the id of the message. */
  id: string
  endpoint_id: string
  account_id: string
  event: string
  /** `null` for a test. */
  run_id: string | null
  /** Members of the event's data, with times in milliseconds. */
  run: Json
  status: string
  /** Number of started attempts, which is the fencing token of the last one. */
  attempts: number
  created_at: Milliseconds
  /** During an attempt, when another one may start if the process dies. `null` unless the delivery is pending. */
  next_attempt_at: Milliseconds | null
  /** An attempt that fails after this time is the last. */
  deadline: Milliseconds
  last_attempt_at: Milliseconds | null
  latency_ms: number | null
  request_url: string | null
  request_body: string | null
  response_status: number | null
  response_body: string | null
  error: string | null
}

export interface EncryptionCheckTable {
  /** Always 1: the table has one row. */
  id: number
  /** A known value, encrypted: decrypting it proves possession of the installation's keys. */
  value: Uint8Array
}
