/** Time-driven changes: delays end, schedules queue runs, runs and leases expire, and expired data is purged. */
import type { Logger } from 'pino'
import type { StorageUsage } from '../domain/accounts/storage-usage.ts'
import { unfinishedErasures, unfinishedVersions } from '../domain/browser-contexts/context-erasure.ts'
import { expiredBulkActions } from '../domain/bulk-actions/bulk-actions.ts'
import type { BulkWorker } from '../domain/bulk-actions/bulk-worker.ts'
import { supersededDeployments } from '../domain/deployments/deployments.sql.ts'
import { completeAttempt, resumeForFreeContexts } from '../domain/queue/attempts.ts'
import {
  expiredStarts,
  findStartableGroups,
  nextPermit,
  resumeGroups,
  resumeNextOfGroups,
  resumePermitted,
} from '../domain/queue/limits.ts'
import { appendStatus } from '../domain/queue/runs.sql.ts'
import { hasDeadWorkers, removeDeadWorkers } from '../domain/queue/workers.ts'
import { RunArtifacts } from '../domain/run-api/artifacts.ts'
import {
  type FailedAttempt,
  type FinishedRun,
  noRetry,
  type RunObserver,
  toFinishedRun,
} from '../domain/runs/run-state.ts'
import type { Scheduler } from '../domain/schedules/scheduler.ts'
import { RunRollups } from '../domain/statistics/run-rollups.ts'
import { expiredDeliveries } from '../domain/webhooks/webhook-deliveries.ts'
import type { Workflow } from '../domain/workflows/workflow.ts'
import type { PurgeTarget } from '../storage/purge-target.ts'
import {
  endDelays,
  expireRun,
  findExpiringRuns,
  findLostRun,
  findNextDelayEnd,
} from '../storage/runs/run-maintenance.ts'
import { type Store, statement, type Transaction } from '../storage/store.ts'
import { expiredAuditLogEntries, expiredRuns, type Retention } from './retention.ts'

const findExpiredKey = statement<{ run_id: string }, [now: number]>(
  'SELECT run_id FROM idempotency_keys WHERE expires_at <= ? LIMIT 1',
)

const deleteExpiredKeys = statement<object, [now: number]>('DELETE FROM idempotency_keys WHERE expires_at <= ?')

/** The current workflows of an account, whose limits and rates apply to runs that wait. */
interface CurrentWorkflows {
  current(accountId: string): { get(workflowId: string): Workflow | undefined }
}

/** The longest time between two checks. Ends of delays and times of schedules and throttles are checked on time. */
const intervalMilliseconds = 1000

interface MaintenanceOptions {
  store: Store
  retention: Retention
  log: Pick<Logger, 'warn'>
  now?: () => number
  observer?: RunObserver
  usage?: StorageUsage
  workflows?: CurrentWorkflows
  scheduler?: Pick<Scheduler, 'once' | 'nextDue'>
  bulkWorker?: Pick<BulkWorker, 'once'>
}

/** Safe to run in any number of processes on one store. */
export class Maintenance {
  readonly #options: MaintenanceOptions
  readonly #store: Store
  readonly #purges: readonly Purge[]
  readonly #rollups: RunRollups
  readonly #now: () => number
  /** The last concurrency group that was examined. */
  #lastGroup = ''
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #stopped = false

  constructor(options: MaintenanceOptions) {
    const { store, retention, now = Date.now } = options
    this.#options = options
    this.#store = store
    this.#now = now
    const targets = [
      new RunArtifacts(store, retention.artifacts, now).expired,
      expiredRuns(retention.runs, now),
      expiredAuditLogEntries(retention.auditLog, now),
      supersededDeployments(retention.runs, now),
      expiredDeliveries(retention.runs, now),
      expiredBulkActions(retention.runs, now),
      expiredStarts(now),
      unfinishedVersions(now),
      unfinishedErasures(now),
    ]
    this.#purges = targets.map((target) => new Purge(store, target))
    this.#rollups = new RunRollups(store, now)
  }

  /** Runs now and repeatedly until it is stopped. */
  start(): void {
    this.#running = this.#runAndSchedule()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#running
    await this.#options.usage?.stop().catch((error: unknown) => this.#warn(error))
  }

