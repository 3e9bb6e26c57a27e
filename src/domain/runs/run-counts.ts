/**
 * Counts of an account's runs, from indexes alone and in pieces: what SQLite counts, the whole process waits for, and
 * others get a turn between two pieces.
 */
import { setImmediate as turn } from 'node:timers/promises'
import type { Transaction } from '../../storage/store.ts'
import { firstIdAt } from './run-id.ts'
import type { RunStatus } from './run-state.ts'

/** Ids above the first and up to the second. */
export type Range = readonly [above: string, upTo: string]

export const everyId: Range = [firstIdAt(0), firstIdAt(Number.POSITIVE_INFINITY)]

/** 10,000 take half a millisecond to one. */
export const rowsPerPiece = 10_000
/** After a piece of less than this nobody needs a turn. */
const fewRows = 500

const inRange = 'account_id = ? AND status = ? AND id > ? AND id <= ?'

/** Skipping rows is twice as fast as counting them. */
const pieceEndSql = `SELECT id FROM runs WHERE ${inRange} ORDER BY id LIMIT 1 OFFSET ${rowsPerPiece - 1}`
const countSql = `SELECT COUNT(*) AS count FROM runs WHERE ${inRange}`

/** The index runs_delayed_by_account has nothing but these. */
const delayedInRange = "account_id = ? AND status = 'queued' AND delayed = 1 AND id > ? AND id <= ?"
const countDelayedSql = `SELECT COUNT(*) AS count FROM runs WHERE ${delayedInRange}`

/** Found in indexes too: for `delayed = 0` SQLite would read through the runs of every status. */
const firstReadySql = `SELECT id, workflow_id, created_at FROM runs WHERE id = (
  SELECT MIN(id) FROM runs WHERE ${inRange} AND id NOT IN (SELECT id FROM runs WHERE ${delayedInRange}))`

const unfinishedSql = `SELECT COUNT(*) AS unfinished, COUNT(CASE WHEN status = 'queued' THEN 1 END) AS queued
  FROM (SELECT status FROM runs
    WHERE account_id = ? AND status IN ('queued', 'running') AND id > ? AND id <= ? LIMIT ${rowsPerPiece}) AS unfinished_runs`

/** The runs of a status, old ones first, in ranges of at most `rowsPerPiece` runs. */
async function* pieces(tx: Transaction, accountId: string, status: RunStatus, [above, upTo]: Range) {
  for (let start = above; ; ) {
    const [last] = await tx.all<{ id: string }>(pieceEndSql, [accountId, status, start, upTo])
    if (!last) {
      const [rest] = await tx.all<{ count: number }>(countSql, [accountId, status, start, upTo])
      const { count = 0 } = rest ?? {}
      if (count >= fewRows) await turn()
      yield { count, range: [start, upTo] as Range }
      return
    }
    await turn()
    yield { count: rowsPerPiece, range: [start, last.id] as Range }
    start = last.id
  }
}

export async function countRuns(tx: Transaction, accountId: string, status: RunStatus, range: Range) {
  let sum = 0
  for await (const { count } of pieces(tx, accountId, status, range)) sum += count
  return sum
}

/** Exact at one moment; `undefined` when there are so many that they have to be counted in pieces. */
export async function countUnfinished(tx: Transaction, accountId: string, [above, upTo]: Range) {
  const [row] = await tx.all<{ unfinished: number; queued: number }>(unfinishedSql, [accountId, above, upTo])
  const { unfinished = 0, queued = 0 } = row ?? {}
  return unfinished < rowsPerPiece ? { queued, running: unfinished - queued } : undefined
}

export interface WaitingRun {
  id: string
  workflowId: string
  createdAt: number
}

/** How many runs are ready and delayed, and the oldest that is ready. */
export async function countWaiting(tx: Transaction, accountId: string) {
  const waiting = { ready: 0, delayed: 0 }
  let oldest: WaitingRun | null = null
  for await (const { count, range } of pieces(tx, accountId, 'queued', everyId)) {
    const [found] = await tx.all<{ count: number }>(countDelayedSql, [accountId, ...range])
    // A run that was queued between the two counts belongs to neither.
    const late = Math.min(count, found?.count ?? 0)
    waiting.delayed += late
    waiting.ready += count - late
    if (!oldest && late < count) oldest = await firstReady(tx, accountId, range)
  }
  return { ...waiting, oldest }
}

async function firstReady(tx: Transaction, accountId: string, range: Range): Promise<WaitingRun | null> {
  type Row = { id: string; workflow_id: string; created_at: number }
  const [row] = await tx.all<Row>(firstReadySql, [accountId, 'queued', ...range, accountId, ...range])
  return row ? { id: row.id, workflowId: row.workflow_id, createdAt: row.created_at } : null
}
