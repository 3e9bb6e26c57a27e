/**
 * Adds up finished runs by account, workflow and time of creation, and their usage by day. Maintenance does it a minute
 * after they finished, so that completing a run writes nothing for statistics.
 */
import { type FinishedRow, findBatchEnd, findUsed } from '../../storage/runs/run-maintenance.ts'
import { type Store, statement, type Transaction } from '../../storage/store.ts'
import type { RunRollupsTable } from '../../storage/tables/run-tables.ts'
import { addCounts, noRuns, type OutcomeCounts, outcomes } from './outcome-counts.ts'
import { addUsage, BrowserWorkflows, deleteOldUsage } from './run-usage.ts'

// Counts of durations in exponential buckets, from which percentiles follow with a known error.

/** Each bucket is 19 % wider than the one before, so a percentile is at most 9 % from the true one. */
const bucketsPerDoubling = 4

/** Counts by bucket; empty buckets are left out. */
type DurationHistogram = Record<number, number>

function addDuration(histogram: DurationHistogram, milliseconds: number): void {
  const bucket = Math.floor(Math.log2(Math.max(1, milliseconds)) * bucketsPerDoubling)
  histogram[bucket] = (histogram[bucket] ?? 0) + 1
}

function addHistogram(histogram: DurationHistogram, other: DurationHistogram): void {
  for (const [bucket, count] of Object.entries(other)) {
    histogram[Number(bucket)] = (histogram[Number(bucket)] ?? 0) + count
  }
}

/** A percentile in milliseconds; `null` without durations. @param fraction 0.95 for the 95th percentile. */
export function percentile(histogram: DurationHistogram, fraction: number): number | null {
  // Integer keys are in ascending order.
  const buckets = Object.entries(histogram)
  const total = buckets.reduce((sum, [, count]) => sum + count, 0)
  let missing = Math.max(1, Math.ceil(total * fraction))
  for (const [bucket, count] of buckets) {
    missing -= count
    if (missing <= 0) return 2 ** ((Number(bucket) + 0.5) / bucketsPerDoubling)
  }
  return null
}

export interface RunTally {
  counts: OutcomeCounts
  durations: DurationHistogram
  lastFinishedAt: number
}

const minuteMilliseconds = 60_000
const hourMilliseconds = 60 * minuteMilliseconds

/** Retention of the rows of each period: longer than the longest range that is shown from them. */
const rollupPeriods = [
  { seconds: 300, keptMilliseconds: 2 * hourMilliseconds },
  { seconds: 3600, keptMilliseconds: 8 * 24 * hourMilliseconds },
] as const
export type PeriodSeconds = (typeof rollupPeriods)[number]['seconds']

/**
 * A run may become visible this long after its time of finishing: transactions take a while, and clocks of machines
 * differ. Later ones are missing in statistics.
 */
export const delayMilliseconds = minuteMilliseconds

/** Between two batches, unless more runs than one batch wait. */
const intervalMilliseconds = 10_000

/** Runs per transaction, which takes 10 to 20 ms. More, if that many finished in the same millisecond. */
const batchSize = 2000

const findProgress = statement<{ finished_until: number }, []>('SELECT finished_until FROM run_rollup_progress')

const saveProgress = statement<object, [finishedUntil: number]>(
  `INSERT INTO run_rollup_progress (id, finished_until) VALUES (1, ?)
    ON CONFLICT (id) DO UPDATE SET finished_until = excluded.finished_until`,
)

type RollupKey = [accountId: string, periodSeconds: number, startsAt: number, workflowId: string]

const findRollup = statement<RunRollupsTable, RollupKey>(
  `SELECT * FROM run_rollups WHERE account_id = ? AND period_seconds = ? AND starts_at = ? AND workflow_id = ?`,
)

const saveRollup = statement<
  object,
  [...RollupKey, number, number, number, number, number, durations: string, lastFinishedAt: number]
>(`INSERT INTO run_rollups (account_id, period_seconds, starts_at, workflow_id, succeeded, failed, timed_out, cancelled,
    expired, durations, last_finished_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (account_id, period_seconds, starts_at, workflow_id) DO UPDATE SET succeeded = excluded.succeeded,
    failed = excluded.failed, timed_out = excluded.timed_out, cancelled = excluded.cancelled,
    expired = excluded.expired, durations = excluded.durations, last_finished_at = excluded.last_finished_at`)

const deleteRollups = statement<object, [periodSeconds: number, before: number]>(
  'DELETE FROM run_rollups WHERE period_seconds = ? AND starts_at < ?',
)

/** The rollups and the usage include the runs that finished until this time. */
export async function rolledUpUntil(tx: Transaction): Promise<number> {
  const [progress] = await tx.all(findProgress, [])
  return progress?.finished_until ?? 0
}

