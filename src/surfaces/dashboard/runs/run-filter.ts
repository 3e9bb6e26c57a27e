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
  /** The run that has called the runs. Without a search and a workflow, which no index combines with it. */
  parent: string
}

const runId = /^[0-9a-f-]{36}$/
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
  const parent = query.get('parent') ?? ''
  const isOfParent = runId.test(parent)
  return {
    parent: isOfParent ? parent : '',
    search: isOfParent ? '' : (query.get('search') ?? '').trim().slice(0, searchLengthMax),
    workflow: isOfParent ? '' : (query.get('workflow') ?? ''),
    statuses: allStatuses.filter((status) => chosen.includes(status)),
    from: parseTime('from'),
    until: parseTime('until'),
    zone,
  }
}

export function toListRequest(filter: RunFilter): Omit<ListRequest, 'limit' | 'cursor'> {
  const { search, workflow, statuses, from, until, zone, parent } = filter
  return {
    parentRunId: parent || undefined,
    search: search || undefined,
    workflowId: workflow || undefined,
    status: statuses.length > 0 ? statuses : undefined,
    createdAfter: parseLocalTime(from, zone),
    createdBefore: parseLocalTime(until, zone),
  }
}

export function toRunQuery(filter: Partial<RunFilter>, cursor = ''): string {
  const { search = '', workflow = '', statuses = [], from = '', until = '', zone = '', parent = '' } = filter
  const values = [
    ['parent', parent],
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

export function isEmptyFilter({ statuses, ...texts }: RunFilter): boolean {
  const { search, workflow, from, until, parent } = texts
  return statuses.length === 0 && [search, workflow, from, until, parent].every((text) => text === '')
}
