/** Reads and writes runs and their events. */
import { insertedRunColumns } from '../../storage/run-statements.ts'
import { parseId } from '../../storage/statement-values.ts'
import type { Statement, Transaction, Value } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables.ts'
import type { Report, RunEvent } from './run.ts'

/** A run to insert. Every other column has its default. */
export type NewRun = Omit<Pick<RunsTable, (typeof insertedRunColumns)[number]>, 'secrets'> & {
  /** Encrypts the secrets. Called for each attempt to write them, since the encryption key may have changed. */
  secrets: (() => Uint8Array) | null
}

const queuedEvent = JSON.stringify({ status: 'queued', attempt: 0, reason: null })

/** Inserts the runs and their first events in a few statements. One statement for each run would cost most of the time. */
export async function insertRuns(tx: Transaction, runs: readonly NewRun[]): Promise<void> {
  const rows = runs.map((run) =>
    insertedRunColumns.map((column) => (column === 'secrets' ? (run.secrets?.() ?? null) : run[column])),
  )
  await insertRows(tx, tx.statements.insertRuns, rows)
  const events = runs.map(({ id, created_at }) => [id, 1, created_at, 'status', queuedEvent])
  await insertRows(tx, tx.statements.insertEvents, events)
}

/** @param statements by number of rows, largest first. */
async function insertRows(tx: Transaction, statements: ReadonlyMap<number, Statement>, rows: readonly Value[][]) {
  let inserted = 0
  for (const [count, insert] of statements) {
    for (; rows.length - inserted >= count; inserted += count) {
      await tx.all(insert, rows.slice(inserted, inserted + count).flat())
    }
  }
}

export async function findRun(tx: Transaction, accountId: string, id: string): Promise<RunsTable | undefined> {
  const runId = parseId(id)
  const [row] = runId === undefined ? [] : await tx.all(tx.statements.findRun, [runId, accountId])
  return row
}

/** Appends an event after the run's last one. */
export async function appendEvent(tx: Transaction, runId: string, { at, type, data }: Report): Promise<void> {
  await tx.all(tx.statements.appendEvent, [runId, at, type, JSON.stringify(data), runId])
}

/** Appends a status event. */
export async function appendStatus(
  tx: Transaction,
  { id, attempts }: Pick<RunsTable, 'id' | 'attempts'>,
  status: string,
  reason: string | null,
  at: number,
): Promise<void> {
  await appendEvent(tx, id, { at, type: 'status', data: { status, attempt: attempts, reason } })
}

/** The run's events after a sequence number, oldest first. */
export async function eventsAfter(
  tx: Transaction,
  runId: string,
  sequence: number,
  limit: number,
): Promise<RunEvent[]> {
  return (await tx.all(tx.statements.eventsAfter, [runId, sequence, limit])).map(toEvent)
}

export function toEvent(row: { sequence: number; at: number; type: string; data: string }): RunEvent {
  return { ...row, type: row.type as RunEvent['type'], data: JSON.parse(row.data) }
}
