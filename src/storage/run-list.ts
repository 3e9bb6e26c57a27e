/** Builds and runs the query for a list of runs. */
import { sql } from 'kysely'
import type { Transaction } from './store.ts'
import type { RunsTable } from './tables.ts'

export interface RunFilter {
  workflowId?: string | undefined
  /** Any of these. */
  statuses?: readonly { status: string; isFinal: boolean }[] | undefined
  /** The lowest id. */
  from?: string | undefined
  /** Ids before this one. */
  before?: string | undefined
}

/** A run's id, and the bytes of its columns that may be large. Neither store reads the columns to measure them. */
export type RunSize = { id: string; size_bytes: number }

const sizeBytes = sql<number>`octet_length(variables) + octet_length(coalesce(output, ''))
  + octet_length(coalesce(error, ''))`.as('size_bytes')

/**
 * Runs of the account, newest first. Several statuses are a UNION of one query each: no index orders several statuses
 * by id, and SQLite would read past every run of the others.
 */
export async function listRunSizes(
  { query }: Transaction,
  accountId: string,
  { workflowId, statuses, from, before }: RunFilter,
  limit: number,
): Promise<RunSize[]> {
  const newest = (state?: { status: string; isFinal: boolean }) => {
    let rows = query.selectFrom('runs').select(['id', sizeBytes]).where('account_id', '=', accountId)
    if (workflowId !== undefined) rows = rows.where('workflow_id', '=', workflowId)
    // A deleted run exists until it is erased.
    rows = state ? rows.where('status', '=', state.status) : rows.where('status', '<>', 'deleted')
    // Redundant, but the condition of the partial index runs_finished_by_workflow.
    if (state?.isFinal) rows = rows.where('finished_at', 'is not', null)
    if (from !== undefined && before !== undefined) {
      // With `>=` and `<`, SQLite chose the account's index and read past runs of every status.
      rows = rows.where((it) => it.between('id', from, before)).where('id', '<>', before)
    } else if (from !== undefined) rows = rows.where('id', '>=', from)
    else if (before !== undefined) rows = rows.where('id', '<', before)
    return rows.orderBy('id', 'desc').limit(limit)
  }
  if (!statuses || statuses.length === 1) return newest(statuses?.[0]).execute()
  const [first, ...others] = statuses.map((state) => query.selectFrom(newest(state).as('runs')).selectAll())
  const all = others.reduce((union, each) => union?.unionAll(each), first)
  return all?.orderBy('id', 'desc').limit(limit).execute() ?? []
}

/** The runs in the order of their ids, newest first. */
export async function findRuns({ query }: Transaction, runs: readonly RunSize[]): Promise<RunsTable[]> {
  const ids = runs.map(({ id }) => id)
  return ids.length === 0
    ? []
    : query.selectFrom('runs').selectAll().where('id', 'in', ids).orderBy('id', 'desc').execute()
}
