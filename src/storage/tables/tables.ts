/** Names of all tables with their row types, which are the same in both stores. */

import type { Generated, Selectable } from 'kysely'
import type {
  AccountsTable,
  AccountValuesTable,
  ApiKeysTable,
  AuditLogTable,
  RecoveryCodesTable,
  SessionsTable,
  SignInLinksTable,
  StorageDaysTable,
  StorageUsageTable,
  UsersTable,
} from './account-tables.ts'
import type {
  NotificationEventsTable,
  NotificationGroupsTable,
  NotificationRulesTable,
  RunFollowersTable,
} from './notification-tables.ts'
import type {
  ArtifactsTable,
  FilePartsTable,
  FilesTable,
  IdempotencyKeysTable,
  LiveViewsTable,
  RunEventsTable,
  RunFilesTable,
  RunRollupProgressTable,
  RunRollupsTable,
  RunStepsTable,
  RunsTable,
  RunTermsTable,
  RunUsageTable,
  RunWaitsTable,
  ScheduleFilesTable,
  SignInKind,
  ThrottleStartsTable,
  ThrottlesTable,
  UnusedBlobsTable,
  WaitLinksTable,
} from './run-tables.ts'

// Values of columns that both stores represent alike.

/** Since 1970, in UTC. */
export type Milliseconds = number

/** JSON text. */
export type Json = string

/** A boolean. */
export type Flag = 0 | 1

export interface Tables {
  accounts: AccountsTable
  account_values: AccountValuesTable
  users: UsersTable
  api_keys: ApiKeysTable
  runs: RunsTable
  run_events: RunEventsTable
  run_steps: RunStepsTable
  run_terms: RunTermsTable
  run_waits: RunWaitsTable
  wait_links: WaitLinksTable
  run_rollups: RunRollupsTable
  run_usage: RunUsageTable
  run_rollup_progress: RunRollupProgressTable
  throttles: ThrottlesTable
  throttle_starts: ThrottleStartsTable
  idempotency_keys: IdempotencyKeysTable
  artifacts: ArtifactsTable
  files: FilesTable
  file_parts: FilePartsTable
  run_files: RunFilesTable
  schedule_files: ScheduleFilesTable
  unused_blobs: UnusedBlobsTable
  live_views: LiveViewsTable
  browser_contexts: BrowserContextsTable
  browser_context_versions: BrowserContextVersionsTable
  context_sign_ins: ContextSignInsTable
  context_sign_in_entries: ContextSignInEntriesTable
  sessions: SessionsTable
  recovery_codes: RecoveryCodesTable
  sign_in_links: SignInLinksTable
  audit_log: AuditLogTable
  workers: WorkersTable
  attempt_reports: AttemptReportsTable
  storage_usage: StorageUsageTable
  storage_days: StorageDaysTable
  leases: LeasesTable
  deployments: DeploymentsTable
  deployment_activations: DeploymentActivationsTable
  remote_workflows: RemoteWorkflowsTable
  webhook_endpoints: WebhookEndpointsTable
  webhook_deliveries: WebhookDeliveriesTable
  notification_rules: NotificationRulesTable
  notification_events: NotificationEventsTable
  notification_groups: NotificationGroupsTable
  run_followers: RunFollowersTable
  schedules: SchedulesTable
  bulk_actions: BulkActionsTable
  encryption_check: EncryptionCheckTable
  schema_compatibility: SchemaCompatibilityTable
}

// Row types of the installation: workers, deployments of workflows, and the check of encryption keys.

export interface WorkersTable {
  /** A UUID. Of a worker outside of the service, the account's id and `/` stand before it. */
  id: string
  host: string
  slots: number
  started_at: Milliseconds
  /** When the worker counts as lost, unless a heartbeat extends it. */
  alive_until: Milliseconds
  /** The last heartbeat, or when a worker outside of the service last sent something, to a third of the lease time. */
  seen_at: Milliseconds | null
  /** The account whose runs a worker outside of the service executes; the columns from here on are `null` for others. */
  account_id: string | null
  /** The key that registered it. To other keys it does not exist. */
  api_key_id: string | null
  name: string | null
  language: string | null
  /** Of its program. */
  version: string | null
  /** 1 if it also executes deployed workflows. */
  executes_deployed: Flag | null
  /** Whether it executes deployed workflows that use a browser. */
  has_browser: Flag | null
  /** The workflows that it has itself, with version and deployment. */
  workflows: Json | null
}

