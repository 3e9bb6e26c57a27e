/** The SQL statements that count runs, for metrics, concurrency limits and the dashboard. All read indexes alone. */
import { statement } from './store.ts'

/** Counts for the dashboard read at most this many rows at a time: 0.5 to 1 ms, for which SQLite blocks the process. */
export const countedRowsMax = 10_000

type InRange = [accountId: string, status: string, aboveId: string, upToId: string]
const inRange = 'account_id = ? AND status = ? AND id > ? AND id <= ?'
/** Matches the condition of the partial index runs_delayed_by_account. */
const delayedInRange = "account_id = ? AND status = 'queued' AND delayed = 1 AND id > ? AND id <= ?"

const ready = "status = 'queued' AND delayed = 0 AND waits_for_context = 0"

type CountByWorkflow = { workflow_id: string; count: number }

type CountByWorkflowAndAccount = CountByWorkflow & { account_id: string }

export const runCountStatements = {
  // Over all accounts: SQLite counts 100,000 ready runs in 10 ms, whatever the number of finished ones.

  countReady: statement<CountByWorkflowAndAccount & { first_id: string }, []>(
    `SELECT account_id, workflow_id, COUNT(*) AS count, MIN(id) AS first_id FROM runs
      WHERE ${ready} GROUP BY account_id, workflow_id`,
  ),

  countRunning: statement<CountByWorkflowAndAccount, []>(
    `SELECT account_id, workflow_id, COUNT(*) AS count FROM runs
      WHERE status = 'running' GROUP BY workflow_id, account_id`,
  ),

  countDelayed: statement<CountByWorkflow, []>(
    "SELECT workflow_id, COUNT(*) AS count FROM runs WHERE status = 'queued' AND delayed = 1 GROUP BY workflow_id",
  ),

  countWaitingForContext: statement<CountByWorkflow, []>(
    `SELECT workflow_id, COUNT(*) AS count FROM runs
      WHERE status = 'queued' AND waits_for_context = 1 GROUP BY workflow_id`,
  ),

  /** When the run could first start, and its last change of status: a retried run is available since then. */
  availability: statement<{ available_at: number; queued_at: number | null }, [id: string]>(
    `SELECT COALESCE(available_at, created_at) AS available_at,
      (SELECT at FROM run_events WHERE run_id = runs.id AND type = 'status' ORDER BY sequence DESC LIMIT 1) AS queued_at
      FROM runs WHERE id = ?`,
  ),

  // Of one account

  /** The run at position `countedRowsMax` of the range, if any. Takes half the time of a COUNT. */
  lastCounted: statement<{ id: string }, InRange>(
    `SELECT id FROM runs WHERE ${inRange} ORDER BY id LIMIT 1 OFFSET ${countedRowsMax - 1}`,
  ),

  countInRange: statement<{ count: number }, InRange>(`SELECT COUNT(*) AS count FROM runs WHERE ${inRange}`),

  countDelayedInRange: statement<{ count: number }, [accountId: string, aboveId: string, upToId: string]>(
    `SELECT COUNT(*) AS count FROM runs WHERE ${delayedInRange}`,
  ),

  /** The oldest run that is not delayed. For `delayed = 0`, SQLite would read the rows of every status. */
  firstReadyInRange: statement<
    { id: string; workflow_id: string; created_at: number },
    [...InRange, accountId: string, aboveId: string, upToId: string]
  >(`SELECT id, workflow_id, created_at FROM runs WHERE id = (SELECT MIN(id) FROM runs
    WHERE ${inRange} AND id NOT IN (SELECT id FROM runs WHERE ${delayedInRange}))`),

  /** Counts queued and running runs at one moment, up to `countedRowsMax`. */
  countUnfinishedInRange: statement<
    { unfinished: number; queued: number },
    [accountId: string, aboveId: string, upToId: string]
  >(`SELECT COUNT(*) AS unfinished, COUNT(CASE WHEN status = 'queued' THEN 1 END) AS queued
    FROM (SELECT status FROM runs WHERE account_id = ? AND status IN ('queued', 'running') AND id > ? AND id <= ?
      LIMIT ${countedRowsMax}) AS unfinished_runs`),
}
