/** Row type of schedules. */
import type { Flag, Json, Milliseconds } from './column-values.ts'

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
