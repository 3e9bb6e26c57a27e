/** Reads of a few columns of runs: by their ids, by account, and by schedule. */
import { inList } from '../statement-values.ts'
import { statement, type Transaction } from '../store.ts'
import type { RunsTable } from '../tables/run-tables.ts'

/** A run that is being erased is in no list, and is not found. */
export const isVisible = "status <> 'deleted'"
const isUnfinished = "status IN ('queued', 'waiting', 'running')"

/** Ids per query. */
const idsPerRead = 1000

/** The columns of the runs, in no order, of all accounts and with runs that are being erased. */
export async function readColumns<Column extends keyof RunsTable>(
  { all }: Transaction,
  columns: readonly Column[],
  ids: readonly string[],
): Promise<Pick<RunsTable, Column>[]> {
  const found: Pick<RunsTable, Column>[] = []
  for (let start = 0; start < ids.length; start += idsPerRead) {
    const { marks, values } = inList(ids.slice(start, start + idsPerRead))
    found.push(...(await all<Pick<RunsTable, Column>>(`SELECT ${columns} FROM runs WHERE id IN (${marks})`, values)))
  }
  return found
}

/** The runs that a worker executes. Not sorted here: SQLite would read all runs in the order of their ids. */
const leasedRuns = statement<Pick<RunsTable, 'id' | 'attempts'>, [workerId: string]>(
  "SELECT id, attempts FROM runs WHERE status = 'running' AND worker_id = ?",
)

const leasedRun = statement<RunsTable, [id: string, attempt: number, workerId: string]>(
  "SELECT * FROM runs WHERE id = ? AND status = 'running' AND attempts = ? AND worker_id = ?",
)

/** The leases of a worker, oldest run first. */
export async function findLeases(
  { all }: Transaction,
  workerId: string,
): Promise<{ runId: string; attempt: number; workerId: string }[]> {
  const rows = await all(leasedRuns, [workerId])
  const leases = rows.map(({ id: runId, attempts: attempt }) => ({ runId, attempt, workerId }))
  return leases.sort((a, b) => (a.runId < b.runId ? -1 : 1))
}

/** The run, while the worker has its lease. */
export async function findLeasedRun(
  { all }: Transaction,
  { runId, attempt, workerId }: { runId: string; attempt: number; workerId: string },
): Promise<RunsTable | undefined> {
  const [row] = await all(leasedRun, [runId, attempt, workerId])
  return row
}

/** A run of a deployment that a worker of an API key executes. */
export const findLeasedOfDeployment = statement<
  { id: string },
  [accountId: string, deploymentId: string, apiKeyId: string]
>(
  `SELECT id FROM runs WHERE status = 'running' AND account_id = ? AND deployment_id = ?
    AND worker_id IN (SELECT id FROM workers WHERE api_key_id = ?) LIMIT 1`,
)

/** How many runs of an account each worker executes. */
export const countLeasedRuns = statement<{ worker_id: string; count: number }, [accountId: string]>(
  `SELECT worker_id, COUNT(*) AS count FROM runs
    WHERE status = 'running' AND account_id = ? AND worker_id IS NOT NULL GROUP BY worker_id`,
)

export const findStatus = statement<Pick<RunsTable, 'status'>, [id: string]>(
  `SELECT status FROM runs WHERE id = ? AND ${isVisible}`,
)

/** The ids of an account's runs, as a subquery. */
export const runsOfAccount = `SELECT id FROM runs WHERE account_id = ? AND ${isVisible}`

/** Queueing a run writes no event, unlike its start. Several runs, since one that is committed later may have a lower id. */
export const findNewestRuns = statement<{ id: string }, [accountId: string]>(
  "SELECT id FROM runs WHERE account_id = ? AND status = 'queued' ORDER BY id DESC LIMIT 20",
)

// Of files

/** An unfinished run that refers to the file. */
export const findRunOfFile = statement<{ id: string }, [fileId: string]>(
  `SELECT id FROM runs WHERE id IN (SELECT run_id FROM run_files WHERE file_id = ?) AND ${isUnfinished} LIMIT 1`,
)

// Of schedules

/** A condition on `schedules`. */
export const hasUnfinishedRun = `EXISTS (SELECT 1 FROM runs WHERE schedule_id = schedules.id AND ${isUnfinished})`

/** Unfinished runs of the schedules, with the time that each is for, or at which a caller started it. */
export async function findUnfinished(
  tx: Transaction,
  scheduleIds: readonly string[],
): Promise<{ id: string; schedule_id: string; time: number }[]> {
  if (scheduleIds.length === 0) return []
  const { marks, values } = inList(scheduleIds)
  return tx.all(
    `SELECT id, schedule_id, COALESCE(scheduled_for, created_at) AS time FROM runs
      WHERE schedule_id IN (${marks}) AND ${isUnfinished}`,
    values,
  )
}

/** The times from `from` on that have a run. After the clock was set back, a time may be due a second time. */
export const findRunTimes = statement<{ scheduled_for: number }, [scheduleId: string, from: number]>(
  'SELECT scheduled_for FROM runs WHERE schedule_id = ? AND scheduled_for >= ?',
)

/** Adds what an attempt or a part of it has executed, for usage. */
export const addExecuted = (milliseconds = 'CAST(? AS BIGINT)') =>
  `total_executed_ms = total_executed_ms + ${milliseconds}`
