/** Erases finished runs with their events, steps and artifacts, one batch per transaction. */
import { eraseRest, takeBatch } from '../../storage/purge-target.ts'
import { deleteRuns, type ErasableRun, findHidden, hideRun } from '../../storage/runs/run-maintenance.ts'
import { inList } from '../../storage/statement-values.ts'
import { type Store, statement, type Transaction } from '../../storage/store.ts'
import { type Actor, type ApiKeyUse, recordAudit, toActor } from '../audit-log/audit-log.ts'
import { findRun } from '../queue/runs.sql.ts'
import { isFinal, type RunStatus } from '../runs/run-state.ts'
import { addBeforeDeletion } from '../statistics/usage-reports.ts'
import { storeBodies } from '../webhooks/webhook-deliveries.ts'
import { deleteArtifact } from './artifacts.ts'

/** Limits of a batch, over runs, events and steps, which bound the time under the write lock. */
export const rowsMax = 500
const bytesMax = 1024 * 1024

const deleteTerms = statement<object, [runId: string]>("DELETE FROM run_terms WHERE run_id || '' = ?")
const findArtifacts = statement<{ name: string; size_bytes: number }, [runId: string]>(
  'SELECT name, size_bytes FROM artifacts WHERE run_id = ? ORDER BY name',
)
const findSteps = statement<{ name: string; size_bytes: number }, [runId: string, limit: number]>(
  'SELECT name, octet_length(value) AS size_bytes FROM run_steps WHERE run_id = ? ORDER BY name LIMIT ?',
)
const findEvents = statement<{ sequence: number; size_bytes: number }, [runId: string, limit: number]>(
  'SELECT sequence, octet_length(data) AS size_bytes FROM run_events WHERE run_id = ? ORDER BY sequence LIMIT ?',
)
const deleteEvents = statement<object, [runId: string, upToSequence: number]>(
  'DELETE FROM run_events WHERE run_id = ? AND sequence <= ?',
)

/**
 * Erases a finished run with its events and artifacts. Returns `undefined` if the account has no such run. The run's
 * idempotency key stays in use until it expires, so that a repeated request does not run a second time.
 */
export async function deleteRun(
  store: Store,
  accountId: string,
  id: string,
  by: Actor | ApiKeyUse,
): Promise<'deleted' | 'unfinished' | undefined> {
  const deleted = await store.write(async (tx) => {
    const row = await findRun(tx, accountId, id)
    if (!row || !isFinal(row.status as RunStatus)) return row && ('unfinished' as const)
    const subject = { id: row.id, name: row.workflow_id }
    await recordAudit(tx, accountId, { action: 'run.deleted', by: await toActor(tx, by), subject })
    await storeBodies(tx, [row.id])
    await addBeforeDeletion(tx, row.id)
    await tx.all(hideRun, [row.id])
    await tx.all(deleteTerms, [row.id])
    return { id: row.id, hasMore: await eraseHidden(tx, row.id) }
  })
  if (!deleted || deleted === 'unfinished') return deleted
  await eraseRest(store, deleted.hasMore, (tx) => eraseHidden(tx, deleted.id))
  return 'deleted'
}

/** Erases the next batch of a hidden run. Returns whether more is left. */
async function eraseHidden(tx: Transaction, runId: string): Promise<boolean> {
  const runs = await tx.all(findHidden, [runId])
  await eraseBatch(tx, runs)
  return (await tx.all(findHidden, [runId])).length > 0
}

/** Erases the first runs that fit into one transaction, or a part of the first. */
export async function eraseBatch(tx: Transaction, runs: readonly ErasableRun[]): Promise<void> {
  const [first] = runs
  if (!first) return
  if (first.artifacts > 0) return eraseArtifacts(tx, first.id)
  const batch = await takeRuns(tx, runs)
  if (batch.length > 0) {
    await storeBodies(tx, batch)
    return deleteRuns(tx, batch)
  }
  return first.steps > 0 ? eraseSteps(tx, first.id) : eraseEvents(tx, first)
}

/** The first runs that fit into one transaction; none if the first alone is too large. */
async function takeRuns(tx: Transaction, runs: readonly ErasableRun[]): Promise<string[]> {
  let rows = 0
  const batch = runs.filter((run) => {
    rows += 1 + eventCount(run) + run.steps
    return rows <= rowsMax && run.artifacts === 0
  })
  if (batch.length === 0) return []
  const { marks, values } = inList(batch.map(({ id }) => id))
  const events = await tx.all<{ run_id: string; bytes: number }>(
    `SELECT run_id, SUM(octet_length(data)) AS bytes FROM run_events WHERE run_id IN (${marks}) GROUP BY run_id`,
    values,
  )
  const eventBytes = new Map(events.map(({ run_id, bytes }) => [run_id, bytes]))
  const sized = batch.map((run) => ({ ...run, size_bytes: run.bytes + (eventBytes.get(run.id) ?? 0) }))
  const [first] = sized
  if (first && first.size_bytes > bytesMax && eventCount(first) + first.steps > 0) return []
  return takeBatch(sized, bytesMax).map(({ id }) => id)
}

function eventCount({ first_event, last_event }: ErasableRun): number {
  return first_event === null || last_event === null ? 0 : last_event - first_event + 1
}

async function eraseArtifacts(tx: Transaction, runId: string): Promise<void> {
  const artifacts = await tx.all(findArtifacts, [runId])
  for (const { name } of takeBatch(artifacts)) await tx.all(deleteArtifact, [runId, name])
}

async function eraseSteps(tx: Transaction, runId: string): Promise<void> {
  const names = takeBatch(await tx.all(findSteps, [runId, rowsMax]), bytesMax).map(({ name }) => name)
  const { marks, values } = inList(names)
  await tx.all(`DELETE FROM run_steps WHERE run_id = ? AND name IN (${marks})`, [runId, ...values])
}

/** Oldest first, so that the rest, with the final event, stays complete until the last batch. */
async function eraseEvents(tx: Transaction, { id }: ErasableRun): Promise<void> {
  const events = await tx.all(findEvents, [id, rowsMax])
  const last = takeBatch(events, bytesMax).at(-1)
  if (last) await tx.all(deleteEvents, [id, last.sequence])
}
