/** A bulk action as callers see it, and the runs that it concerns. */
import type { RunFilter } from '../../storage/run-list.ts'
import type { BulkActionsTable } from '../../storage/tables/bulk-action-tables.ts'
import { type ListRequest, toRunFilter } from '../runs/list-request.ts'
import { isFinal, type RunStatus, transitions } from '../runs/run-state.ts'

export type BulkActionKind = 'cancel' | 'rerun'

/** Filters of `listRuns`, as the caller gave them. */
export interface BulkFilter
  extends Omit<ListRequest, 'createdAfter' | 'createdBefore' | 'search' | 'order' | 'limit' | 'cursor'> {
  createdAfter?: string | undefined
  createdBefore?: string | undefined
}

/** Times are milliseconds since 1970. */
export interface BulkAction {
  id: string
  kind: BulkActionKind
  filter: BulkFilter
  status: 'working' | 'waiting' | 'finished'
  waitsFor: 'queuedRunsLimit' | 'storageQuota' | null
  matched: number
  done: number
  skipped: number
  failed: number
  firstFailure: { runId: string; detail: string } | null
  limitReached: boolean
  createdAt: number
  finishedAt: number | null
}

export function toBulkAction(row: BulkActionsTable): BulkAction {
  const isFinished = row.finished_at !== null
  return {
    id: row.id,
    kind: row.kind as BulkActionKind,
    filter: JSON.parse(row.filter),
    status: isFinished ? 'finished' : row.waits_for === null ? 'working' : 'waiting',
    waitsFor: row.waits_for as BulkAction['waitsFor'],
    matched: row.matched,
    done: row.done,
    skipped: row.skipped,
    failed: row.failed,
    firstFailure: row.first_failure === null ? null : JSON.parse(row.first_failure),
    limitReached: row.limit_reached === 1,
    createdAt: row.created_at,
    finishedAt: row.finished_at,
  }
}

export function toListRequest({ createdAfter, createdBefore, ...filter }: BulkFilter): ListRequest {
  const parse = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text))
  const times = { createdAfter: parse(createdAfter), createdBefore: parse(createdBefore) }
  return { ...filter, ...times, order: 'oldestFirst', limit: 1 }
}

const allStatuses = Object.keys(transitions) as RunStatus[]

/** Statuses of runs that the action can change. */
export function changeableStatuses(kind: BulkActionKind): RunStatus[] {
  return allStatuses.filter((each) => isFinal(each) === (kind === 'rerun'))
}

/** The runs that are left: without a status in the filter, those that the action can change. */
export function remainingRuns(row: Pick<BulkActionsTable, 'id' | 'kind' | 'filter' | 'last_run_id'>): RunFilter {
  const request = toListRequest(JSON.parse(row.filter))
  const status = request.status ?? changeableStatuses(row.kind as BulkActionKind)
  const filter = toRunFilter({ ...request, status }, row.last_run_id ?? undefined)
  const before = filter.before !== undefined && filter.before < row.id ? filter.before : row.id
  return { ...filter, before }
}
