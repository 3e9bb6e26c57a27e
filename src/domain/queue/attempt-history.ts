/**
 * The attempts of a run, and why they did not succeed. The event that ends an attempt has its error; the run's row lists
 * those events, so that reading them needs no scan. The row itself describes an attempt that is not listed, so a run
 * whose first attempt succeeds writes nothing for its history.
 */

import { errorTerm, termRows } from '../../storage/runs/run-terms.ts'
import { inList } from '../../storage/statement-values.ts'
import type { Transaction } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables/run-tables.ts'
import { toAttemptError } from '../runs/reported-values.ts'
import { type AttemptOutcome, attemptsOf, type RunAttempt } from '../runs/run.ts'
import type { AttemptError, Outcome, RunError, RunReason, RunStatus } from '../runs/run-state.ts'
import { toEvent } from './runs.sql.ts'

/** Attempts of a run that are read. Earlier ones remain in its events. */
export const attemptsReadMax = 50
/** Estimated bytes of an attempt's error, to bound the memory of responses. */
const attemptBytes = 16 * 1024

type AttemptEnd = [startedAt: number, sequence: number]

function attemptOutcome(status: RunStatus, reason: RunReason | null): AttemptOutcome | null {
  if (status === 'running') return null
  if (reason === 'workerStopped' || reason === 'workerLost' || reason === 'waiting') return reason
  return status === 'queued' || status === 'waiting' || status === 'expired' ? 'failed' : status
}

/** The error of an attempt, within the limits; `null` if it did not fail. */
export function attemptError(outcome: Outcome): AttemptError | null {
  switch (outcome.kind) {
    case 'failed':
      return toAttemptError(outcome.error)
    case 'timedOut': {
      const { limitSeconds, step } = outcome
      const limit = limitSeconds === undefined ? 'its time limit' : `the time limit of ${limitSeconds} s`
      return toAttemptError({ name: 'TimeLimit', message: `The attempt exceeded ${limit}.`, step })
    }
    case 'workerLost': {
      const message = "The worker ended unexpectedly, or could not renew the run's lease in time."
      return toAttemptError({ name: 'WorkerLost', message })
    }
    default:
      return null
  }
}

/** The row's list of ends with that of the latest attempt, whose event must be the run's last one. */
export async function addAttemptEnd(tx: Transaction, row: RunsTable, at: number): Promise<string> {
  const [last] = await tx.all(tx.statements.lastSequence, [row.id])
  const end: AttemptEnd = [row.attempt_started_at ?? at, last?.sequence ?? 1]
  return JSON.stringify([...parseEnds(row), end].slice(-attemptsReadMax))
}

/**
 * For how long an attempt, or a part of it, has executed, by the clock. That of a lost worker ends with its lease: the service
 * may have been down since.
 */
export function executedUntil(row: RunsTable, at: number, isLost = false): number {
  const end = isLost ? Math.min(at, row.lease_expires_at ?? at) : at
  return Math.max(0, end - (row.attempt_started_at ?? end))
}

/** The latest attempts, oldest first. */
export async function readAttempts(tx: Transaction, row: RunsTable): Promise<RunAttempt[]> {
  const attempts = await readEnds(tx, row.id, parseEnds(row))
  const latest = latestAttempt(row)
  return latest ? [...attempts, latest].slice(-attemptsReadMax) : attempts
}

/** Bytes of the attempts that are read in addition to the row. */
export function historyBytes(row: Pick<RunsTable, 'attempt_ends'>): number {
  return parseEnds(row).length * attemptBytes
}

function parseEnds({ attempt_ends }: Pick<RunsTable, 'attempt_ends'>): AttemptEnd[] {
  return attempt_ends === null ? [] : JSON.parse(attempt_ends)
}

async function readEnds(tx: Transaction, runId: string, ends: AttemptEnd[]): Promise<RunAttempt[]> {
  if (ends.length === 0) return []
  const startedAt = new Map(ends.map(([start, sequence]) => [sequence, start]))
  const { marks, values } = inList([...startedAt.keys()])
  const rows = await tx.all<{ sequence: number; at: number; type: string; data: string }>(
    `SELECT sequence, at, type, data FROM run_events WHERE run_id = ? AND sequence IN (${marks}) ORDER BY sequence`,
    [runId, ...values],
  )
  return rows.map((row) => {
    const { sequence, at, data } = toEvent(row)
    const { status, reason, attempt, error } = data as unknown as EndData
    const outcome = attemptOutcome(status, reason)
    return { number: attempt, startedAt: startedAt.get(sequence) ?? at, finishedAt: at, outcome, error: error ?? null }
  })
}

interface EndData {
  status: RunStatus
  reason: RunReason | null
  attempt: number
  error?: AttemptError
}

/** The latest attempt from the row, if it is not listed: it runs, or it has succeeded. */
function latestAttempt(row: RunsTable): RunAttempt | undefined {
  const startedAt = row.attempt_started_at
  if (startedAt === null || (row.status !== 'running' && row.status !== 'succeeded')) return undefined
  return {
    number: attemptsOf(row),
    startedAt,
    finishedAt: row.finished_at,
    outcome: attemptOutcome(row.status as RunStatus, row.reason as RunReason | null),
    error: null,
  }
}

// The words of errors, by which `listRuns` finds failed runs.

/** Each word is two rows: 24 words cover most messages, and cost about 5 KB. */
const wordsMax = 24
const wordsOfCausesMax = 12
const wordLengthMax = 64

/** The first different words of a text, in lower case. Longer words are left out. */
export function errorWords(text: string, max = wordsMax): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{M}\p{N}_]+/gu) ?? []
  return [...new Set(words.filter(({ length }) => length <= wordLengthMax))].slice(0, max)
}

/**
 * Makes a run that has just failed or timed out findable by its error.
 *
 * @param stack has a line for each cause, which often says more than the message: `Caused by Error: connect ECONNREFUSED`.
 */
export async function insertErrorWords(
  tx: Transaction,
  run: Pick<RunsTable, 'id' | 'account_id' | 'workflow_id' | 'status'>,
  { name, message }: RunError,
  stack: string | null,
): Promise<void> {
  const causes = stack?.match(/(?<=^Caused by ).*$/gm)?.join(' ') ?? ''
  const words = [...new Set([...errorWords(`${name} ${message}`), ...errorWords(causes, wordsOfCausesMax)])]
  if (words.length > 0) {
    await tx.statements.insertTerms(
      tx,
      words.flatMap((word) => termRows(run, errorTerm(word))),
    )
  }
}
