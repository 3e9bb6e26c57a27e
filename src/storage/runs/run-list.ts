/** Finds, lists and counts runs by filters. */

import { inList } from '../statement-values.ts'
import { type Statement, statement, type Transaction, type Value } from '../store.ts'
import { finished, hasArtifacts, type RunToRead, runBytes } from './run-statements.ts'

/** What the runs of a list have in common. Each has an index that orders the runs of a status by id. */
export type RunSelector =
  | { by: 'account' }
  | { by: 'context'; contextId: string }
  /** Runs with any of these terms, at most 10. */
  | { by: 'terms'; terms: readonly string[] }
  | { by: 'reason'; reason: string }
  /** Not with a workflow. */
  | { by: 'apiKey'; apiKeyId: string }
  /** Not with a workflow. */
  | { by: 'schedule'; scheduleId: string }
  /** The runs that this one has called. Not with a workflow. */
  | { by: 'parent'; parentRunId: string }

export interface RunFilter {
  selector: RunSelector
  workflowId?: string | undefined
  /** Any of these. */
  statuses: readonly string[]
  /** The lowest id. */
  from?: string | undefined
  /** Ids before this one. */
  before?: string | undefined
  order?: 'newestFirst' | 'oldestFirst' | undefined
}

/** The size is `null` for a run of another account, whose browser context, API key, schedule or caller the request names. */
type ListedRun = { id: string; size_bytes: number | null }

/** Of runs that are in the queue or with a worker: those of all other statuses share their indexes. */
const activeStatuses = ['queued', 'running']
const listedStatuses = [...activeStatuses, 'waiting', 'succeeded', 'failed', 'timedOut', 'cancelled', 'expired']

/** Sort before and after every id. */
const [firstId, lastId] = ['', '~']

/** Determines the text of the statement. */
interface Shape {
  by: RunSelector['by']
  byWorkflow: boolean
  direction: 'ASC' | 'DESC'
  /** Number of terms; 1 without any. */
  slots: number
}

/** The query of the runs of one status, for one term. */
interface StatusQuery {
  table: 'runs' | 'run_terms'
  /** Columns that equal values of the same name. */
  columns: (keyof Given)[]
  /** Redundant, but the condition of the partial index. */
  condition: string
  /**
   * The expression by which the index of the filter ends. For ORDER BY id, PostgreSQL, which plans without knowing the
   * values, walked the primary key past every run of other contexts and statuses: 0.6 s for a status without runs among
   * a million. Running runs are few, and are sorted.
   */
  order: string
}

interface Given {
  account_id: string
  workflow_id: string
  browser_context_id: string
  reason: string
  api_key_id: string
  schedule_id: string
  parent_run_id: string
  term: string
  scope: string
}

function queryOf(status: string, { by, byWorkflow }: Shape): StatusQuery {
  const isActive = activeStatuses.includes(status)
  const condition = isActive ? '' : finished
  const workflow = byWorkflow ? (['workflow_id'] as const) : []
  const hidden = "(id || '')"
  const ofAccount = status === 'running' ? hidden : 'id'
  switch (by) {
    case 'account':
      return { table: 'runs', columns: ['account_id', ...workflow], condition, order: ofAccount }
    case 'context': {
      const order = byWorkflow ? '(workflow_id || id)' : hidden
      return { table: 'runs', columns: ['browser_context_id', ...workflow], condition: '', order }
    }
    case 'terms':
      return { table: 'run_terms', columns: ['account_id', 'term', 'scope'], condition: '', order: 'run_id' }
    case 'reason': {
      const order = byWorkflow ? '(workflow_id || id)' : hidden
      return { table: 'runs', columns: ['account_id', 'reason', ...workflow], condition: '', order }
    }
    case 'apiKey': {
      // The queued runs of the account are at most QUEUED_RUNS_MAX, whichever key queued them.
      const columns = isActive ? (['account_id', 'api_key_id'] as const) : (['api_key_id'] as const)
      return { table: 'runs', columns: [...columns], condition, order: isActive ? ofAccount : hidden }
    }
    case 'schedule':
      return { table: 'runs', columns: ['schedule_id'], condition: '', order: hidden }
    case 'parent':
      return { table: 'runs', columns: ['parent_run_id'], condition: '', order: hidden }
  }
}

