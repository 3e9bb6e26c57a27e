/** Retention periods, and the purge of expired runs and audit log entries. */
import type { Config } from '../config/config.ts'
import { eraseBatch, rowsMax } from '../domain/run-api/run-erasure.ts'
import { rolledUpUntil } from '../domain/statistics/run-rollups.ts'
import { dayMilliseconds, type PurgeTarget, purgeById } from '../storage/purge-target.ts'
import { findExpiredRuns } from '../storage/runs/run-maintenance.ts'
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

/** A run has at least one event, so that more candidates would not fit into `rowsMax`. */
const candidatesMax = rowsMax / 2

const findExpiredEntries = statement<{ id: string }, [upTo: number, limit: number]>(
  'SELECT id FROM audit_log WHERE at <= ? ORDER BY at, id LIMIT ?',
)

/** The run of an idempotency key must exist for a day after it was queued. One hour more allows for clock skew. */
const runMillisecondsMin = dayMilliseconds + 60 * 60 * 1000

/** Finished runs with their events, steps and artifacts; first deleted ones that are not erased yet. */
export function expiredRuns(retentionDays: number, now: () => number): PurgeTarget {
  const retention = Math.max(retentionDays * dayMilliseconds, runMillisecondsMin)
  // Runs that are not in the usage yet wait for it, as after a long time without maintenance.
  const findRuns = async (tx: Transaction, limit: number) =>
    tx.all(findExpiredRuns, [Math.min(now() - retention, await rolledUpUntil(tx)), limit])
  return {
    concurrent: true,
    next: async (tx) => {
      const [first] = await findRuns(tx, 1)
      return first && `${first.id}/${first.artifacts}/${first.first_event}`
    },
    remove: async (tx) => eraseBatch(tx, await findRuns(tx, candidatesMax)),
  }
}

export function expiredAuditLogEntries(retentionDays: number, now: () => number): PurgeTarget {
  return purgeById('audit_log', (tx, limit) =>
    tx.all(findExpiredEntries, [now() - retentionDays * dayMilliseconds, limit]),
  )
}
