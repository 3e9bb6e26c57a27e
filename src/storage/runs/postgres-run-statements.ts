/**
 * The statements of runs for PostgreSQL, where write transactions may overlap: `FOR UPDATE` locks the rows that they
 * depend on. What happens to every run is one statement for any number of runs, so it takes one round trip.
 *
 * One order of locks prevents deadlocks: accounts, idempotency keys, runs, then what belongs to runs, files, and browser
 * contexts; nothing waits for rows that a transaction inserts. A transaction locks runs in the order of their ids. One that
 * ends runs first locks those that its triggers change, too (`lockEnding`, `lockCancelled`); one that only makes another run
 * ready skips it while it is locked.
 */

import { type Statement, statement, type Value } from '../store.ts'
import type { RunsTable } from '../tables/run-tables.ts'
import { addExecuted, isVisible } from './run-lookups.ts'
import {
  type ClaimedRun,
  countedStart,
  endedParts,
  findRunSql,
  insertedRunColumns,
  type NewEvent,
  type RunStatements,
  ready,
  resumeStatements,
  runBytes,
  sharedRunStatements,
  startedAttempt,
  tagRows,
  valuesVersion,
} from './run-statements.ts'
import { insertTermsSql, termColumns } from './run-terms.ts'
import { attachedCalls, findCalledSql } from './wait-statements.ts'

/** CASE hides conditions, so that the planner cannot pick a partial index of ready or running runs instead of the id's. */
const isRunning = "CASE WHEN status = 'running' THEN 1 ELSE 0 END = 1"
const isClaimable = `CASE WHEN ${ready()} THEN 1 ELSE 0 END`

/** A table of parameters, one array for each column. */
const table = (name: string, columns: Record<string, string>) =>
  `unnest(${Object.values(columns).map((type) => `CAST(? AS ${type}[])`)}) AS ${name} (${Object.keys(columns)})`

/** The first event, with sequence number 1, is not stored: it follows from the run. */
const lastSequence = (runId: string) =>
  `(SELECT COALESCE(MAX(sequence), 1) FROM run_events WHERE run_events.run_id = ${runId})`

const columnTypes: Partial<Record<keyof RunsTable, string>> = {
  priority: 'int',
  secrets: 'bytea',
  created_at: 'bigint',
  delayed: 'int',
  available_at: 'bigint',
  expires_at: 'bigint',
  scheduled_for: 'bigint',
}
const insertRunsSql = statement(
  `INSERT INTO runs (${insertedRunColumns}) SELECT * FROM ${table(
    'inserted',
    Object.fromEntries(insertedRunColumns.map((column) => [column, columnTypes[column] ?? 'text'])),
  )}`,
)

const insertTerms = statement(`${insertTermsSql} SELECT * FROM ${table('term', termColumns)}`)
const insertTaggedRunsSql = statement(`WITH inserted_runs AS (${insertRunsSql.sql}) ${insertTerms.sql}`)
const termWidth = Object.keys(termColumns).length

const eventColumns = { run_id: 'text', position: 'int', at: 'bigint', type: 'text', data: 'text' }
const appendEventsSql = (condition = '') => `INSERT INTO run_events (run_id, sequence, at, type, data)
  SELECT run_id, ${lastSequence('event.run_id')} + position, at, type, data
  FROM ${table('event', eventColumns)} ${condition}`

/** The subquery with LIMIT runs once for each queue. By ids, since a join could read the whole primary key. */
const claimRunsSql = (condition = '') =>
  statement<Omit<ClaimedRun, 'steps'> & { steps: { name: string; value: string }[] | null }>(
    `WITH new_lease AS (SELECT CAST(? AS bigint) AS moment, CAST(? AS text) AS worker_id, CAST(? AS bigint) AS expires_at),
  queue AS (SELECT * FROM ${table('queue', { account_id: 'text', workflow_id: 'text', count: 'int' })}),
  locked AS MATERIALIZED (SELECT run.* FROM queue CROSS JOIN new_lease CROSS JOIN LATERAL (
    SELECT id, browser_context_id FROM runs WHERE ${ready('new_lease.moment')}
      AND account_id = queue.account_id AND workflow_id = queue.workflow_id ${condition}
      ORDER BY priority DESC, id LIMIT queue.count FOR UPDATE SKIP LOCKED) AS run),
  claimed AS (UPDATE runs SET ${startedAttempt}, started_at = COALESCE(started_at, new_lease.moment),
    attempt_started_at = new_lease.moment, worker_id = new_lease.worker_id, lease_expires_at = new_lease.expires_at
    FROM new_lease WHERE id = ANY (ARRAY(SELECT id FROM locked WHERE browser_context_id IS NULL)) RETURNING runs.*),
  started AS (INSERT INTO run_events (run_id, sequence, at, type, data)
    SELECT id, ${lastSequence('claimed.id')} + 1, moment, 'status',
      '{"status":"running","attempt":' || attempts - continuations || ',"reason":null}' FROM claimed CROSS JOIN new_lease)
  SELECT claimed.*, ${valuesVersion('claimed')}, CASE WHEN attempts > 1 OR rerun_of IS NOT NULL THEN (SELECT json_agg(json_build_object(
    'name', name, 'value', encode(value, 'hex')) ORDER BY position, name) FROM run_steps WHERE run_id = claimed.id) END AS steps FROM claimed`,
  )