/**
 * Each status has its own query, since no index orders several statuses by id. A parameter switches it off: with a
 * text for each combination of statuses, preparing the statement would take longer than executing it. Only the runs of
 * the page are read from the table.
 */
function listStatement(shape: Shape): Statement<ListedRun> {
  const { direction, slots } = shape
  const firstOf = (status: string, slot: number) => {
    const { table, columns, condition, order } = queryOf(status, shape)
    const equal = columns.map((column) => `${column} = ?`)
    const conditions = [...equal, `status = '${status}'`, ...(condition ? [condition] : [])]
    return `SELECT * FROM (SELECT ${table === 'runs' ? 'id' : 'run_id'} AS listed_id FROM ${table}
      WHERE CAST(? AS INTEGER) = 1 AND ${conditions.join(' AND ')} AND ${order} >= ? AND ${order} < ?
      ORDER BY ${order} ${direction} LIMIT ?) AS ${status}_${slot}`
  }
  const queries = Array.from({ length: slots }, (_, slot) => listedStatuses.map((status) => firstOf(status, slot)))
  // A subquery for each run of the page: a join planned with an empty table could read the whole primary key.
  return statement(`SELECT listed_id AS id, (SELECT ${runBytes} FROM runs WHERE id = listed_id AND account_id || '' = ?) AS size_bytes
    FROM (SELECT ${slots > 1 ? 'DISTINCT listed_id' : '*'} FROM (${queries.flat().join(' UNION ALL ')}) AS first
      ORDER BY listed_id ${direction} LIMIT ?) AS page ORDER BY listed_id ${direction}`)
}

interface ListStatements {
  /** The ids and sizes of runs. */
  sizes: Statement<ListedRun>
  /** The same, with the rows of small runs. By the store's join, since a process may have opened both stores. */
  runs: Map<string, Statement<ListedRun>>
}

const listStatements = new Map<string, ListStatements>()

/** Numbers of terms that have a statement. The terms of a list are repeated up to the next of them. */
const slotCounts = [1, 2, 10]

interface ListQuery {
  list: Statement<ListedRun>
  values: Value[]
}

/** @param small reads the rows of runs up to this size, too. */
export function listQuery(
  accountId: string,
  { selector, workflowId, statuses, from = firstId, before = lastId, order }: RunFilter,
  limit: number,
  small?: { join: string; bytesMax: number },
): ListQuery {
  const terms = selector.by === 'terms' ? selector.terms : ['']
  const shape: Shape = {
    by: selector.by,
    byWorkflow: workflowId !== undefined,
    direction: order === 'oldestFirst' ? 'ASC' : 'DESC',
    slots: slotCounts.find((count) => count >= terms.length) ?? terms.length,
  }
  const key = JSON.stringify(shape)
  const known = listStatements.get(key) ?? { sizes: listStatement(shape), runs: new Map() }
  listStatements.set(key, known)
  const given: Given = {
    account_id: accountId,
    workflow_id: workflowId ?? '',
    browser_context_id: selector.by === 'context' ? selector.contextId : '',
    reason: selector.by === 'reason' ? selector.reason : '',
    api_key_id: selector.by === 'apiKey' ? selector.apiKeyId : '',
    schedule_id: selector.by === 'schedule' ? selector.scheduleId : '',
    parent_run_id: selector.by === 'parent' ? selector.parentRunId : '',
    term: '',
    scope: workflowId ?? '',
  }
  const values = Array.from({ length: shape.slots }, (_, slot) => {
    const ofSlot = { ...given, term: terms[slot] ?? '' }
    return listedStatuses.flatMap((status): Value[] => {
      const query = queryOf(status, shape)
      const prefix = query.order.startsWith('(workflow_id') ? workflowId : ''
      const isOn = statuses.includes(status) && slot < terms.length
      const equal = query.columns.map((column) => ofSlot[column])
      return [isOn ? 1 : 0, ...equal, `${prefix}${from}`, `${prefix}${before}`, limit]
    })
  })
  const sizes = { list: known.sizes, values: [accountId, ...values.flat(), limit] }
  if (!small) return sizes
  const list = known.runs.get(small.join) ?? withSmallRuns(known.sizes, small.join, shape)
  known.runs.set(small.join, list)
  return { list, values: [...sizes.values, small.bytesMax] }
}

