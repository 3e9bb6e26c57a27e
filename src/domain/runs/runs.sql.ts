/** Reads and writes runs and their events. */
import { parseId } from '../../storage/statement-values.ts'
import type { Transaction } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables.ts'
import { toEventData } from './reported-values.ts'
import type { Report, RunEvent } from './run.ts'

export async function findRun(tx: Transaction, accountId: string, id: string): Promise<RunsTable | undefined> {
  const runId = parseId(id)
  const [row] = runId === undefined ? [] : await tx.all(tx.statements.findRun, [runId, accountId])
  return row
}

/** Appends an event after the run's last one. */
export async function appendEvent(tx: Transaction, runId: string, { at, type, data }: Report): Promise<void> {
  await tx.all(tx.statements.appendEvent, [runId, at, type, JSON.stringify(data), runId])
}

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
  const type = row.type as RunEvent['type']
  return { ...row, type, data: toEventData(type, JSON.parse(row.data)) }
}
