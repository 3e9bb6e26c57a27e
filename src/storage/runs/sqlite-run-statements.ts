/** The statements of runs for SQLite. Write transactions never overlap, so none of them takes a lock. */

import { inList } from '../statement-values.ts'
import { type Statement, statement, type Transaction, type Value } from '../store.ts'
import type { RunsTable } from '../tables/run-tables.ts'
import { addExecuted, isVisible } from './run-lookups.ts'
import {
  type ClaimedRow,
  countedStart,
  endedParts,
  findRunSql,
  insertedRunColumns,
  type RunStatements,
  ready,
  resumeStatements,
  runBytes,
  sharedRunStatements,
  startedAttempt,
  tagRows,
  valuesVersion,
} from './run-statements.ts'
import { insertTerm } from './run-terms.ts'
import { calledMax, findCalledSql } from './wait-statements.ts'

/** Statements by number of rows, largest first: a few prepared statements insert any number. */
function byRows(columns: number, toSql: (values: string) => string): [count: number, Statement][] {
  const row = `(${Array(columns).fill('?').join(', ')})`
  return [64, 32, 16, 8, 4, 2, 1].map((count) => [
    count,
    statement(toSql(`VALUES ${Array(count).fill(row).join(', ')}`)),
  ])
}

/** Divides rows by the statements that insert them. */
function* inStatements<Row>(statements: readonly [number, Statement][], rows: readonly Row[]) {
  let inserted = 0
  for (const [count, insert] of statements)
    for (; rows.length - inserted >= count; inserted += count)
      yield [insert, rows.slice(inserted, inserted + count)] as const
}

const insertRunsSql = byRows(
  insertedRunColumns.length,
  (values) => `INSERT INTO runs (${insertedRunColumns}) ${values}`,
)

const claimRunsSql = (condition = '') =>
  statement<ClaimedRow>(`UPDATE runs SET ${startedAttempt},
  started_at = COALESCE(started_at, ?), attempt_started_at = ?, worker_id = ?, lease_expires_at = ?
  WHERE browser_context_id IS NULL AND id IN (SELECT id FROM runs WHERE ${ready()}
    AND account_id = ? AND workflow_id = ? ${condition} ORDER BY priority DESC, id LIMIT ?)
  RETURNING *, ${valuesVersion()}`)
const claimAllSql = claimRunsSql()
const claimSomeSql = claimRunsSql('AND workflow_version NOT IN (SELECT value FROM json_each(?))')

const finishRunSql = statement<Pick<RunsTable, 'id' | 'workflow_id' | 'started_at'>>(
  `UPDATE runs SET status = 'succeeded', reason = NULL, worker_id = NULL, lease_expires_at = NULL, finished_at = ?,
    output = ?, error = NULL, progress = COALESCE(?, progress), ${addExecuted('COALESCE(MAX(0, ? - attempt_started_at), 0)')},
    ${endedParts} WHERE id = ? AND status = 'running' AND attempts = ? AND worker_id = ?
    AND cancel_requested = 0 AND browser_context_id IS NULL AND concurrency_group IS NULL RETURNING id, workflow_id, ${countedStart} AS started_at`,
)

/**
 * The second column is the place among the rows of the run. The first event, with sequence number 1, is not stored: it
 * follows from the run.
 */
const appendEventsSql = byRows(
  5,
  (values) => `INSERT INTO run_events (run_id, sequence, at, type, data)
    SELECT column1, (SELECT COALESCE(MAX(sequence), 1) FROM run_events WHERE run_id = column1) + column2,
      column3, column4, column5 FROM (${values})`,
)

