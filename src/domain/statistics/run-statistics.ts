/** Statistics of an account's runs for the dashboard: what waits and runs now, and the outcomes of a range of time. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { type FinishedRow, findFinishedOfAccount } from '../../storage/runs/run-maintenance.ts'
import { type Store, statement } from '../../storage/store.ts'
import type { RunRollupsTable } from '../../storage/tables/run-tables.ts'
import { addCounts, noRuns, type OutcomeCounts, sumCounts } from './outcome-counts.ts'
import {
  addRun,
  addTally,
  newTally,
  type PeriodSeconds,
  percentile,
  type RunTally,
  rolledUpUntil,
  toTally,
  unaddedBefore,
} from './run-rollups.ts'

export interface CurrentRuns {
  /** Queued runs that are not delayed. */
  ready: number
  delayed: number
  running: number
  /** Those that have left their workers until a wait ends. */
  waiting: number
  oldestReady: { id: string; workflowId: string; createdAt: number } | null
}

/** The finished runs that were created within a bar of the chart, which may be several periods wide. */
export interface TimeBucket {
  startsAt: number
  endsAt: number
  counts: OutcomeCounts
}

export interface WorkflowStatistics {
  workflowId: string
  counts: OutcomeCounts
  /**
   * In milliseconds, from the first start to the end, or the execution of the last attempt if the run has waited; `null` if no
   * run has started. At most 9 % from the true value.
   */
  p50: number | null
  p95: number | null
  lastFinishedAt: number
  /** One for each bucket of the chart. */
  history: OutcomeCounts[]
}

export interface RunHistory {
  /** The current one last. */
  buckets: TimeBucket[]
  /** Most runs first. */
  workflows: WorkflowStatistics[]
  /** Whether runs that finished earlier are still being added up, which takes minutes after an upgrade. */
  isIncomplete: boolean
}

interface Range {
  period: PeriodSeconds
  bucketMilliseconds: number
  buckets: number
}

const minuteMilliseconds = 60_000
const hourMilliseconds = 60 * minuteMilliseconds

export const ranges = {
  '1h': { period: 300, bucketMilliseconds: 5 * minuteMilliseconds, buckets: 12 },
  '24h': { period: 3600, bucketMilliseconds: hourMilliseconds, buckets: 24 },
  '7d': { period: 3600, bucketMilliseconds: 6 * hourMilliseconds, buckets: 28 },
} satisfies Record<string, Range>
export type RangeName = keyof typeof ranges

/** Runs that are not in the rollups finished at most this long ago, unless maintenance is behind. */
const recentMilliseconds = 2 * minuteMilliseconds

/** SQLite reads on this thread: other requests are served between two reads. */
const sliceMilliseconds = 10_000

const findRollups = statement<RunRollupsTable, [accountId: string, periodSeconds: number, from: number]>(
  `SELECT * FROM run_rollups WHERE account_id = ? AND period_seconds = ? AND starts_at >= ?`,
)

/**
 * Reads the rollups of a range, and the runs that have finished since the last of them, so that a page that reloads
 * after a change shows it. The cost does not depend on the number of runs in the store.
 */
export class RunStatistics {
  readonly #store: Store
  readonly #now: () => number

  constructor(store: Store, now: () => number = Date.now) {
    this.#store = store
    this.#now = now
  }

  /** Not a snapshot: a run that changes its status between two counts may be in both or in neither. */
  async current(accountId: string): Promise<CurrentRuns> {
    const { read } = this.#store
    const [counted] = await read.all(read.statements.countOfAccount, [accountId, accountId, accountId, accountId])
    const { queued = 0, delayed = 0, running = 0, waiting = 0 } = counted ?? {}
    const [oldest] = queued > delayed ? await read.all(read.statements.oldestReady, [accountId, accountId]) : []
    const oldestReady = oldest ? { id: oldest.id, workflowId: oldest.workflow_id, createdAt: oldest.created_at } : null
    return { ready: queued - delayed, delayed, running, waiting, oldestReady }
  }

  async history(accountId: string, name: RangeName): Promise<RunHistory> {
    const { period, bucketMilliseconds, buckets }: Range = ranges[name]
    const { read } = this.#store
    const now = this.#now()
    const currentStart = now - (now % bucketMilliseconds)
    const from = currentStart - (buckets - 1) * bucketMilliseconds
    const until = await rolledUpUntil(read)
    const table = new HistoryTable(from, bucketMilliseconds, buckets)
    for (const row of await read.all(findRollups, [accountId, period, from])) {
      table.add(row.workflow_id, row.starts_at, toTally(row))
    }
    const recent = now - recentMilliseconds
    for (const run of await this.#finishedSince(accountId, Math.max(until, recent), now)) {
      const tally = newTally()
      addRun(tally, run)
      table.add(run.workflow_id, run.created_at, tally)
    }
    return { ...table.result(), isIncomplete: await unaddedBefore(read, until, recent) }
  }

  async #finishedSince(accountId: string, since: number, now: number): Promise<FinishedRow[]> {
    const found: FinishedRow[] = []
    for (let after = since; after < now; after += sliceMilliseconds) {
      const isLast = after + sliceMilliseconds >= now
      // Clocks of other machines may be ahead of this one's.
      const upTo = isLast ? now + hourMilliseconds : after + sliceMilliseconds
      found.push(...(await this.#store.read.all(findFinishedOfAccount, [after, upTo, accountId])))
      await nextTurn()
    }
    return found
  }
}

class HistoryTable {
  readonly #from: number
  readonly #bucketMilliseconds: number
  readonly #buckets: OutcomeCounts[]
  readonly #workflows = new Map<string, { total: RunTally; buckets: OutcomeCounts[] }>()

  constructor(from: number, bucketMilliseconds: number, buckets: number) {
    this.#from = from
    this.#bucketMilliseconds = bucketMilliseconds
    this.#buckets = Array.from({ length: buckets }, noRuns)
  }

  add(workflowId: string, createdAt: number, tally: RunTally): void {
    const index = Math.floor((createdAt - this.#from) / this.#bucketMilliseconds)
    const bucket = this.#buckets[index]
    if (!bucket) return
    const known = this.#workflows.get(workflowId)
    const ofWorkflow = known ?? { total: newTally(), buckets: this.#buckets.map(noRuns) }
    if (!known) this.#workflows.set(workflowId, ofWorkflow)
    addTally(ofWorkflow.total, tally)
    for (const counts of [bucket, ofWorkflow.buckets[index]]) if (counts) addCounts(counts, tally.counts)
  }

  result(): Pick<RunHistory, 'buckets' | 'workflows'> {
    const workflows = [...this.#workflows].map(([workflowId, { total, buckets }]) => ({
      workflowId,
      counts: total.counts,
      p50: percentile(total.durations, 0.5),
      p95: percentile(total.durations, 0.95),
      lastFinishedAt: total.lastFinishedAt,
      history: buckets,
    }))
    return {
      buckets: this.#buckets.map((counts, index) => {
        const startsAt = this.#from + index * this.#bucketMilliseconds
        return { startsAt, endsAt: startsAt + this.#bucketMilliseconds, counts }
      }),
      workflows: workflows
        .filter(({ counts }) => sumCounts(counts) > 0)
        .sort((a, b) => sumCounts(b.counts) - sumCounts(a.counts)),
    }
  }
}
