/** Row type of bulk actions. */
import type { Flag, Json, Milliseconds } from './column-values.ts'

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