interface AttemptReportsTable {
  run_id: string
  /** The fencing token. */
  attempt: number
  /** How many events the worker has sent. */
  position: number
  /** Characters of their texts. */
  length: number
  /** How often it has written an artifact. */
  artifact_writes: Generated<number>
  /** The secrets and settings that the attempt has got, as JSON, encrypted; `null` if its workflow declares none. */
  declared: Uint8Array | null
}

interface RemoteWorkflowsTable {
  id: Generated<number>
  account_id: string
  workflow_id: string
  version: string
  deployment_id: string
  /** When a worker registered it last. */
  seen_at: Milliseconds
}

export interface LeasesTable {
  name: string
  /** The host and process ID, for operators. */
  owner: string
  /** A process takes the lease from an owner of lower precedence without waiting for its expiry. */
  precedence: number
  /** Increases with each new owner. Only the owner that has the latest one can extend the lease. */
  fence: number
  expires_at: Milliseconds
}

interface DeploymentsTable {
  /** SHA-256 of the content and the account, in hexadecimal. */
  id: string
  /** The account that alone sees its workflows; `null` for all accounts of the installation. */
  account_id: string | null
  created_at: Milliseconds
  /** The definitions, without their code. */
  workflows: Json
  /** Size of the files before compression. */
  size_bytes: number
  /** 1 if workers outside of the service execute it, and it has no files. */
  is_remote: Generated<Flag>
  /** The files, compressed. */
  files: Uint8Array
}

interface DeploymentActivationsTable {
  /** Increases in the order of commits. */
  id: Generated<number>
  account_id: string | null
  deployment_id: string
  kind: 'deploy' | 'rollback'
  /** The directory that was deployed, where packages with native code are found; `null` for a rollback. */
  directory: string | null
  at: Milliseconds
}

interface SchemaCompatibilityTable {
  /** The name of a migration. */
  migration: string
  /** The lowest version of the service that runs on the schema which it leaves, such as `0.2.0`. */
  compatible_from: string
}

interface EncryptionCheckTable {
  /** Always 1: the table has one row. */
  id: number
  /** A known value, encrypted: decrypting it proves possession of the installation's keys. */
  value: Uint8Array
}

// Row type of bulk actions.

export interface BulkActionsTable {
  /** A UUID of version 7: the action concerns only runs that were created before it. */
  id: string
  account_id: string
  kind: string
  /** As the caller gave it. */
  filter: Json
  /** Who asked for it; the new runs of a rerun are theirs. */
  api_key_id: string | null
  user_id: string | null
  /** Whether the caller may queue runs with a browser context. */
  uses_browser_contexts: Flag
  idempotency_key: string | null
  /** A keyed hash of the request, if it had an idempotency key. */
  fingerprint: Uint8Array | null
  /** The last run that was worked on, in the order of ids. */
  last_run_id: string | null
  /** Runs that were worked on: `done`, `skipped` and `failed` together. */
  /** `null` until the runs have been counted. */
  total: number | null
  matched: number
  done: number
  skipped: number
  failed: number
  /** The first run that failed, and why. */
  first_failure: Json | null
  /** Why it pauses until `next_at`; `null` while it advances. */
  waits_for: string | null
  /** 1 if more runs match than an action may have. */
  limit_reached: Flag
  /** When its next batch is due. */
  next_at: Milliseconds
  created_at: Milliseconds
  finished_at: Milliseconds | null
}

// Row type of schedules.