export const sqliteRunStatements = {
  ...sharedRunStatements,
  async insertRuns(tx, runs) {
    for (const [insert, rows] of inStatements(insertRunsSql, runs))
      await tx.all(
        insert,
        rows.flatMap((run): Value[] => insertedRunColumns.map((column) => run[column])),
      )
    await insertTerms(tx, tagRows(runs))
  },
  insertTerms,
  async claimRuns(tx, queues, { at, workerId, leaseExpiresAt }) {
    const claimed: ClaimedRow[] = []
    for (const { accountId, workflowId, countMax, otherVersions = [] } of queues) {
      const values = [at, at, workerId, leaseExpiresAt, at, accountId, workflowId]
      const isAll = otherVersions.length === 0
      const condition = isAll ? [] : [JSON.stringify(otherVersions)]
      claimed.push(...(await tx.all(isAll ? claimAllSql : claimSomeSql, [...values, ...condition, countMax])))
    }
    const running = ({ id, attempts, continuations }: RunsTable) => ({
      run_id: id,
      at,
      type: 'status',
      data: JSON.stringify({ status: 'running', attempt: attempts - continuations, reason: null }),
    })
    await appendEvents(tx, claimed.map(running))
    const findSteps = async ({ id, attempts, rerun_of }: RunsTable) =>
      attempts > 1 || rerun_of !== null ? tx.all(tx.statements.findSteps, [id]) : []
    return Promise.all(claimed.map(async (run) => ({ ...run, steps: await findSteps(run) })))
  },
  async finishRuns(tx, attempts, events) {
    const byRun = Map.groupBy(events, ({ run_id }) => run_id)
    const finished: Pick<RunsTable, 'id' | 'workflow_id' | 'started_at'>[] = []
    for (const { id, attempt, workerId, finishedAt, output, progress } of attempts) {
      const [run] = await tx.all(finishRunSql, [finishedAt, output, progress, finishedAt, id, attempt, workerId])
      if (!run) continue
      finished.push(run)
      await appendEvents(tx, byRun.get(id) ?? [])
      await tx.all(tx.statements.deleteSteps, [id])
    }
    return finished
  },
  async extendLeases(tx, workerId, runIds, leaseExpiresAt) {
    const { marks, values } = inList(runIds)
    return tx.all<Pick<RunsTable, 'id' | 'attempts'>>(
      `UPDATE runs SET lease_expires_at = ? WHERE status = 'running' AND worker_id = ? AND id IN (${marks})
        RETURNING id, attempts`,
      [leaseExpiresAt, workerId, ...values],
    )
  },
  appendEvents,
  lockAccount: statement('SELECT id FROM accounts WHERE id = ?'),
  lockRun: statement(findRunSql),
  async lockRuns() {},
  async lockEnding() {},
  async lockCancelled() {},
  ...resumeStatements(),
  findClaimable: statement(
    `SELECT id, browser_context_id, persist_context, concurrency_group, continues, (${ready()}) AS claimable FROM runs WHERE id = ?`,
  ),
  lockLeasedRun: statement("SELECT * FROM runs WHERE id = ? AND attempts = ? AND worker_id = ? AND status = 'running'"),
  joinSmallRuns: `LEFT JOIN runs ON runs.id = page.id AND ${runBytes} <= ?`,
  // SQLite reads all runs that a run has called before it returns the first of them.
  findCalled: findCalledSql(`CROSS JOIN runs WHERE runs.id IN
    (SELECT id FROM runs WHERE parent_run_id = called.id AND ${isVisible} LIMIT ${calledMax + 2})`),
  eventsAfter: statement(
    'SELECT sequence, at, type, data FROM run_events WHERE run_id = ? AND sequence > ? ORDER BY sequence LIMIT ?',
  ),
} satisfies RunStatements

async function insertTerms(tx: Transaction, rows: Parameters<RunStatements['insertTerms']>[1]): Promise<void> {
  for (const row of rows) await tx.all(insertTerm, row)
}

async function appendEvents(tx: Transaction, events: Parameters<RunStatements['appendEvents']>[1]): Promise<void> {
  const inserted = [...inStatements(appendEventsSql, events)].map(([insert, rows]) => {
    const places = new Map<string, number>()
    const values = rows.flatMap(({ run_id, at, type, data }): Value[] => {
      const place = (places.get(run_id) ?? 0) + 1
      places.set(run_id, place)
      return [run_id, place, at, type, data]
    })
    return tx.all(insert, values)
  })
  // Executed at once, so that statements which follow without awaiting this see all events.
  await Promise.all(inserted)
}
