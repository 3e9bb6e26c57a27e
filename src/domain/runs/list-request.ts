/** What a list of runs is filtered by, and which filters can be combined. */
import type { RunFilter, RunSelector } from '../../storage/run-list.ts'
import { tagTerm } from '../../storage/run-terms.ts'
import { firstIdAt } from './run.ts'
import { type RunStatus, transitions } from './run-state.ts'

export interface ListRequest {
  workflowId?: string | undefined
  /** Any of these. */
  status?: RunStatus | readonly RunStatus[] | undefined
  /** Any of these, at most 10. */
  tag?: readonly string[] | undefined
  browserContextId?: string | undefined
  createdAfter?: number | undefined
  createdBefore?: number | undefined
  limit: number
  cursor?: string | undefined
}

const allStatuses = Object.keys(transitions) as RunStatus[]

/** Each has an index of its own, and no index has two of them. */
const selectors = ['browserContextId', 'tag'] as const

/** A parameter that cannot be combined with another one of the request. */
export function findConflict(request: ListRequest): { parameter: string; detail: string } | undefined {
  const [first, second] = selectors.filter((name) => request[name] !== undefined)
  return second && { parameter: second, detail: `cannot be combined with ${first}` }
}

/** Identifies the list, for its cursors: sorted, so that a cursor fits the same statuses and tags in another order. */
export function nameList(accountId: string, request: ListRequest): string {
  const { workflowId, status, tag, createdAfter, createdBefore } = request
  const browserContextId = request.browserContextId?.toLowerCase()
  const statuses = status === undefined ? undefined : [...new Set([status].flat())].sort()
  const tags = tag?.toSorted()
  return JSON.stringify(['runs', accountId, workflowId, statuses, createdAfter, createdBefore, browserContextId, tags])
}

/** @param after the id of the previous page's last run. */
export function toRunFilter(request: ListRequest, after: string | undefined): RunFilter {
  const { workflowId, status, createdAfter, createdBefore } = request
  const before = [after, createdBefore === undefined ? undefined : firstIdAt(createdBefore)]
  return {
    selector: selectorOf(request),
    workflowId,
    statuses: status === undefined ? allStatuses : [status].flat(),
    from: createdAfter === undefined ? undefined : firstIdAt(createdAfter),
    before: before.filter((id) => id !== undefined).sort()[0],
  }
}

function selectorOf({ browserContextId, tag }: ListRequest): RunSelector {
  if (browserContextId !== undefined) return { by: 'context', contextId: browserContextId.toLowerCase() }
  if (tag !== undefined) return { by: 'terms', terms: tag.map(tagTerm) }
  return { by: 'account' }
}
