/** The filter of the list of runs, as the page's query has it. */
import type { ListRequest } from '../../../domain/runs/run-reader.ts'
import type { RunStatus } from '../../../domain/runs/run-state.ts'
import { statusOptions } from './run-labels.ts'

export interface RunFilter {
  workflow: string
  status: string
  /** First and last day in UTC, such as 2026-01-31. */
  from: string
  until: string
}

const unfinished: readonly RunStatus[] = ['queued', 'running']

export const statusFilterOptions = [
  { value: '', title: 'All statuses' },
  { value: 'unfinished', title: 'Unfinished' },
  ...statusOptions,
]

/** Ignores unknown statuses and invalid days. */
export function parseRunFilter(query: URLSearchParams): RunFilter {
  const status = query.get('status') ?? ''
  const parseDay = (name: string) => (startOfDay(query.get(name) ?? '') === undefined ? '' : (query.get(name) ?? ''))
  return {
    workflow: query.get('workflow') ?? '',
    status: statusFilterOptions.some(({ value }) => value === status) ? status : '',
    from: parseDay('from'),
    until: parseDay('until'),
  }
}

export function toListRequest(filter: RunFilter): Omit<ListRequest, 'limit' | 'cursor'> {
  const { workflow, status, from, until } = filter
  const lastDay = startOfDay(until)
  return {
    workflowId: workflow || undefined,
    status: status === 'unfinished' ? unfinished : (status as RunStatus) || undefined,
    createdAfter: startOfDay(from),
    createdBefore: lastDay === undefined ? undefined : lastDay + dayMilliseconds,
  }
}

export function toRunQuery(filter: RunFilter, cursor = ''): string {
  return new URLSearchParams(Object.entries({ ...filter, cursor }).filter(([, value]) => value !== '')).toString()
}

export function isEmptyFilter(filter: RunFilter): boolean {
  return Object.values(filter).every((value) => value === '')
}

const dayMilliseconds = 24 * 60 * 60 * 1000

function startOfDay(day: string): number | undefined {
  const at = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(`${day}T00:00:00Z`) : Number.NaN
  // `Date.parse` turns 30 February into 2 March.
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(day) ? at : undefined
}