export interface SchedulesTable {
  id: string
  account_id: string
  name: string | null
  workflow_id: string
  /** As the caller gave them, without defaults, with every secret masked. */
  variables: Json
  /** The secrets by JSON Pointer, encrypted. */
  secrets: Uint8Array | null
  /** Options of its runs, such as their priority. */
  options: Json
  /** `null` for a schedule with an interval. */
  cron: string | null
  time_zone: string | null
  interval_seconds: number | null
  interval_starts_at: Milliseconds | null
  missed: string
  overlap: string
  /** `null` while the schedule is active. */
  paused_reason: string | null
  paused_detail: string | null
  /** The first time that is not decided yet; `null` while the schedule is paused, or when there is none. */
  next_at: Milliseconds | null
  /** 1 while `next_at` waits for the end of an earlier run. */
  waits_for_run: Flag
  /** The latest run of a time, and this time. */
  last_run_id: string | null
  last_run_for: Milliseconds | null
  /** The latest time that got no run, and why. */
  last_skipped_for: Milliseconds | null
  last_skip_reason: string | null
  created_at: Milliseconds
  updated_at: Milliseconds
}

// Row types of browser contexts and their versions.

interface BrowserContextsTable {
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
  /** 1 if a row of `context_sign_ins` says how it stays signed in. */
  has_sign_in: Generated<Flag>
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

// Row types of how browser contexts stay signed in.

/** `unknown`: no run has signed in or checked yet. `needsSignIn`: a person is needed. */
export type SignInStatus = 'unknown' | 'signedIn' | 'signingIn' | 'needsSignIn'

export interface ContextSignInsTable {
  browser_context_id: string
  account_id: string
  workflow_id: string
  status: SignInStatus
  /** The run that signs in or checks now. */
  run_id: string | null
  check_every_seconds: number | null
  /** `null` without checks, while a run signs in or checks, and while a person is needed. */
  next_check_at: Milliseconds | null
  checked_at: Milliseconds | null
  signed_in_at: Milliseconds | null
  /** The version of the browser context that a sign-in has stored last: runs that started with an older one may go on. */
  signed_in_version: number
  /** How many sign-ins in a row have succeeded although a run has then found no session in the version of each. */
  fruitless: number
  /** Set once for each time that a person is needed; the trigger of webhooks reads it. */
  needs_sign_in_since: Milliseconds | null
  has_totp: Flag
  /** The time step of the last one-time code that a run has got (RFC 6238, section 5.2); 0 before. */
  totp_step: number
  created_at: Milliseconds
  updated_at: Milliseconds
  /** Why the last sign-in failed, with secrets masked. */
  error: Json | null
  /** The variables, with every secret masked. */
  variables: Json
  /** The secrets of the variables by JSON Pointer, and the TOTP seed, encrypted. */
  secrets: Uint8Array | null
}

/** What led to a check or a sign-in. */
export type SignInCause = 'signedOut' | 'checkDue' | 'requested' | 'changed'

export interface ContextSignInEntriesTable {
  id: string
  browser_context_id: string
  run_id: string
  kind: SignInKind
  cause: SignInCause
  /** The run that found that it was signed out. */
  caused_by_run_id: string | null
  /** The key or user that asked for it or signed in by hand: `{"kind", "id", "name"}`. */
  actor: Json | null
  /** `null` while it is queued or running. */
  outcome: 'signedIn' | 'signedOut' | 'failed' | 'cancelled' | null
  version: number | null
  started_at: Milliseconds
  ended_at: Milliseconds | null
  error: Json | null
}

// Row types of webhook endpoints and deliveries.

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

/** Its columns of JSON text. */
export const jsonOfEndpoints: readonly (keyof WebhookEndpointsTable)[] = ['events', 'workflow_ids', 'tags']

export interface WebhookDeliveriesTable {
  /** A UUIDv7, which is also the id of the message. */
  id: string
  /** A webhook endpoint, a notification rule, or `run-followers`. */
  endpoint_id: string
  account_id: string
  event: string
  /** `null` for a test. */
  run_id: string | null
  /** The wait that the run has reached; `null` for other events. */
  wait_name: string | null
  /** The browser context that needs a person; `null` for other events. */
  browser_context_id: string | null
  /** Who follows the run; `null` for other deliveries. */
  user_id: string | null
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
  /** Every attempt sends this body. `null` until the first one, or until the run is erased. Messages are stored with it. */
  request_body: string | null
  response_status: number | null
  response_body: string | null
  error: string | null
}