function withSmallRuns({ sql }: Statement, join: string, { direction }: Shape): Statement<ListedRun> {
  return statement(`SELECT runs.*, page.id AS listed_id, page.size_bytes, ${hasArtifacts('page.id')}
    FROM (${sql}) AS page ${join} ORDER BY page.id ${direction}`)
}

/** No index has the ends of ids. Of each status, those of the newest runs are compared: 9 ms for 50,000 with SQLite. */
const comparedRunsMax = 10_000

/** With the account and the pattern, for each status. */
export const findByEndOfId = statement<{ id: string }>(
  `${listedStatuses
    .map((status) => {
      const { condition, order } = queryOf(status, { by: 'account', byWorkflow: false, direction: 'DESC', slots: 1 })
      return `SELECT id FROM (SELECT id FROM runs WHERE account_id = ? AND status = '${status}' ${condition && `AND ${condition}`}
        ORDER BY ${order} DESC LIMIT ${comparedRunsMax}) AS ${status} WHERE id LIKE ?`
    })
    .join(' UNION ALL ')} LIMIT 1`,
)

export function endOfIdValues(accountId: string, end: string): Value[] {
  return listedStatuses.flatMap(() => [accountId, `%${end}`])
}

/** The id that ends so, of the account's newest runs. @param end at least eight hexadecimal digits, so that one fits. */
export async function findIdByEnd({ all }: Transaction, accountId: string, end: string): Promise<string | undefined> {
  const [found] = await all(findByEndOfId, endOfIdValues(accountId, end))
  return found?.id
}

// Reads the runs of a list: their sizes, their number, or the runs themselves.

type RunSize = { id: string; size_bytes: number }

/** Runs of the account, in the order of the filter. */
export async function listRunSizes(
  { all }: Transaction,
  accountId: string,
  filter: RunFilter,
  limit: number,
): Promise<RunSize[]> {
  const { list, values } = listQuery(accountId, filter, limit)
  const runs = await all(list, values)
  return runs.filter((run): run is RunSize => run.size_bytes !== null)
}

/** The number of the account's runs, counted up to `limit`. */
export async function countRuns({ all }: Transaction, accountId: string, filter: RunFilter, limit: number) {
  const { list, values } = listQuery(accountId, filter, limit)
  const [row] = await all<{ count: number }>(
    `SELECT COUNT(*) AS count FROM (${list.sql}) AS listed WHERE size_bytes IS NOT NULL`,
    values,
  )
  return row?.count ?? 0
}

/** A run whose row has been read if it is small. */
type RunOfPage = RunSize & { row?: RunToRead }

/**
 * Rows of at most this size are read with the list, in the same round trip. 100 rows of this size, the longest page,
 * have fewer bytes than a page may have.
 */
const smallBytesMax = 8 * 1024

/** Like `listRunSizes`, with the rows of small runs. */
export async function listRuns(
  { all, statements }: Transaction,
  accountId: string,
  filter: RunFilter,
  limit: number,
): Promise<RunOfPage[]> {
  const small = { join: statements.joinSmallRuns, bytesMax: smallBytesMax }
  const { list, values } = listQuery(accountId, filter, limit, small)
  const rows = await all(list as Statement<(RunToRead | { id: null }) & ListedRow>, values)
  return rows.flatMap((row): RunOfPage[] => {
    const { listed_id: id, size_bytes } = row
    if (size_bytes === null) return []
    return row.id === null ? [{ id, size_bytes }] : [{ id, size_bytes, row }]
  })
}

interface ListedRow {
  listed_id: string
  size_bytes: number | null
}

/** The runs in the order of the list; reads the rows that the list has not. */
export async function findRuns({ all }: Transaction, runs: readonly RunOfPage[]): Promise<RunToRead[]> {
  const unread = runs.flatMap(({ id, row }) => (row ? [] : id))
  if (unread.length === 0) return runs.flatMap(({ row }) => row ?? [])
  const { marks, values } = inList(unread)
  const rows = await all<RunToRead>(`SELECT *, ${hasArtifacts()} FROM runs WHERE id IN (${marks})`, values)
  const byId = new Map(rows.map((row) => [row.id, row]))
  return runs.flatMap(({ id, row }) => row ?? byId.get(id) ?? [])
}
