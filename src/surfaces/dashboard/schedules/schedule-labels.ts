/** How pages describe a schedule. */

import type { OverlapPolicy, PausedReason, Schedule, SkipReason } from '../../../domain/schedules/schedule.ts'
import type { MissedPolicy } from '../../../domain/schedules/schedule-times.ts'
import { formatDuration } from '../format.ts'
import { badge, type Html, html } from '../html.ts'

export function schedulePath({ id }: Pick<Schedule, 'id'>): string {
  return `/schedules/${id}`
}

export function scheduleTitle({ name, workflowId }: Pick<Schedule, 'name' | 'workflowId'>): string {
  return name ?? workflowId
}

export function scheduleBadge({ pausedReason }: Schedule): Html {
  if (pausedReason === null) return badge('good', 'Active')
  return pausedReason === 'request' ? badge('quiet', 'Paused') : badge('bad', 'Paused')
}

export function renderTiming({ cron, timeZone, intervalSeconds }: Schedule): Html {
  if (cron === null) return html`every ${formatDuration((intervalSeconds ?? 0) * 1000)}`
  return html`<div class="stack"><code>${cron}</code> <small>${timeZone ?? ''}</small></div>`
}

export const missedLabels: Record<MissedPolicy, string> = {
  skip: 'Get no runs',
  runOnce: 'The latest gets a run',
  runAll: 'Each gets a run, at most the latest 100',
}

export const overlapLabels: Record<OverlapPolicy, string> = {
  allow: 'Queue the run, too',
  skip: 'Leave the time out',
  queue: 'Wait until the run has ended',
  cancelPrevious: 'Cancel the unfinished run',
}

export const skipLabels: Record<SkipReason, string> = {
  missed: 'missed',
  overlap: 'an earlier run had not ended',
  queuedRunsLimit: 'the account had reached its limit of queued runs',
  storageQuota: 'the account had reached its storage quota',
}

export const pausedMessages: Record<PausedReason, string> = {
  request: 'This schedule is paused. Times that pass get no runs.',
  workflowRemoved: 'This schedule was paused: its workflow is no longer deployed.',
  runInvalid:
    'This schedule was paused: the current version of its workflow refuses its runs. Edit it, then resume it.',
  browserContextRemoved: 'This schedule was paused: its browser context was deleted.',
  error: 'This schedule was paused: the service could not read it. Its log says why.',
}
