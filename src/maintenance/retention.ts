/** Retention periods, and the purge of expired runs and audit log entries. */
import type { Config } from '../config.ts'
import { deleteArtifact } from '../domain/runs/artifacts.ts'
import { dayMilliseconds, type PurgeTarget, takeBatch } from '../storage/purge-target.ts'
import { inList } from '../storage/statement-values.ts'
import { statement, type Transaction } from '../storage/store.ts'

/** In days. */
export interface Retention {
  runs: number
  artifacts: number
  auditLog: number
}

type RetentionConfig = Pick<Config, 'RUN_RETENTION_DAYS' | 'ARTIFACT_RETENTION_DAYS' | 'AUDIT_LOG_RETENTION_DAYS'>

export function retentionFrom(config: RetentionConfig): Retention {
  const { RUN_RETENTION_DAYS: runs, ARTIFACT_RETENTION_DAYS, AUDIT_LOG_RETENTION_DAYS: auditLog } = config
  // Artifacts are purged with their run at the latest. Their `expiresAt` says so.
  return { runs, artifacts: Math.min(ARTIFACT_RETENTION_DAYS, runs), auditLog }
}

/** Limits of a batch, over runs and events, which bound the time under the write lock. */
const rowsMax = 500
const bytesMax = 1024 * 1024

/** A run has at least one event, so that more candidates would not fit into `rowsMax`. */
const candidatesMax = rowsMax / 2

interface ExpiredRun {
  id: string
  bytes: number
  first_event: number | null
  last_event: number | null
  artifacts: number
}

/** Sequence numbers have no gaps, so that the first and the last one are enough to count events. */
const findExpiredRuns = statement<ExpiredRun, [finishedUpTo: number, limit: number]>(`SELECT id,
    octet_length(variables) + octet_length(COALESCE(output, '')) + octet_length(COALESCE(error, '')) AS bytes,
    (SELECT MIN(sequence) FROM run_events WHERE run_id = runs.id) AS first_event,
    (SELECT MAX(sequence) FROM run_events WHERE run_id = runs.id) AS last_event,
    (SELECT COUNT(*) FROM artifacts WHERE run_id = runs.id) AS artifacts
  FROM runs WHERE finished_at <= ? ORDER BY finished_at, id LIMIT ?`)
const findArtifacts = statement<{ name: string; size_bytes: number }, [runId: string]>(
  'SELECT name, size_bytes FROM artifacts WHERE run_id = ? ORDER BY name',
)
const findEvents = statement<{ sequence: number; size_bytes: number }, [runId: string, limit: number]>(
  'SELECT sequence, octet_length(data) AS size_bytes FROM run_events WHERE run_id = ? ORDER BY sequence LIMIT ?',
)
const deleteEvents = statement<object, [runId: string, upToSequence: number]>(
  'DELETE FROM run_events WHERE run_id = ? AND sequence <= ?',
)
const findExpiredEntries = statement<{ id: string }, [upTo: number, limit: number]>(
  'SELECT id FROM audit_log WHERE at <= ? ORDER BY at, id LIMIT ?',
)

/** The run of an idempotency key must exist for a day after it was queued. One hour more allows for clock skew. */
const runMillisecondsMin = dayMilliseconds + 60 * 60 * 1000

/** Finished runs with their events, steps and artifacts. */
export function expiredRuns(retentionDays: number, now: () => number): PurgeTarget {
  const retention = Math.max(retentionDays * dayMilliseconds, runMillisecondsMin)
  const findRuns = (tx: Transaction, limit: number) => tx.all(findExpiredRuns, [now() - retention, limit])
  return {
    concurrent: true,
    next: async (tx) => {
      const [first] = await findRuns(tx, 1)
      return first && `${first.id}/${first.artifacts}/${first.first_event}`
    },
    remove: async (tx) => {
      const runs = await findRuns(tx, candidatesMax)
      const [first] = runs
      if (!first) return
      if (first.artifacts > 0) return removeArtifacts(tx, first.id)
      const batch = await takeRuns(tx, runs)
      if (batch.length > 0) return removeRuns(tx, batch)
      return removeEvents(tx, first)
    },
  }
}

export function expiredAuditLogEntries(retentionDays: number, now: () => number): PurgeTarget {
  const findEntries = (tx: Transaction, limit: number) =>
    tx.all(findExpiredEntries, [now() - retentionDays * dayMilliseconds, limit])
  return {
    concurrent: true,
    next: async (tx) => (await findEntries(tx, 1))[0]?.id,
    remove: async (tx) => {
      const ids = (await findEntries(tx, rowsMax)).map(({ id }) => id)
      if (ids.length > 0) await deleteIn(tx, 'audit_log', 'id', ids)
    },
  }
}

/** The first runs that fit into one transaction; none if the first alone is too large. */
async function takeRuns(tx: Transaction, runs: readonly ExpiredRun[]): Promise<string[]> {
  let rows = 0
  const batch = runs.filter((run) => {
    rows += 1 + eventCount(run)
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
  if (first && first.size_bytes > bytesMax && eventCount(first) > 0) return []
  return takeBatch(sized, bytesMax).map(({ id }) => id)
}

function eventCount({ first_event, last_event }: ExpiredRun): number {
  return first_event === null || last_event === null ? 0 : last_event - first_event + 1
}

async function removeRuns(tx: Transaction, ids: readonly string[]): Promise<void> {
  await deleteIn(tx, 'run_events', 'run_id', ids)
  await deleteIn(tx, 'run_steps', 'run_id', ids)
  await deleteIn(tx, 'runs', 'id', ids)
}

async function deleteIn(tx: Transaction, table: string, column: string, ids: readonly string[]): Promise<void> {
  const { marks, values } = inList(ids)
  await tx.all(`DELETE FROM ${table} WHERE ${column} IN (${marks})`, values)
}

async function removeArtifacts(tx: Transaction, runId: string): Promise<void> {
  const artifacts = await tx.all(findArtifacts, [runId])
  for (const { name } of takeBatch(artifacts)) await tx.all(deleteArtifact, [runId, name])
}

/** Oldest first, so that the rest, with the final event, stays complete until the last batch. */
async function removeEvents(tx: Transaction, { id }: ExpiredRun): Promise<void> {
  const events = await tx.all(findEvents, [id, rowsMax])
  const last = takeBatch(events, bytesMax).at(-1)
  if (last) await tx.all(deleteEvents, [id, last.sequence])
}
