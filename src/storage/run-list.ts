/** Builds and runs the query for a list of runs. */
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

/**
 * Runs of the account, newest first. Several statuses are a UNION of one query each: no index orders several statuses
 * by id, and SQLite would read past every run of the others.
 */
export async function listRuns(
  { query }: Transaction,
  accountId: string,
  { workflowId, statuses, from, before }: RunFilter,
  limit: number,
): Promise<RunsTable[]> {
  const newest = (state?: { status: string; isFinal: boolean }) => {
    let rows = query.selectFrom('runs').selectAll().where('account_id', '=', accountId)
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
