/** Reads and writes runs and their events. */
import type { NewEvent } from '../../storage/runs/run-statements.ts'
import { parseId } from '../../storage/statement-values.ts'
import type { Statement, Transaction } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables/run-tables.ts'
import { attemptsOf, parseCreatedAt, type Report, type RunEvent } from '../runs/run.ts'
import type { AttemptError } from '../runs/run-state.ts'

export const findRun = (tx: Transaction, accountId: string, id: string) =>
  find(tx, tx.statements.findRun, accountId, id)

/** Finds the run, and locks it until the transaction ends. */
export const lockRun = (tx: Transaction, accountId: string, id: string) =>
  find(tx, tx.statements.lockRun, accountId, id)

async function find<Row extends RunsTable>(
  tx: Transaction,
  find: Statement<Row, [id: string, accountId: string]>,
  accountId: string,
  id: string,
): Promise<Row | undefined> {
  const runId = parseId(id)
  const [row] = runId === undefined ? [] : await tx.all(find, [runId, accountId])
  return row
}

export function toNewEvent(runId: string, { at, type, data }: Report): NewEvent {
  return { run_id: runId, at, type, data: JSON.stringify(data) }
}

/** Appends events after the run's last one. The transaction must have locked the run. */
export async function appendEvents(tx: Transaction, runId: string, reports: readonly Report[]): Promise<void> {
  if (reports.length > 0)
    await tx.statements.appendEvents(
      tx,
      reports.map((report) => toNewEvent(runId, report)),
    )
}

export async function appendStatus(
  tx: Transaction,
  { id, ...row }: Pick<RunsTable, 'id' | 'attempts' | 'continuations'>,
  status: string,
  reason: string | null,
  at: number,
): Promise<void> {
  await appendEvents(tx, id, [statusReport(attemptsOf(row), status, reason, at)])
}

/** @param error why the attempt that this status ends has failed. */
export function statusReport(
  attempt: number,
  status: string,
  reason: string | null,
  at: number,
  error?: AttemptError | null,
): Report {
  return { at, type: 'status', data: { status, attempt, reason, ...(error && { error }) } }
}

/** The run's events after a sequence number, oldest first. */
export async function eventsAfter(
  tx: Transaction,
  runId: string,
  sequence: number,
  limit: number,
): Promise<RunEvent[]> {
  const events = (await tx.all(tx.statements.eventsAfter, [runId, sequence, limit])).map(toEvent)
  if (sequence < 1 && followsFirst(events[0])) events.unshift(firstEvent(runId))
  return events.slice(0, limit)
}

/** The first event of every run is not stored, since it follows from the id. */
export function firstEvent(runId: string): RunEvent {
  return { sequence: 1, ...statusReport(0, 'queued', null, parseCreatedAt(runId)) }
}

/** Whether the first event precedes a run's first stored event. It is removed with the following ones. */
export function followsFirst(stored: { sequence: number } | undefined): boolean {
  return stored === undefined || stored.sequence === 2
}

export function toEvent(row: { sequence: number; at: number; type: string; data: string }): RunEvent {
  const type = row.type as RunEvent['type']
  return { ...row, type, data: JSON.parse(row.data) }
}
