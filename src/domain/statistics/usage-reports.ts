/** Reports what an account has used, and counts runs that are deleted before maintenance has counted them. */
import { dayMilliseconds } from '../../storage/purge-target.ts'
import { findUsedById } from '../../storage/runs/run-maintenance.ts'
import { type Store, statement, type Transaction } from '../../storage/store.ts'
import type { StorageDaysTable } from '../../storage/tables/account-tables.ts'
import type { RunUsageTable } from '../../storage/tables/run-tables.ts'
import { addCounts } from './outcome-counts.ts'
import { delayMilliseconds, rolledUpUntil, unaddedBefore } from './run-rollups.ts'
import { addUsage, BrowserWorkflows, type WorkflowUsage } from './run-usage.ts'

export { dayOf } from './run-usage.ts'

/** Days that one request may ask for. */
const rangeDaysMax = 366
/** Rows that one response may have: 6 MB of JSON. */
export const rowsMax = 20_000

export interface StorageOfDay {
  day: string
  /** The most that a measurement of the day found. */
  bytes: number
}

export interface UsageReport {
  /** By day, then by workflow. */
  workflows: WorkflowUsage[]
  storage: StorageOfDay[]
  /** Runs that finished until then are counted. */
  countedUntil: number
}

/** Days in UTC, the last one included. */
export interface UsageRange {
  from: string
  to: string
}

const findUsage = statement<RunUsageTable, [accountId: string, from: string, to: string, limit: number]>(
  `SELECT * FROM run_usage WHERE account_id = ? AND day >= ? AND day <= ? ORDER BY account_id, day, workflow_id LIMIT ?`,
)

const findStorage = statement<StorageDaysTable, [accountId: string, from: string, to: string]>(
  'SELECT * FROM storage_days WHERE account_id = ? AND day >= ? AND day <= ? ORDER BY day',
)

/**
 * Counts a finished run that is about to be deleted, unless maintenance has counted it. The caller's transaction must exclude
 * maintenance.
 */
export async function addBeforeDeletion(tx: Transaction, id: string): Promise<void> {
  const [run] = await tx.all(findUsedById, [id])
  if (run && run.finished_at > (await rolledUpUntil(tx))) await addUsage(tx, [run], new BrowserWorkflows())
}

/** Validation errors of a range, whose days are valid dates. */
export function findRangeErrors({ from, to }: UsageRange): { parameter: string; detail: string }[] {
  const days = (Date.parse(to) - Date.parse(from)) / dayMilliseconds + 1
  if (days < 1) return [{ parameter: 'to', detail: `must not be before from, ${from}` }]
  if (days <= rangeDaysMax) return []
  return [{ parameter: 'to', detail: `must be at most ${rangeDaysMax - 1} days after from, ${from}` }]
}

export class RunUsage {
  readonly #store: Store
  readonly #now: () => number

  constructor(store: Store, now: () => number = Date.now) {
    this.#store = store
    this.#now = now
  }

  /**
   * Returns `undefined` if the range has more rows than a response may have.
   */
  async read(accountId: string, { from, to }: UsageRange): Promise<UsageReport | undefined> {
    const { read } = this.#store
    // Read first: what is counted meanwhile is in the rows, and not yet in the time.
    const countedUntil = await this.#countedUntil()
    const rows = await read.all(findUsage, [accountId, from, to, rowsMax + 1])
    if (rows.length > rowsMax) return undefined
    const storage = await read.all(findStorage, [accountId, from, to])
    return { workflows: rows.map(toUsage), storage: storage.map(({ day, bytes }) => ({ day, bytes })), countedUntil }
  }

  async #countedUntil(): Promise<number> {
    const { read } = this.#store
    const until = await rolledUpUntil(read)
    const upTo = this.#now() - delayMilliseconds
    return (await unaddedBefore(read, until, upTo)) ? until : Math.max(until, upTo)
  }
}

function toUsage(row: RunUsageTable): WorkflowUsage {
  const { succeeded, failed, timed_out: timedOut, cancelled, expired } = row
  return {
    day: row.day,
    workflowId: row.workflow_id,
    counts: { succeeded, failed, timedOut, cancelled, expired },
    attempts: row.attempts,
    executedMilliseconds: row.executed_ms,
    browserMilliseconds: row.browser_ms,
    artifactBytes: row.artifact_bytes,
  }
}

export function addWorkflowUsage(sum: Omit<WorkflowUsage, 'day' | 'workflowId'>, other: WorkflowUsage): void {
  addCounts(sum.counts, other.counts)
  sum.attempts += other.attempts
  sum.executedMilliseconds += other.executedMilliseconds
  sum.browserMilliseconds += other.browserMilliseconds
  sum.artifactBytes += other.artifactBytes
}
