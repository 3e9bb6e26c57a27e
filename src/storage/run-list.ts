/** The statements that list runs. */
import { finished } from './run-count-statements.ts'
import { inList } from './statement-values.ts'
import { type Statement, statement, type Transaction, type Value } from './store.ts'
import type { RunsTable } from './tables.ts'

export interface RunFilter {
  workflowId?: string | undefined
  browserContextId?: string | undefined
  /** Any of these. */
  statuses: readonly string[]
  /** The lowest id. */
  from?: string | undefined
  /** Ids before this one. */
  before?: string | undefined
}

/** A run's id, and the bytes of its columns that may be large. Neither store reads the columns to measure them. */
export type RunSize = { id: string; size_bytes: number }

/** Without a size if the run is of another account, whose browser context was given. */
type ListedRun = { id: string; size_bytes: number | null }

const unfinishedStatuses = ['queued', 'running']
const listedStatuses = [...unfinishedStatuses, 'succeeded', 'failed', 'timedOut', 'cancelled', 'expired']

/** Sort before and after every id. */
const [firstId, lastId] = ['', '~']

interface Filtered {
  byWorkflow: boolean
  byContext: boolean
}

/**
 * The expression of the index that the list shall use; all of them order the runs of a status by their ids. Ordered by the
 * column itself, PostgreSQL, which plans without knowing the values, walked the primary key past every run of other
 * contexts and statuses: 0.6 s for a status without runs among a million. Running runs are few, and sorted.
 */
function orderOf(status: string, { byWorkflow, byContext }: Filtered): string {
  if (byContext && byWorkflow && !unfinishedStatuses.includes(status)) return '(workflow_id || id)'
  return byContext || status === 'running' ? "(id || '')" : 'id'
}

/**
 * Each status has a query of its own, since no index orders several statuses by id. A parameter switches it off: with a
 * text for each combination of statuses, preparing the statement would take longer than executing it. Only the runs of
 * the page are read from the table.
 */
function listStatement(filtered: Filtered): Statement<ListedRun> {
  const { byWorkflow, byContext } = filtered
  const newest = (status: string) => {
    const order = orderOf(status, filtered)
    // Redundant, but the conditions of the partial indexes.
    const condition = unfinishedStatuses.includes(status)
      ? ''
      : `AND ${byContext && byWorkflow ? 'finished_at IS NOT NULL' : finished}`
    return `SELECT * FROM (SELECT id AS listed_id FROM runs WHERE CAST(? AS INTEGER) = 1
      AND ${byContext ? 'browser_context_id' : 'account_id'} = ? ${byWorkflow ? 'AND workflow_id = ?' : ''}
      AND status = '${status}' ${condition} AND ${order} >= ? AND ${order} < ? ORDER BY ${order} DESC LIMIT ?)
      AS ${status}_runs`
  }
  // A subquery for each run of the page: a join planned with an empty table could read the whole primary key.
  return statement(`SELECT listed_id AS id, (SELECT octet_length(variables) + octet_length(COALESCE(output, ''))
      + octet_length(COALESCE(error, '')) FROM runs WHERE id = listed_id AND account_id || '' = ?) AS size_bytes
    FROM (SELECT * FROM (${listedStatuses.map(newest).join(' UNION ALL ')}) AS newest
      ORDER BY listed_id DESC LIMIT ?) AS page ORDER BY listed_id DESC`)
}

const listStatements = new Map<string, Statement<ListedRun>>()

/** Runs of the account, newest first. */
export async function listRunSizes(
  { all }: Transaction,
  accountId: string,
  { workflowId, browserContextId, statuses, from = firstId, before = lastId }: RunFilter,
  limit: number,
): Promise<RunSize[]> {
  const filtered = { byWorkflow: workflowId !== undefined, byContext: browserContextId !== undefined }
  const key = JSON.stringify(filtered)
  const list = listStatements.get(key) ?? listStatement(filtered)
  listStatements.set(key, list)
  const values = listedStatuses.flatMap((status): Value[] => {
    const prefix = orderOf(status, filtered).startsWith('(workflow_id') ? workflowId : ''
    return [
      statuses.includes(status) ? 1 : 0,
      browserContextId ?? accountId,
      ...(workflowId === undefined ? [] : [workflowId]),
      ...[`${prefix}${from}`, `${prefix}${before}`, limit],
    ]
  })
  const runs = await all(list, [accountId, ...values, limit])
  return runs.filter((run): run is RunSize => run.size_bytes !== null)
}

/** The runs in the order of their ids, newest first. */
export async function findRuns({ all }: Transaction, runs: readonly RunSize[]): Promise<RunsTable[]> {
  if (runs.length === 0) return []
  const { marks, values } = inList(runs.map(({ id }) => id))
  return all<RunsTable>(`SELECT * FROM runs WHERE id IN (${marks}) ORDER BY id DESC`, values)
}