const claimAllSql = claimRunsSql()
const claimSomeSql = claimRunsSql(
  "AND account_id || ' ' || workflow_id || ' ' || workflow_version <> ALL (CAST(? AS text[]))",
)

const attemptColumns = {
  run_id: 'text',
  number: 'int',
  worker_id: 'text',
  at: 'bigint',
  output: 'text',
  progress: 'text',
}

/** @param ids of the runs. With callers, a query that locks both, since the end of a run resumes its caller. */
const finishRunsSql = (before: string, ids: string) =>
  statement<Pick<RunsTable, 'id' | 'workflow_id' | 'started_at'>>(
    `WITH ${before} finished AS (UPDATE runs SET status = 'succeeded', reason = NULL, worker_id = NULL, lease_expires_at = NULL,
    finished_at = attempt.at, output = attempt.output, error = NULL, progress = COALESCE(attempt.progress, runs.progress),
    ${addExecuted('GREATEST(0, attempt.at - attempt_started_at)')}, ${endedParts}
    FROM ${table('attempt', attemptColumns)}
    WHERE runs.id = attempt.run_id AND runs.id = ANY (${ids}) AND ${isRunning} AND attempts = attempt.number
      AND runs.worker_id = attempt.worker_id AND cancel_requested = 0 AND browser_context_id IS NULL
      AND concurrency_group IS NULL
    RETURNING runs.id, workflow_id, ${countedStart} AS started_at),
  event AS (${appendEventsSql('WHERE run_id IN (SELECT id FROM finished)')}),
  step AS (DELETE FROM run_steps WHERE run_id = ANY (ARRAY(SELECT id FROM finished)))
  SELECT * FROM finished`,
  )
const finishAloneSql = finishRunsSql('', 'CAST(? AS text[])')
const finishCalledSql = finishRunsSql(
  'locked AS MATERIALIZED (SELECT id FROM runs WHERE id = ANY (CAST(? AS text[])) ORDER BY id FOR UPDATE),',
  'ARRAY(SELECT id FROM locked)',
)

const extendLeasesSql = statement<Pick<RunsTable, 'id' | 'attempts'>>(
  `WITH locked AS MATERIALIZED (SELECT id FROM runs WHERE id = ANY (CAST(? AS text[])) ORDER BY id FOR UPDATE)
    UPDATE runs SET lease_expires_at = ? WHERE ${isRunning} AND worker_id = ? AND id = ANY (ARRAY(SELECT id FROM locked))
    RETURNING id, attempts`,
)

/** Numbers the events of each run from 1. */
function eventValues(events: readonly NewEvent[]): Value[][] {
  const counts = new Map<string, number>()
  return events.map(({ run_id, at, type, data }) => {
    const position = (counts.get(run_id) ?? 0) + 1
    counts.set(run_id, position)
    return [run_id, position, at, type, data]
  })
}

/** Parameters of `table`. The driver turns arrays into arrays of PostgreSQL. */
function toColumns(width: number, rows: readonly (readonly Value[])[]): Value[] {
  return Array.from({ length: width }, (_, column) => rows.map((row) => row[column])) as unknown as Value[]
}

const appendEventsStatement: Statement = statement(appendEventsSql())
const eventWidth = Object.keys(eventColumns).length

const skipLocked = 'FOR UPDATE SKIP LOCKED'
const lockRunsSql = statement('SELECT id FROM runs WHERE id = ANY (CAST(? AS text[])) ORDER BY id FOR UPDATE')

const endingColumns = ['id', 'parent_run_id', 'signs_in', 'browser_context_id']
/** @param below adds runs to `ending`. */
const lockEndingSql = (below = '') =>
  statement(
    `WITH RECURSIVE ending AS (SELECT ${endingColumns} FROM runs WHERE id = ANY (CAST(? AS text[])) ${below})
    SELECT id FROM runs WHERE id = ANY (ARRAY(SELECT id FROM ending
      UNION SELECT parent_run_id FROM ending WHERE parent_run_id IS NOT NULL
      UNION SELECT waiting.id FROM ending JOIN runs AS waiting ON waiting.browser_context_id = ending.browser_context_id
        AND waiting.status = 'waiting' AND waiting.waiting_for = 'signIn' WHERE ending.signs_in IS NOT NULL))
    ORDER BY id FOR UPDATE`,
  )
