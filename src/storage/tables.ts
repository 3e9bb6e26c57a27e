/**
 * The tables, as both stores have them. Moments are milliseconds since 1970 in UTC, booleans 0 or 1, and `Json`
 * columns hold JSON text.
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
  idempotency_keys: IdempotencyKeysTable
  artifacts: ArtifactsTable
  browser_contexts: BrowserContextsTable
  browser_context_versions: BrowserContextVersionsTable
  sessions: SessionsTable
  sign_in_links: SignInLinksTable
  audit_log: AuditLogTable
  workers: WorkersTable
  encryption_check: EncryptionCheckTable
}

export interface AccountsTable {
  id: string
  name: string
  /** Whether keys of this account may be limited to scopes. */
  scopes_enabled: Flag
  created_at: Milliseconds
}

export interface UsersTable {
  id: string
  account_id: string
  name: string
  created_at: Milliseconds
  /** In lower case; `null` until the user has chosen one. Only one user who is not removed has it. */
  email: string | null
  /** In the PHC string format, which names the function and its parameters. */
  password_hash: string | null
  role: Generated<string>
  last_signed_in_at: Milliseconds | null
  removed_at: Milliseconds | null
}

export interface ApiKeysTable {
  id: string
  account_id: string
  /** The user who created the key and holds it. */
  user_id: string
  name: string
  /** SHA-256 of the value. The value itself is stored nowhere. */
  hash: Uint8Array
  /** The value's first 8 characters, to tell keys apart. */
  prefix: string
  /** A JSON array, or `null` for a key that may do everything. */
  scopes: Json | null
  created_at: Milliseconds
  last_used_at: Milliseconds | null
  /** The address and the program of the last caller. */
  last_used_by: string | null
  expires_at: Milliseconds | null
  /** When the expiry was first seen: from then on the key is dead, whatever the clock says. */
  expired_at: Milliseconds | null
  deleted_at: Milliseconds | null
}

export interface RunsTable {
  id: string
  account_id: string
  /** The key that queued the run; `null` when a user did so in the dashboard. */
  api_key_id: string | null
  /** The user who queued the run in the dashboard. */
  user_id: string | null
  workflow_id: string
  workflow_version: string
  status: string
  reason: string | null
  priority: number
  /** How many attempts have started; the latest one's number is also its fencing token. */
  attempts: number
  /** Attempts that the workflow's retry policy counts: those that failed by themselves. */
  failures: number
  /** Attempts that ended because their worker was lost. */
  losses: number
  /** The variables with every secret masked. */
  variables: Json
  /** The secrets by JSON pointer, encrypted. */
  secrets: Uint8Array | null
  output: Json | null
  error: Json | null
  progress: Json | null
  cancel_requested: Flag
  created_at: Milliseconds
  /** 1 while the run is queued and `available_at` has not come, so that the queue's index holds ready runs alone. */
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
  /** 1 while the run is queued and its browser context is held by another, so that the queue passes it over. */
  waits_for_context: Flag
  /** The job by which a queue engine hands the run out, once it can be started; `null` where the row is all there is. */
  job_id: string | null
  /** Which taking of that job the running attempt is. */
  job_retry_count: number | null
  /** The `traceparent` (W3C Trace Context) of whoever queued the run; `null` where nobody traces. */
  trace_context: string | null
}

export interface RunEventsTable {
  /** Grows with every event of every run, in the order in which they were written, if not committed. */
  id: Generated<number>
  run_id: string
  /** Counts from 1 within the run. */
  sequence: number
  at: Milliseconds
  type: string
  data: Json
}

export interface RunStepsTable {
  run_id: string
  name: string
  /** What the step returned, encrypted: it may derive from a secret. */
  value: Uint8Array
}

export interface IdempotencyKeysTable {
  account_id: string
  key: string
  /** A keyed hash of the request that the key was first used with. */
  fingerprint: Uint8Array
  run_id: string
  expires_at: Milliseconds
}

export interface ArtifactsTable {
  run_id: string
  name: string
  media_type: string
  size_bytes: number
  /** The attempt that made it. */
  attempt: number
  created_at: Milliseconds
  content: Uint8Array
}

export interface BrowserContextsTable {
  id: string
  account_id: string
  name: string
  created_at: Milliseconds
  updated_at: Milliseconds
  /** The number of the version that counts; 0 when there is none. */
  version: Generated<number>
  version_id: string | null
  /** The run that may write its next version. */
  held_by_run_id: string | null
  /** Grows each time a run takes hold of it: the token without which a run's version does not count. */
  fence: Generated<number>
  last_used_at: Milliseconds | null
  /** Set while its versions are being erased; it is gone for everyone then. */
  deleted_at: Milliseconds | null
}

export type BrowserContextsRow = Selectable<BrowserContextsTable>

export interface BrowserContextVersionsTable {
  id: string
  browser_context_id: string
  /** `null` until the version counts: until it was read again, and its writer has ended as it should. */
  version: number | null
  /** Of the storage state as JSON. */
  size_bytes: number
  cookie_domains: Json
  created_at: Milliseconds
  /** Who wrote it: one of these three. */
  run_id: string | null
  api_key_id: string | null
  user_id: string | null
  /** The number of the version that this one repeats. */
  restored_from: number | null
  /** The storage state, encrypted. */
  state: Uint8Array
}

export interface SessionsTable {
  /** SHA-256 of the session's id, which only the browser has. */
  hash: Uint8Array
  user_id: string
  data: Json
  expires_at: Milliseconds
}

export interface SignInLinksTable {
  id: string
  /** SHA-256 of the token in the link, which is stored nowhere. */
  hash: Uint8Array
  kind: string
  account_id: string
  /** The user whom the link signs in; `null` where it makes one. */
  user_id: string | null
  /** The role of the user whom the link makes. */
  role: string | null
  /** Who the link is for, in the words of whoever made it. */
  label: string | null
  /** The user who made it; `null` for whoever has the machine. */
  created_by: string | null
  created_at: Milliseconds
  expires_at: Milliseconds
  /** When it was used or withdrawn. */
  ended_at: Milliseconds | null
}

export interface AuditLogTable {
  id: string
  account_id: string
  at: Milliseconds
  action: string
  actor_kind: string
  actor_id: string | null
  /** Names as they were at that time. */
  actor_name: string
  subject_id: string | null
  subject_name: string | null
  details: Json
}

export interface WorkersTable {
  id: string
  /** The machine's name. */
  host: string
  slots: number
  started_at: Milliseconds
  /** When it is taken for dead unless it says otherwise before. */
  alive_until: Milliseconds
}

export interface EncryptionCheckTable {
  /** There is one row, 1. */
  id: number
  /** Encrypted, so that whoever opens it has the installation's keys. */
  value: Uint8Array
}
