/** The filter of the list of runs, as the page's query has it. */
import type { ListRequest } from '../../../domain/runs/list-request.ts'
import type { RunStatus } from '../../../domain/runs/run-state.ts'
import { parseLocalTime, parseZone } from '../time-zone.ts'
import { statusOptions } from './run-labels.ts'

export interface RunFilter {
  workflow: string
  /** Any of these; empty for all. */
  statuses: RunStatus[]
  /** When the run was queued, from and before this time, such as `2026-01-31T09:30` in the time zone. */
  from: string
  until: string
  zone: string
}

const allStatuses = statusOptions.map(({ value }) => value)

/** Ignores unknown statuses and invalid times. */
export function parseRunFilter(query: URLSearchParams): RunFilter {
  const chosen = query.getAll('status')
  const zone = parseZone(query.get('zone') ?? '')
  const parseTime = (name: string) => {
    const text = query.get(name) ?? ''
    return parseLocalTime(text, zone) === undefined ? '' : text
  }
  return {
    workflow: query.get('workflow') ?? '',
    statuses: allStatuses.filter((status) => chosen.includes(status)),
    from: parseTime('from'),
    until: parseTime('until'),
    zone,
  }
}

export function toListRequest(filter: RunFilter): Omit<ListRequest, 'limit' | 'cursor'> {
  const { workflow, statuses, from, until, zone } = filter
  return {
    workflowId: workflow || undefined,
    status: statuses.length > 0 ? statuses : undefined,
    createdAfter: parseLocalTime(from, zone),
    createdBefore: parseLocalTime(until, zone),
  }
}

export function toRunQuery(filter: Partial<RunFilter>, cursor = ''): string {
  const { workflow = '', statuses = [], from = '', until = '', zone = '' } = filter
  const values = [
    ['workflow', workflow],
    ...statuses.map((status) => ['status', status]),
    ['from', from],
    ['until', until],
    ['zone', from || until ? zone : ''],
    ['cursor', cursor],
  ]
  return new URLSearchParams(values.filter(([, value]) => value !== '')).toString()
}

export function isEmptyFilter({ workflow, statuses, from, until }: RunFilter): boolean {
  return workflow === '' && statuses.length === 0 && from === '' && until === ''
}
