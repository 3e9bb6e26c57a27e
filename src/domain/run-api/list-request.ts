/** The filters of a list of runs, and which of them can be combined. */
import type { RunFilter, RunSelector } from '../../storage/runs/run-list.ts'
import { errorTerm, tagTerm } from '../../storage/runs/run-terms.ts'
import { errorWords } from '../queue/attempt-history.ts'
import { firstIdAt } from '../runs/run.ts'
import { type RunReason, type RunStatus, transitions } from '../runs/run-state.ts'

export interface ListRequest {
  workflowId?: string | undefined
  status?: RunStatus | readonly RunStatus[] | undefined
  /** Any of these, at most 10. */
  tag?: readonly string[] | undefined
  browserContextId?: string | undefined
  reason?: RunReason | undefined
  apiKeyId?: string | undefined
  scheduleId?: string | undefined
  parentRunId?: string | undefined
  /** One word of the error's name or message. */
  errorWord?: string | undefined
  /** A tag, or text of the error, whose longest word is searched. */
  search?: string | undefined
  createdAfter?: number | undefined
  createdBefore?: number | undefined
  /** Default: newest first. */
  order?: 'newestFirst' | 'oldestFirst' | undefined
  limit: number
  cursor?: string | undefined
}

const allStatuses = Object.keys(transitions) as RunStatus[]

/** Each has its own index, and no index covers two of them. */
const selectors = ['browserContextId', 'tag', 'reason', 'apiKeyId', 'scheduleId', 'parentRunId', 'errorWord'] as const

/** Validation errors of the filters: combinations that no index answers, and text that is not one word. */
export function findListErrors(request: ListRequest): { parameter: string; detail: string }[] {
  const [first, ...others] = selectors.filter((name) => request[name] !== undefined)
  const errors = others.map((parameter) => ({ parameter, detail: `cannot be combined with ${first}` }))
  for (const parameter of ['apiKeyId', 'scheduleId', 'parentRunId'] as const) {
    if (request[parameter] === undefined || request.workflowId === undefined) continue
    errors.push({ parameter, detail: 'cannot be combined with workflowId' })
  }
  if (request.errorWord !== undefined && wordOf(request.errorWord) === undefined) {
    errors.push({ parameter: 'errorWord', detail: 'must be one word of letters, digits and _' })
  }
  return errors
}

function wordOf(text: string): string | undefined {
  const [word, ...others] = errorWords(text)
  return others.length === 0 && word === text.toLowerCase() ? word : undefined
}

/** Identifies the list, for its cursors: sorted, so that a cursor fits the same statuses and tags in another order. */
export function nameList(accountId: string, request: ListRequest): unknown[] {
  const {
    workflowId,
    status,
    tag,
    createdAfter,
    createdBefore,
    reason,
    errorWord,
    search,
    order = 'newestFirst',
  } = request
  const [browserContextId, apiKeyId] = [request.browserContextId?.toLowerCase(), request.apiKeyId?.toLowerCase()]
  // Lists of other filters keep their names, and so their cursors.
  const scheduled = request.scheduleId === undefined ? [] : [request.scheduleId.toLowerCase()]
  if (request.parentRunId !== undefined) scheduled.push('parent', request.parentRunId.toLowerCase())
  const statuses = status === undefined ? undefined : [...new Set([status].flat())].sort()
  const tags = tag?.toSorted()
  const times = [createdAfter, createdBefore]
  const selected = [browserContextId, tags, reason, apiKeyId, errorWord?.toLowerCase(), search]
  return ['runs', accountId, workflowId, statuses, ...times, ...selected, order, ...scheduled]
}

/** @param after the id of the previous page's last run. */
export function toRunFilter(request: ListRequest, after: string | undefined): RunFilter {
  const { workflowId, status, createdAfter, createdBefore, order = 'newestFirst' } = request
  const from = createdAfter === undefined ? undefined : firstIdAt(createdAfter)
  const before = createdBefore === undefined ? undefined : firstIdAt(createdBefore)
  const isAscending = order === 'oldestFirst'
  return {
    selector: selectorOf(request),
    workflowId,
    statuses: status === undefined ? allStatuses : [status].flat(),
    // The id with a space appended sorts directly after the id, so the bound excludes the run itself.
    from: isAscending && after !== undefined ? `${after} ` : from,
    before: !isAscending && after !== undefined ? after : before,
    order,
  }
}

function selectorOf({
  browserContextId,
  tag,
  reason,
  apiKeyId,
  scheduleId,
  parentRunId,
  errorWord,
  search,
}: ListRequest): RunSelector {
  if (browserContextId !== undefined) return { by: 'context', contextId: browserContextId.toLowerCase() }
  if (tag !== undefined) return { by: 'terms', terms: tag.map(tagTerm) }
  if (reason !== undefined) return { by: 'reason', reason }
  if (apiKeyId !== undefined) return { by: 'apiKey', apiKeyId: apiKeyId.toLowerCase() }
  if (scheduleId !== undefined) return { by: 'schedule', scheduleId: scheduleId.toLowerCase() }
  if (parentRunId !== undefined) return { by: 'parent', parentRunId: parentRunId.toLowerCase() }
  if (errorWord !== undefined) return { by: 'terms', terms: [errorTerm(wordOf(errorWord) ?? '')] }
  if (search !== undefined) return { by: 'terms', terms: searchTerms(search) }
  return { by: 'account' }
}

/** The document's pattern. Other text is not searched as a tag: PostgreSQL refuses some characters, such as U+0000. */
const tagPattern = /^[A-Za-z0-9._:/@=-]{1,64}$/

function searchTerms(text: string): string[] {
  const [word] = errorWords(text).sort((a, b) => b.length - a.length)
  const terms = word === undefined ? [] : [errorTerm(word)]
  // Text without words searches for the empty tag, which no run has.
  if (tagPattern.test(text) || word === undefined) terms.push(tagTerm(tagPattern.test(text) ? text : ''))
  return terms
}
