/** Reads the runs of a list: their sizes, their number, or the runs themselves. */
import { listQuery, type RunFilter } from './run-list.ts'
import { hasArtifacts, type RunToRead } from './run-statements.ts'
import { inList } from './statement-values.ts'
import type { Statement, Transaction } from './store.ts'

/** A run's id, and its `runBytes`. */
export type RunSize = { id: string; size_bytes: number }

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
export type RunOfPage = RunSize & { row?: RunToRead }

/**
 * Rows of at most this size are read with the list, in the same round trip. Those of the longest page take less than a
 * page may have.
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
