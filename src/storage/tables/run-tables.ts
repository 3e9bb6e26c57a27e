/** Row types of runs, of their events, steps and artifacts, of what they are found by, and of their statistics. */
import type { Generated } from 'kysely'
import type { Flag, Json, Milliseconds } from './tables.ts'

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
  /** Number of claims. That of the latest one is its fencing token. */
  attempts: number
  /** Number of failed attempts, which the workflow's retry policy limits. */
  failures: number
  /** Number of attempts that ended because their worker was lost. */
  losses: number
  /** When the latest attempt started. `null` before the first one. */
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
   * For what a queued run waits outside of the index of ready runs: another run has leased its browser context, or its
   * concurrency group is at its limit. Empty otherwise: SQLite counts from the index only with an equality. For what a
   * run with the status `waiting` waits.
   */
  waiting_for: 'browserContext' | 'concurrencyGroup' | 'signIn' | WaitKind | ''
  /** Account, workflow and concurrency key; `null` for a run of a workflow without a limit per key. */
  concurrency_group: string | null
  /** The caller's `traceparent` (W3C Trace Context); `null` without tracing. */
  trace_context: string | null
  /** The deployment that validated the run and executes it; `null` in tests without deployments. */
  deployment_id: string | null
  /** Why the run's worker could not get its deployment the last time; `null` if that never happened. */
  deployment_problem: Json | null
  /** An array; `null` for a run without tags. */
  tags: Json | null
  schedule_id: string | null
  /** The time of the schedule that the run is for; `null` for a run that a caller started. */
  scheduled_for: Milliseconds | null
  /** The run that this one repeats. */
  rerun_of: string | null
  /** The run that called this one. */
  parent_run_id: string | null
  /** 1 if the next or the running part continues the attempt before a wait. */
  continues: Flag
  /** Claims that count as no attempt, but have fencing tokens: parts that continued one, and runs that were handed back. */
  continuations: number
  /** For how long the earlier parts of the attempt have executed. */
  executed_ms: Milliseconds
  /** For how long all attempts together have executed, for usage. Not those that were handed back. */
  total_executed_ms: Milliseconds
  /** 1 if the run has reached a wait. */
  has_waits: Flag
  /** If the run signs its browser context in, or checks whether it is signed in; `null` for all others. */
  signs_in: SignInKind | null
}

/** By the clock, by the workflow, or by a person in the dashboard. */
export type SignInKind = 'check' | 'signIn' | 'byHand'

/** An end of a period, an answer from outside, or the end of a called run. */
export type WaitKind = 'sleep' | 'answer' | 'run'

/** `cancelled`: the run ended before. */
export type WaitStatus = 'open' | 'completed' | 'timedOut' | 'cancelled'

export interface RunWaitsTable {
  run_id: string
  name: string
  /** A UUID of version 7, the order of lists. */
  id: string
  account_id: string
  workflow_id: string
  kind: WaitKind
  status: WaitStatus
  /** `null` if the answer came before the run reached the wait. */
  reached_at: Milliseconds | null
  deadline: Milliseconds | null
  completed_at: Milliseconds | null
  /** Who answered: `{"apiKeyId"}`, `{"userId"}` or `{"link"}`, the id of a link. */
  completed_by: Json | null
  /** 1 if the run has got the outcome. */
  delivered: Flag
  child_run_id: string | null
  /** 1 if the called run goes on when its caller is cancelled. */
  is_detached: Flag
  title: string | null
  /** What the author shows to the person who answers, with secrets masked. */
  shown: Json | null
  /** The answer, encrypted. */
  value: Uint8Array | null
}

export interface WaitLinksTable {
  /** SHA-256 of the token. */
  hash: Uint8Array
  id: string
  account_id: string
  run_id: string
  name: string
  created_at: Milliseconds
  expires_at: Milliseconds
  used_at: Milliseconds | null
  /** Who made the link. */
  api_key_id: string | null
  user_id: string | null
}

/** Its columns of JSON text. */
export const jsonOfRuns: readonly (keyof RunsTable)[] = [
  'attempt_ends',
  'tags',
  'progress',
  'error',
  'variables',
  'output',
]

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
  /** Steps of a run are ordered by this, then by name. */
  position: number
}

/** Terms by which runs are found: `tag:` and a tag, or `error:` and a word. Each has two rows, which differ in scope. */
export interface RunTermsTable {
  account_id: string
  term: string
  /** '' or the workflow's id. */
  scope: string
  /** The run's status, which a trigger keeps up to date. */
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

/** What the runs of a workflow used that finished on a day. */
export interface RunUsageTable {
  account_id: string
  /** A date in UTC, such as `2026-11-27`. */
  day: string
  workflow_id: string
  succeeded: number
  failed: number
  timed_out: number
  cancelled: number
  expired: number
  attempts: number
  executed_ms: Milliseconds
  browser_ms: Milliseconds
  artifact_bytes: number
}

export interface RunRollupProgressTable {
  /** Always 1: the table has one row. */
  id: number
  /** Runs that finished up to this time are in the rollups. */
  finished_until: Milliseconds
}

/** A throttle at its rate. */
export interface ThrottlesTable {
  /** The workflow, the account and workflow, or the concurrency group whose starts are counted. */
  id: string
  /** The rate by which the next start was computed: a later deployment may have another. */
  limit_count: number
  period_seconds: number
  /** When the next run may start. */
  permits_at: Milliseconds
}

/** One of the latest starts of a throttle. */
export interface ThrottleStartsTable {
  throttle_id: string
  /** Counts the starts of the throttle without gaps. */
  number: number
  started_at: Milliseconds
  /** The end of the period in which it counts. */
  expires_at: Milliseconds
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
  /** Empty if there is a blob. */
  content: Uint8Array
  /** The key of the blob with the content. */
  blob: string | null
}

/** A file that runs take as a variable. */
export interface FilesTable {
  id: string
  account_id: string
  name: string
  media_type: string
  /** `uploading`, `ready`, or `deleted` until its parts are deleted. Only a ready file is visible. */
  status: string
  /** Of the parts that are stored. */
  size_bytes: number
  /** In hexadecimal; `null` before the upload is complete. */
  sha256: string | null
  created_at: Milliseconds
  /** When maintenance deletes it, unless a run or a schedule refers to it. */
  expires_at: Milliseconds
}

export interface FilePartsTable {
  file_id: string
  /** Of its first byte in the file. */
  position: number
  size_bytes: number
  /** The key of the blob with the content. */
  blob: string | null
  /** Empty if there is a blob. */
  content: Uint8Array
}

/** A file to which the variables of a run refer. */
export interface RunFilesTable {
  run_id: string
  file_id: string
}

/** A file to which the variables of a schedule refer. */
export interface ScheduleFilesTable {
  schedule_id: string
  file_id: string
}

/** Blobs to which no row refers. */
export interface UnusedBlobsTable {
  key: string
  delete_after: Milliseconds
}

/** A dashboard process that wants the screencast of a run. */
export interface LiveViewsTable {
  id: string
  run_id: string
  /** The URL by which workers reach the process. */
  address: string
  /** The process extends it while someone watches. */
  expires_at: Milliseconds
}