const lockEndedSql = lockEndingSql()
const lockCancelledSql = lockEndingSql(
  `UNION SELECT ${endingColumns.map((column) => `called.${column}`)} FROM ending
    JOIN run_waits ON run_id = ending.id AND ${attachedCalls} JOIN runs AS called ON called.id = child_run_id`,
)

export const postgresRunStatements = {
  ...sharedRunStatements,
  async insertRuns(tx, runs) {
    const rows = runs.map((run) => insertedRunColumns.map((column) => run[column]))
    const values = toColumns(insertedRunColumns.length, rows)
    const terms = tagRows(runs)
    if (terms.length === 0) await tx.all(insertRunsSql, values)
    else await tx.all(insertTaggedRunsSql, [...values, ...toColumns(termWidth, terms)])
  },
  async insertTerms(tx, rows) {
    await tx.all(insertTerms, toColumns(termWidth, rows))
  },
  async claimRuns(tx, queues, { at, workerId, leaseExpiresAt }) {
    const rows = queues.map((queue) => [queue.accountId, queue.workflowId, queue.countMax])
    const left = queues.flatMap(({ accountId, workflowId, otherVersions = [] }) =>
      otherVersions.map((version) => `${accountId} ${workflowId} ${version}`),
    )
    const values = [at, workerId, leaseExpiresAt, ...toColumns(3, rows)]
    const claimed = await (left.length === 0
      ? tx.all(claimAllSql, values)
      : tx.all(claimSomeSql, [...values, left as unknown as Value]))
    return claimed.map(({ steps, ...run }) => ({
      ...run,
      steps: (steps ?? []).map(({ name, value }) => ({ name, value: Buffer.from(value, 'hex') })),
    }))
  },
  async finishRuns(tx, attempts, events) {
    const rows = attempts.map(({ id, attempt, workerId, ...result }) => [
      ...[id, attempt, workerId],
      ...[result.finishedAt, result.output, result.progress],
    ])
    const ids = attempts.map(({ id }) => id)
    const callers = attempts.flatMap(({ parentRunId }) => parentRunId ?? [])
    const columns = toColumns(6, rows)
    const values = toColumns(eventWidth, eventValues(events))
    if (callers.length === 0) return tx.all(finishAloneSql, [...columns, ids as unknown as Value, ...values])
    return tx.all(finishCalledSql, [[...ids, ...callers] as unknown as Value, ...columns, ...values])
  },
  async extendLeases(tx, workerId, runIds, leaseExpiresAt) {
    return tx.all(extendLeasesSql, [runIds as unknown as Value, leaseExpiresAt, workerId])
  },
  async appendEvents(tx, events) {
    await tx.all(appendEventsStatement, toColumns(eventWidth, eventValues(events)))
  },
  // Also waits for uncommitted runs of the account: their foreign key locks its row.
  lockAccount: statement('SELECT id FROM accounts WHERE id = ? FOR UPDATE'),
  lockRun: statement(`${findRunSql} FOR UPDATE`),
  async lockRuns(tx, ids) {
    await tx.all(lockRunsSql, [ids as unknown as Value])
  },
  async lockEnding(tx, ids) {
    await tx.all(lockEndedSql, [ids as unknown as Value])
  },
  async lockCancelled(tx, ids) {
    await tx.all(lockCancelledSql, [ids as unknown as Value])
  },
  ...resumeStatements(skipLocked),
  findClaimable: statement(
    `SELECT id, browser_context_id, persist_context, concurrency_group, continues, ${isClaimable} AS claimable FROM runs WHERE id = ? FOR UPDATE`,
  ),
  lockLeasedRun: statement(
    `SELECT * FROM runs WHERE id = ? AND attempts = ? AND worker_id = ? AND ${isRunning} FOR UPDATE`,
  ),
  // With a plain join, a plan made with an empty table could read the whole primary key.
  joinSmallRuns: `LEFT JOIN LATERAL (SELECT * FROM runs WHERE id = page.id AND ${runBytes} <= ? LIMIT 1) AS runs ON TRUE`,
  // A caller may send any number as Last-Event-ID, beyond the column's INTEGER too.
  findCalled: findCalledSql(`JOIN runs ON runs.parent_run_id = called.id WHERE runs.${isVisible}`),
  eventsAfter: statement(`SELECT sequence, at, type, data FROM run_events
    WHERE run_id = ? AND sequence > CAST(? AS BIGINT) ORDER BY sequence LIMIT ?`),
} satisfies RunStatements