/** Whether a run that is not in the rollups finished by `upTo`. */
export async function unaddedBefore(tx: Transaction, rolledUpUntil: number, upTo: number): Promise<boolean> {
  return (await tx.all(findBatchEnd, [rolledUpUntil, upTo, 0])).length > 0
}

export function newTally(): RunTally {
  return { counts: noRuns(), durations: {}, lastFinishedAt: 0 }
}

/** A run that a user has deleted is not counted. */
export function addRun(tally: RunTally, { status, started_at, finished_at }: FinishedRow): void {
  if (!Object.hasOwn(tally.counts, status)) return
  tally.counts[status as keyof OutcomeCounts] += 1
  if (started_at !== null) addDuration(tally.durations, finished_at - started_at)
  tally.lastFinishedAt = Math.max(tally.lastFinishedAt, finished_at)
}

export function addTally(tally: RunTally, { counts, durations, lastFinishedAt }: RunTally): void {
  addCounts(tally.counts, counts)
  addHistogram(tally.durations, durations)
  tally.lastFinishedAt = Math.max(tally.lastFinishedAt, lastFinishedAt)
}

export function toTally(row: RunRollupsTable): RunTally {
  const { succeeded, failed, timed_out: timedOut, cancelled, expired } = row
  const counts = { succeeded, failed, timedOut, cancelled, expired }
  return { counts, durations: JSON.parse(row.durations), lastFinishedAt: row.last_finished_at }
}

/** Safe in any number of processes on one store. */
export class RunRollups {
  readonly #store: Store
  readonly #now: () => number
  readonly #browsers = new BrowserWorkflows()
  #nextAt = 0

  constructor(store: Store, now: () => number) {
    this.#store = store
    this.#now = now
  }

  /** Adds a batch if one is due. Returns whether more runs wait. */
  async once(): Promise<boolean> {
    const now = this.#now()
    // Also when the clock was set back.
    if (now < this.#nextAt && now >= this.#nextAt - intervalMilliseconds) return false
    const upTo = now - delayMilliseconds
    const { read } = this.#store
    const isDue = await unaddedBefore(read, await rolledUpUntil(read), upTo)
    const options = { concurrent: true, exclusive: 'maintenance' } as const
    const hasMore = isDue && (await this.#store.write((tx) => addBatch(tx, now, upTo, this.#browsers), options))
    if (!hasMore) this.#nextAt = now + intervalMilliseconds
    return hasMore
  }
}

async function addBatch(tx: Transaction, now: number, upTo: number, browsers: BrowserWorkflows): Promise<boolean> {
  const after = await rolledUpUntil(tx)
  const [last] = await tx.all(findBatchEnd, [after, upTo, batchSize - 1])
  const runs = await tx.all(findUsed, [after, last?.finished_at ?? upTo])
  // Not the time of the clock: runs that finish after a clock was ahead would not be counted.
  const end = runs.at(-1)?.finished_at
  if (end === undefined) return false
  await addTallies(tx, runs, now)
  await addUsage(tx, runs, browsers)
  await tx.all(saveProgress, [end])
  // Once an hour.
  if (Math.floor(after / hourMilliseconds) !== Math.floor(end / hourMilliseconds)) {
    for (const { seconds, keptMilliseconds } of rollupPeriods) {
      await tx.all(deleteRollups, [seconds, now - keptMilliseconds - seconds * 1000])
    }
    await deleteOldUsage(tx, now)
  }
  return last !== undefined
}

async function addTallies(tx: Transaction, runs: readonly FinishedRow[], now: number): Promise<void> {
  const tallies = new Map<string, { key: RollupKey; tally: RunTally }>()
  for (const run of runs) {
    for (const { seconds, keptMilliseconds } of rollupPeriods) {
      const startsAt = run.created_at - (run.created_at % (seconds * 1000))
      if (startsAt < now - keptMilliseconds) continue
      const key: RollupKey = [run.account_id, seconds, startsAt, run.workflow_id]
      const { tally } = tallies.get(key.join()) ?? { tally: newTally() }
      addRun(tally, run)
      tallies.set(key.join(), { key, tally })
    }
  }
  for (const { key, tally } of tallies.values()) {
    const [stored] = await tx.all(findRollup, key)
    if (stored) addTally(tally, toTally(stored))
    const { counts, durations, lastFinishedAt } = tally
    const values = outcomes.map((outcome) => counts[outcome]) as [number, number, number, number, number]
    await tx.all(saveRollup, [...key, ...values, JSON.stringify(durations), lastFinishedAt])
  }
}
