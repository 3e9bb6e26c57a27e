/**
 * How long what is finished is kept, and the removal of runs after it: with everything that belongs to them, a portion
 * in each transaction.
 */
import type { Config } from '../config.ts'
import { dayMilliseconds, type PurgeTarget, takeBatch } from '../storage/purge-target.ts'
import { inList } from '../storage/statement-values.ts'
import type { Transaction } from '../storage/store.ts'

/** In days. */
export interface Retention {
  runs: number
  artifacts: number
  auditLog: number
}

type Days = 'RUN_RETENTION_DAYS' | 'ARTIFACT_RETENTION_DAYS' | 'AUDIT_LOG_RETENTION_DAYS'

export function retentionOf(config: Pick<Config, Days>): Retention {
  const { RUN_RETENTION_DAYS: runs, ARTIFACT_RETENTION_DAYS, AUDIT_LOG_RETENTION_DAYS: auditLog } = config
  // An artifact goes with its run at the latest, and tells its caller so.
  return { runs, artifacts: Math.min(ARTIFACT_RETENTION_DAYS, runs), auditLog }
}

/** Bound how long the write lock is held: runs, events and artifacts together, and what is in them. */
const rowsMax = 500
const bytesMax = 1024 * 1024

/** Few enough that looking at them is nothing, and as many as have `rowsMax` rows with an event each. */
const candidatesMax = rowsMax / 2

/** The oldest first. Sequence numbers have no gaps, so that two look-ups tell how many events a run has. */
const oldestSql = `SELECT id,
    octet_length(variables) + octet_length(COALESCE(output, '')) + octet_length(COALESCE(error, '')) AS bytes,
    (SELECT MIN(sequence) FROM run_events WHERE run_id = runs.id) AS first_event,
    (SELECT MAX(sequence) FROM run_events WHERE run_id = runs.id) AS last_event,
    (SELECT COUNT(*) FROM artifacts WHERE run_id = runs.id) AS artifacts
  FROM runs WHERE finished_at <= ? ORDER BY finished_at, id LIMIT ?`
const artifactsSql = 'SELECT name, size_bytes FROM artifacts WHERE run_id = ? ORDER BY name'
const removeArtifactSql = 'DELETE FROM artifacts WHERE run_id = ? AND name = ?'
const eventsSql = `SELECT sequence, octet_length(data) AS size_bytes FROM run_events
  WHERE run_id = ? ORDER BY sequence LIMIT ?`
const removeEventsSql = 'DELETE FROM run_events WHERE run_id = ? AND sequence <= ?'

interface Old {
  id: string
  bytes: number
  first_event: number | null
  last_event: number | null
  artifacts: number
}

/**
 * An idempotency key is remembered for a day from when its run was queued, and must find it: an hour more for clocks that
 * differ.
 */
const keptMillisecondsMin = dayMilliseconds + 60 * 60 * 1000

export function finishedRuns(retentionDays: number, now: () => number): PurgeTarget {
  const kept = Math.max(retentionDays * dayMilliseconds, keptMillisecondsMin)
  const oldest = (tx: Transaction, limit: number) => tx.all<Old>(oldestSql, [now() - kept, limit])
  return {
    concurrent: true,
    next: async (tx) => {
      const [first] = await oldest(tx, 1)
      return first && `${first.id}/${first.artifacts}/${first.first_event}`
    },
    remove: async (tx) => {
      const runs = await oldest(tx, candidatesMax)
      const [first] = runs
      if (!first) return
      if (first.artifacts > 0) return removeArtifacts(tx, first.id)
      const small = await portionOfRuns(tx, runs)
      if (small.length > 0) return removeRuns(tx, small)
      return removeEvents(tx, first)
    },
  }
}

/** The first of the runs: as many as may go in one transaction, none where the first alone is too much. */
async function portionOfRuns(tx: Transaction, runs: readonly Old[]): Promise<string[]> {
  let rows = 0
  const few = runs.filter((run) => {
    rows += 1 + eventsOf(run)
    return rows <= rowsMax && run.artifacts === 0
  })
  if (few.length === 0) return []
  const { marks, values } = inList(few.map(({ id }) => id))
  const events = await tx.all<{ run_id: string; bytes: number }>(
    `SELECT run_id, SUM(octet_length(data)) AS bytes FROM run_events WHERE run_id IN (${marks}) GROUP BY run_id`,
    values,
  )
  const eventBytes = new Map(events.map(({ run_id, bytes }) => [run_id, bytes]))
  const sized = few.map((run) => ({ ...run, size_bytes: run.bytes + (eventBytes.get(run.id) ?? 0) }))
  const [first] = sized
  if (first && first.size_bytes > bytesMax && eventsOf(first) > 0) return []
  return takeBatch(sized, bytesMax).map(({ id }) => id)
}

function eventsOf({ first_event, last_event }: Old): number {
  return first_event === null || last_event === null ? 0 : last_event - first_event + 1
}

async function removeRuns(tx: Transaction, ids: readonly string[]): Promise<void> {
  const { marks, values } = inList(ids)
  await tx.all(`DELETE FROM run_events WHERE run_id IN (${marks})`, values)
  await tx.all(`DELETE FROM run_steps WHERE run_id IN (${marks})`, values)
  await tx.all(`DELETE FROM runs WHERE id IN (${marks})`, values)
}

async function removeArtifacts(tx: Transaction, runId: string): Promise<void> {
  const artifacts = await tx.all<{ name: string; size_bytes: number }>(artifactsSql, [runId])
  for (const { name } of takeBatch(artifacts)) await tx.all(removeArtifactSql, [runId, name])
}

/** From the first on: what is left of the run's events, the final one among them, is whole until the last portion. */
async function removeEvents(tx: Transaction, { id }: Old): Promise<void> {
  const events = await tx.all<{ sequence: number; size_bytes: number }>(eventsSql, [id, rowsMax])
  const last = takeBatch(events, bytesMax).at(-1)
  if (last) await tx.all(removeEventsSql, [id, last.sequence])
}
