/** A schedule as callers see it, and the request by which it queues runs. */
import type { Encryption } from '../../storage/encryption.ts'
import type { SchedulesTable } from '../../storage/tables/tables.ts'
import { toMemberErrors } from '../queue/queue-problems.ts'
import type { QueueRequest, RefusedRun } from '../queue/queue-request.ts'
import type { ScheduleOptions } from '../queue/run-options.ts'
import type { RunStatus } from '../runs/run-state.ts'
import type { Secrets } from '../workflows/secrets.ts'
import { type MissedPolicy, nextTimeOf, nextTimes, type Timing } from './schedule-times.ts'
import { secretsAad } from './schedules.sql.ts'

export type OverlapPolicy = 'allow' | 'skip' | 'queue' | 'cancelPrevious'

/** `request`: a caller or user paused it. `error`: its times or secrets cannot be read; the service's log says why. */
export type PausedReason = 'request' | 'workflowRemoved' | 'runInvalid' | 'browserContextRemoved' | 'error'

export type SkipReason = 'missed' | 'overlap' | 'queuedRunsLimit' | 'storageQuota'

/** Times are milliseconds since 1970. */
export interface Schedule extends ScheduleOptions {
  id: string
  name: string | null
  workflowId: string
  /** With every secret masked. */
  variables: Record<string, unknown>
  cron: string | null
  timeZone: string | null
  intervalSeconds: number | null
  missed: MissedPolicy
  overlap: OverlapPolicy
  pausedReason: PausedReason | null
  /** `null` if `pausedReason` says all. */
  pausedDetail: { kind: PausedReason; name?: string; message: string } | null
  /** At most `nextTimesMax`; empty while it is paused. */
  nextTimes: number[]
  /** The status is `null` when the run has been deleted. */
  lastRun: { id: string; scheduledFor: number; status: RunStatus | null } | null
  lastSkipped: { scheduledFor: number; reason: SkipReason } | null
  createdAt: number
  updatedAt: number
}

/** A validation error: a JSON Pointer into the request, and a detail. */
export interface ScheduleError {
  pointer: string
  detail: string
}

export const nextTimesMax = 5

export function toSchedule(row: SchedulesTable, statuses: ReadonlyMap<string, string>): Schedule {
  const { last_run_id, last_run_for, last_skipped_for } = row
  return {
    ...(JSON.parse(row.options) as ScheduleOptions),
    id: row.id,
    name: row.name,
    workflowId: row.workflow_id,
    variables: JSON.parse(row.variables),
    cron: row.cron,
    timeZone: row.time_zone,
    intervalSeconds: row.interval_seconds,
    missed: row.missed as MissedPolicy,
    overlap: row.overlap as OverlapPolicy,
    pausedReason: row.paused_reason as PausedReason | null,
    pausedDetail: toPauseDetail(row),
    nextTimes: readNextTimes(row),
    lastRun:
      last_run_id !== null && last_run_for !== null
        ? { id: last_run_id, scheduledFor: last_run_for, status: (statuses.get(last_run_id) as RunStatus) ?? null }
        : null,
    lastSkipped:
      last_skipped_for === null ? null : { scheduledFor: last_skipped_for, reason: row.last_skip_reason as SkipReason },
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

function toPauseDetail({ paused_reason, paused_detail: message, workflow_id, options }: SchedulesTable) {
  if (paused_reason === null || message === null) return null
  const kind = paused_reason as PausedReason
  const { browserContextId } = JSON.parse(options) as ScheduleOptions
  if (kind === 'workflowRemoved') return { kind, name: workflow_id, message }
  if (kind === 'browserContextRemoved' && browserContextId) return { kind, name: browserContextId, message }
  return { kind, message }
}

function readNextTimes(row: SchedulesTable): number[] {
  if (row.paused_reason !== null || row.next_at === null) return []
  return [row.next_at, ...nextTimes(nextTimeOf(timingOf(row)), row.next_at, nextTimesMax - 1)]
}

type TimingColumns = Pick<SchedulesTable, 'cron' | 'time_zone' | 'interval_seconds' | 'interval_starts_at'>

export function timingOf({ cron, time_zone, interval_seconds, interval_starts_at }: TimingColumns): Timing {
  if (interval_seconds !== null) return { intervalSeconds: interval_seconds, startsAt: interval_starts_at ?? 0 }
  return { cron: cron ?? '', timeZone: time_zone ?? '' }
}

/** The request that queues a run for a time, or for a caller if it is `null`, and the secrets of its variables. */
export function toQueueRequest(
  encryption: Encryption,
  row: Pick<SchedulesTable, 'id' | 'account_id' | 'workflow_id' | 'variables' | 'secrets' | 'options'>,
  time: number | null,
): { request: QueueRequest; secrets: Secrets } {
  const options: ScheduleOptions = JSON.parse(row.options)
  const request: QueueRequest = {
    ...options,
    workflowId: row.workflow_id,
    variables: JSON.parse(row.variables),
    schedule: { id: row.id, time },
  }
  const { secrets } = row
  const decrypt = (value: Uint8Array) => JSON.parse(encryption.decrypt(value, secretsAad(row.account_id, row.id)))
  return { request, secrets: secrets === null ? {} : decrypt(secrets) }
}

type Pause = { paused_reason: PausedReason; paused_detail: string }

/** Pauses a schedule whose times or secrets cannot be read. */
export const unreadable: Pause = { paused_reason: 'error', paused_detail: 'The service could not read the schedule.' }

const detailLengthMax = 1000

const pausedReasons: Partial<Record<RefusedRun['kind'], PausedReason>> = {
  noSuchWorkflow: 'workflowRemoved',
  noSuchBrowserContext: 'browserContextRemoved',
}

/** Why a schedule is paused whose runs would be refused. */
export function toPause(refused: RefusedRun): Pause {
  const texts = toMemberErrors(refused).map(({ pointer, detail }) => `${pointer} ${detail}`)
  return {
    paused_reason: pausedReasons[refused.kind] ?? 'runInvalid',
    paused_detail: texts.join('; ').slice(0, detailLengthMax),
  }
}