  #warn(err: unknown): void {
    this.#options.log.warn({ err }, 'maintenance failed; retrying')
  }

  async #runAndSchedule(): Promise<void> {
    const milliseconds = await this.once().catch((error: unknown) => {
      this.#warn(error)
      return intervalMilliseconds
    })
    if (!this.#stopped) this.#timer = setTimeout(() => this.start(), milliseconds)
  }

  /**
   * Applies the changes that are due; returns the milliseconds until the next run. Writes only when a change is due.
   */
  async once(): Promise<number> {
    const { observer, scheduler, usage } = this.#options
    const now = this.#now()
    const groups = await this.#findStartableGroups()
    if (groups.length > 0 || (await this.#isAnythingDue(now))) {
      const options = { concurrent: true, exclusive: 'maintenance' } as const
      const { finished, failed, leasesExpired } = await this.#store.write((tx) => this.#run(tx, now, groups), options)
      for (const attempt of failed) observer?.attemptFailed?.(attempt)
      for (const run of finished) observer?.finished(run)
      if (leasesExpired > 0) observer?.leasesExpired(leasesExpired)
      this.#store.notify('queue')
      this.#store.notify('runs')
    }
    // Before work without a deadline.
    await scheduler?.once()
    await usage?.maintain()
    const interval = await this.#workThroughBatches()
    const scheduled = await scheduler?.nextDue()
    const next = Math.min(...[await this.#nextDelayEnd(), scheduled].map((at) => at ?? Number.POSITIVE_INFINITY))
    return Math.min(interval, Math.max(1, next - this.#now()))
  }

  /**
   * Purges a batch of each target, adds a batch to the rollups, and works on a batch of a bulk action. If rows remain, the
   * next call follows after a pause as long as this one took.
   */
  async #workThroughBatches(): Promise<number> {
    const startedAt = performance.now()
    let hasMore = await this.#rollups.once()
    if (await this.#options.bulkWorker?.once()) hasMore = true
    for (const purge of this.#purges) if (await purge.once()) hasMore = true
    return hasMore ? Math.min(intervalMilliseconds - 1, Math.ceil(performance.now() - startedAt)) : intervalMilliseconds
  }

  async #isAnythingDue(now: number): Promise<boolean> {
    const { read } = this.#store
    const delayEnd = await this.#nextDelayEnd()
    if (delayEnd !== null && delayEnd <= now) return true
    for (const due of [findExpiringRuns, findLostRun, findExpiredKey]) {
      if ((await read.all<object, [number]>(due, [now])).length > 0) return true
    }
    if ((await read.all(read.statements.freeContexts, [])).length > 0) return true
    return hasDeadWorkers(read, now)
  }

  async #findStartableGroups(): Promise<string[]> {
    const find = (run: { account_id: string; workflow_id: string }) =>
      this.#options.workflows?.current(run.account_id).get(run.workflow_id)
    const { groups, last } = await findStartableGroups(this.#store.read, find, this.#lastGroup)
    this.#lastGroup = last
    return groups
  }

  /** When the next delay ends or a throttle permits a start. */
  async #nextDelayEnd(): Promise<number | null> {
    const [row] = await this.#store.read.all(findNextDelayEnd, [])
    const [delayEnd, permit] = [row?.at ?? null, await nextPermit(this.#store.read)]
    return delayEnd === null || permit === null ? (delayEnd ?? permit) : Math.min(delayEnd, permit)
  }

  async #run(tx: Transaction, now: number, groups: readonly string[]) {
    // Before delays end: a run whose delay ends no sooner than its expiry must expire.
    const finished = await this.#expireRuns(tx, now)
    const failed: FailedAttempt[] = []
    const lost = await tx.all(tx.statements.lockLostRuns, [now])
    for (const row of lost) {
      const ended = await completeAttempt(tx, row, { kind: 'workerLost' }, noRetry, now)
      if (ended.finished) finished.push(ended.finished)
      if (ended.failed) failed.push(ended.failed)
    }
    await tx.all(endDelays, [now])
    await tx.all(deleteExpiredKeys, [now])
    await resumeForFreeContexts(tx)
    await resumePermitted(tx, now)
    await resumeGroups(tx, groups)
    await removeDeadWorkers(tx, now)
    return { finished, failed, leasesExpired: lost.length }
  }

  async #expireRuns(tx: Transaction, now: number): Promise<FinishedRun[]> {
    const expired: FinishedRun[] = []
    const rows: { concurrency_group: string | null }[] = []
    for (const { id } of await tx.all(findExpiringRuns, [now])) {
      const [run] = await tx.all(expireRun, [now, id])
      if (!run) continue
      expired.push(toFinishedRun({ ...run, started_at: null }, expiry, now))
      await appendStatus(tx, { id, attempts: 0 }, expiry.status, expiry.reason, now)
      rows.push(run)
    }
    await resumeNextOfGroups(tx, rows)
    return expired
  }
}

const expiry = { status: 'expired', reason: 'notStartedInTime' } as const

// Purges expired data in batches, by one process at a time.

class Purge {
  readonly #store: Store
  readonly #target: PurgeTarget
  /** The next item to purge when this process finished its last batch. */
  #next: string | undefined

  constructor(store: Store, target: PurgeTarget) {
    this.#store = store
    this.#target = target
  }

  /**
   * Purges a batch; returns whether there is more to purge soon. When another process purges the same target, this one
   * writes nothing and leaves the rest to it until the next regular check.
   */
  async once(): Promise<boolean> {
    const { next, remove, concurrent = false } = this.#target
    const item = await next(this.#store.read)
    const isPurgedByOther = this.#next !== undefined && this.#next !== item
    this.#next = undefined
    if (item === undefined || isPurgedByOther) return false
    const purge = async (tx: Transaction) => {
      if ((await next(tx)) !== item) return false
      await remove(tx)
      return true
    }
    if (await this.#store.write(purge, { concurrent, exclusive: 'maintenance' })) {
      this.#next = await next(this.#store.read)
    }
    return this.#next !== undefined
  }
}
