/** The filter of the list of runs, as the page's query has it. */
import type { ListRequest } from '../../../domain/run-api/list-request.ts'
import type { RunStatus } from '../../../domain/runs/run-state.ts'
import { parseLocalTime, parseZone } from '../format.ts'
import { statusOptions } from './run-labels.ts'

export interface RunFilter {
  /** The id or its end, a workflow, a tag, or text of the error. */
  search: string
  workflow: string
  /** Any of these; empty for all. */
  statuses: RunStatus[]
  /** When the run was queued, from and before this time, such as `2026-01-31T09:30` in the time zone. */
  from: string
  until: string
  zone: string
}

const searchLengthMax = 200

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
    search: (query.get('search') ?? '').trim().slice(0, searchLengthMax),
    workflow: query.get('workflow') ?? '',
    statuses: allStatuses.filter((status) => chosen.includes(status)),
    from: parseTime('from'),
    until: parseTime('until'),
    zone,
  }
}

export function toListRequest(filter: RunFilter): Omit<ListRequest, 'limit' | 'cursor'> {
  const { search, workflow, statuses, from, until, zone } = filter
  return {
    search: search || undefined,
    workflowId: workflow || undefined,
    status: statuses.length > 0 ? statuses : undefined,
    createdAfter: parseLocalTime(from, zone),
    createdBefore: parseLocalTime(until, zone),
  }
}

export function toRunQuery(filter: Partial<RunFilter>, cursor = ''): string {
  const { search = '', workflow = '', statuses = [], from = '', until = '', zone = '' } = filter
  const values = [
    ['search', search],
    ['workflow', workflow],
    ...statuses.map((status) => ['status', status]),
    ['from', from],
    ['until', until],
    ['zone', from || until ? zone : ''],
    ['cursor', cursor],
  ]
  return new URLSearchParams(values.filter(([, value]) => value !== '')).toString()
}

export function isEmptyFilter({ search, workflow, statuses, from, until }: RunFilter): boolean {
  return search === '' && workflow === '' && statuses.length === 0 && from === '' && until === ''
}
