/** The statement that reads queue heads for fair scheduling, and the condition of a ready run. */
import { statement } from './store.ts'
import type { RunsTable } from './tables/run-tables.ts'

/** The first ready run of an account and a workflow. */
export type QueueHead = Pick<RunsTable, 'id' | 'account_id' | 'workflow_id' | 'priority'> & {
  has_context: 0 | 1
  /** The account's running runs, to compare accounts; 0 if there is only one. Accurate below some hundreds. */
  running: number
}

/** A run that has not started in time must not start, even before maintenance marks it as expired. */
export const ready = (now = '?') => `status = 'queued' AND delayed = 0 AND waits_for_context = 0
  AND (expires_at IS NULL OR expires_at > ${now} OR attempts > 0)`

/** At most this many queue heads are read for one decision. */
export const queueHeadsMax = 500

/** At most this many running runs are counted to compare accounts. */
const countedMax = 1000

/** Sorts after every account's id. */
const lastAccount = "'~'"
const uuidLength = 36
/** Makes each priority a number of three digits. */
const priorityOffset = 500
/** All columns of a head in one value, so that one index look-up finds them. @param isNew whether its account is. */
const findHead = (isNew: 0 | 1, condition: string) => `(SELECT '${isNew}' || id || account_id
    || (priority + ${priorityOffset}) || CASE WHEN browser_context_id IS NULL THEN '0' ELSE '1' END || workflow_id
  FROM runs WHERE ${ready('moment')} AND ${condition} ORDER BY account_id, workflow_id, priority DESC, id LIMIT 1)`
const headAccount = `substr(head, ${uuidLength + 2}, ${uuidLength})`
const headPriority = `substr(head, ${2 * uuidLength + 2}, 3)`
const headHasContext = `substr(head, ${2 * uuidLength + 5}, 1)`
const headWorkflow = `substr(head, ${2 * uuidLength + 6})`
const accountsLeft = 'accounts_left - CAST(substr(head, 1, 1) AS INTEGER)'
const findNextHead = `COALESCE(
  ${findHead(0, `account_id = ${headAccount} AND workflow_id > ${headWorkflow}`)},
  CASE WHEN ${accountsLeft} > 0 THEN ${findHead(
    1,
    `account_id > ${headAccount}
      AND account_id <= CASE WHEN ${headAccount} > start_after THEN ${lastAccount} ELSE start_after END`,
  )} END,
  CASE WHEN ${accountsLeft} > 0 AND ${headAccount} > start_after THEN ${findHead(1, 'account_id <= start_after')} END)`

/**
 * The queue heads of the next accounts: in order of their ids, starting after one account and wrapping around. Reads
 * the accounts' heads of all workflows, `queueHeadsMax` at most.
 *
 * The recursion costs a few index look-ups for each head, whatever waits. Both databases execute GROUP BY by reading
 * every ready run, and SQLite does so for `(account_id, workflow_id) > (…)` too.
 */
export const queueHeads = statement<QueueHead, [startAfter: string, accountsMax: number, now: number]>(
  `WITH RECURSIVE start (start_after, accounts_left, moment) AS (
      SELECT CAST(? AS TEXT), CAST(? AS INTEGER), CAST(? AS BIGINT)),
    heads (number, start_after, accounts_left, moment, head) AS (
      SELECT 1, start_after, accounts_left, moment,
        COALESCE(${findHead(1, 'account_id > start_after')}, ${findHead(1, 'account_id <= start_after')}) FROM start
      UNION ALL
      SELECT number + 1, start_after, ${accountsLeft}, moment, ${findNextHead}
        FROM heads WHERE head IS NOT NULL AND number < ${queueHeadsMax}),
    running AS MATERIALIZED (SELECT account_id, COUNT(*) AS count FROM (
      SELECT account_id FROM runs WHERE status = 'running' LIMIT ${countedMax}) AS counted GROUP BY account_id)
    SELECT substr(head, 2, ${uuidLength}) AS id, ${headAccount} AS account_id, ${headWorkflow} AS workflow_id,
      CAST(${headPriority} AS INTEGER) - ${priorityOffset} AS priority,
      CAST(${headHasContext} AS INTEGER) AS has_context,
      CASE WHEN (SELECT MIN(${headAccount}) = MAX(${headAccount}) FROM heads) THEN 0
        ELSE COALESCE((SELECT count FROM running WHERE running.account_id = ${headAccount}), 0) END AS running
    FROM heads WHERE head IS NOT NULL`,
)
