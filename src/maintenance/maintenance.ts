/** Time-driven changes: delays end, schedules queue runs, runs and leases expire, and expired data is purged. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { StorageUsage } from '../domain/accounts/storage-usage.ts'
import { unfinishedErasures, unfinishedVersions } from '../domain/browser-contexts/context-erasure.ts'
import type { SignIns } from '../domain/browser-contexts/sign-ins.ts'
import { expiredBulkActions } from '../domain/bulk-actions/bulk-actions.ts'
import type { BulkWorker } from '../domain/bulk-actions/bulk-worker.ts'
import { supersededDeployments, unseenRemoteWorkflows } from '../domain/deployments/deployments.sql.ts'
import { expiredFiles } from '../domain/files/files.ts'
import type { Notifier } from '../domain/notifications/notifier.ts'
import { completeAttempt, resumeForFreeContexts } from '../domain/queue/attempts.ts'
import {
  expiredStarts,
  findStartableGroups,
  resumeGroups,
  resumeNextOfGroups,
  resumePermitted,
} from '../domain/queue/limits.ts'
import { appendStatus } from '../domain/queue/runs.sql.ts'
import { explainUnstarted } from '../domain/queue/sign-in-runs.ts'
import { findDueWaits } from '../domain/queue/waits.ts'
import { deadWorkerMilliseconds, removeDeadWorkers } from '../domain/queue/workers.ts'
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
import type { Contents } from '../storage/blobs/contents.ts'
import type { PurgeTarget } from '../storage/purge-target.ts'
import {
  type DueTimes,
  endDelays,
  expireRun,
  findDelayed,
  findDueTimes,
  findExpiringRuns,
} from '../storage/runs/run-maintenance.ts'
import { expireForSession, findOverdueForSession } from '../storage/runs/sign-in-statements.ts'
import { endWaits } from '../storage/runs/wait-statements.ts'
import { type Statement, type Store, statement, type Transaction } from '../storage/store.ts'
import { MaintenanceLease } from './maintenance-lease.ts'
import { expiredAuditLogEntries, expiredRuns, type Retention } from './retention.ts'

const deleteExpiredKeys = statement<object, [now: number]>('DELETE FROM idempotency_keys WHERE expires_at <= ?')

/** The current workflows of an account, whose limits and rates apply to runs that wait. */
interface CurrentWorkflows {
  current(accountId: string): { get(workflowId: string): Workflow | undefined }
  /** Of deployments, which another process may change. */
  readonly currentIds?: readonly string[]
  refresh?(): Promise<void>
}

/** Between two checks without a notification, for changes whose notification was lost. */
const quietMilliseconds = 5000
/** Between two checks while there is something to check for, and from a notification until the check. */
const busyMilliseconds = { interval: 1000, delay: 500 }
/** The same for what a caller waits for, such as a bulk action. */
const promptMilliseconds = { interval: 50, delay: 0 }
/** Between two looks for something to purge, and two measurements of storage while nothing changes. */
const idleWorkMilliseconds = 60_000
/** A measurement that began after the last change includes it. */
const measuredMilliseconds = 20_000
/** How long `stop` waits for blobs that are being deleted. */
const stopMilliseconds = 500
/** The clock was set by more than this. */
const clockStepMilliseconds = 500

interface MaintenanceOptions {
  store: Store
  retention: Retention
  log: Pick<Logger, 'warn'> & Partial<Pick<Logger, 'info'>>
  now?: () => number
  observer?: RunObserver
  usage?: StorageUsage
  contents?: Pick<Contents, 'deleteUnused'>
  workflows?: CurrentWorkflows
  /** Only processes with these two do all of the maintenance; they take its lease from others. */
  scheduler?: Pick<Scheduler, 'once'>
  bulkWorker?: Pick<BulkWorker, 'once'>
  signIns?: Pick<SignIns, 'checkDue'>
  notifier?: Pick<Notifier, 'once'>
}

/** Correct in any number of processes on one store; a lease lets one of them do the work. */
export class Maintenance {
  readonly #options: MaintenanceOptions
  readonly #store: Store
  readonly #purges: readonly Purge[]
  readonly #rollups: RunRollups
  readonly #now: () => number
  readonly #lease: MaintenanceLease
  /** The deletion of blobs that is under way. */
  #deleting: Promise<void> | undefined
  /** The last concurrency group that was examined. */
  #lastGroup = ''
  /** By a clock that cannot be set: of the last check, notification, look for something to purge, and measurement. */
  readonly #last = { check: 0, change: 0, purge: 0, measurement: 0 }
  #plannedAt = Number.POSITIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #clock: NodeJS.Timeout | undefined
  #unsubscribe: (() => void)[] = []
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
      expiredFiles(now),
      expiredAuditLogEntries(retention.auditLog, now),
      supersededDeployments(retention.runs, now),
      unseenRemoteWorkflows(retention.runs, now),
      expiredDeliveries(retention.runs, now),
      expiredBulkActions(retention.runs, now),
      expiredStarts(now),
      unfinishedVersions(now),
      unfinishedErasures(now),
    ]
    this.#purges = targets.map((target) => new Purge(store, target))
    this.#rollups = new RunRollups(store, now)
    this.#lease = new MaintenanceLease(store, options.scheduler ? 1 : 0, now)
  }

  /** Runs until it is stopped: when something is due or has changed, if this process has the lease. */
  start(): void {
    this.#unsubscribe = [this.#store.listen('maintenance', () => this.#onChange(promptMilliseconds))]
    this.#running = this.#runAndSchedule()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#running
    // A deletion that takes longer fails when the store is closed, and is repeated.
    await Promise.race([this.#deleting, delay(stopMilliseconds, undefined, { ref: false })])
    this.#work(false)
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    await this.#options.usage?.stop().catch((error: unknown) => this.#warn(error))
    await this.#lease.release().catch((error: unknown) => this.#warn(error))
  }

  #warn(err: unknown): void {
    this.#options.log.warn({ err }, 'maintenance failed; retrying')
  }

  async #runAndSchedule(): Promise<void> {
    this.#plannedAt = Number.POSITIVE_INFINITY
    this.#last.check = performance.now()
    const milliseconds = await this.#check().catch((error: unknown) => {
      this.#warn(error)
      return busyMilliseconds.interval
    })
    // A notification during the check may have planned an earlier one.
    this.#plan(performance.now() + milliseconds)
  }

  async #check(): Promise<number> {
    const untilNextCheck = await this.#lease.check()
    this.#work(this.#lease.fence !== undefined)
    if (this.#lease.fence !== undefined) return Math.min(untilNextCheck, await this.#checkAsOwner())
    await this.#options.usage?.read()
    return untilNextCheck
  }

  #plan(at: number): void {
    if (this.#stopped || at >= this.#plannedAt) return
    this.#plannedAt = at
    clearTimeout(this.#timer)
    const start = () => {
      // The check that is under way plans the next one; what has changed during it must not wait longer.
      this.#running = (this.#running ?? Promise.resolve()).then(() => this.#runAndSchedule())
    }
    this.#timer = setTimeout(start, Math.max(0, at - performance.now()))
  }

  #onChange({ interval, delay }: typeof busyMilliseconds): void {
    this.#last.change = performance.now()
    const { check, change } = this.#last
    this.#plan(Math.max(check + interval, change + delay))
  }

  /** Follows changes while this process has the lease. */
  #work(isOwner: boolean): void {
    if (isOwner === (this.#clock !== undefined)) return
    const { log, observer } = this.#options
    observer?.maintains?.(isOwner)
    clearInterval(this.#clock)
    this.#clock = undefined
    for (const unsubscribe of this.#unsubscribe.splice(1)) unsubscribe()
    if (!isOwner) return
    log.info?.({ fence: this.#lease.fence }, 'this process does the maintenance')
    for (const topic of ['queue', 'runs', 'deployments'] as const) {
      this.#unsubscribe.push(this.#store.listen(topic, () => this.#onChange(busyMilliseconds)))
    }
    const offset = () => this.#now() - performance.now()
    let last = offset()
    const checkClock = () => {
      if (Math.abs(offset() - last) > clockStepMilliseconds) this.#onChange(busyMilliseconds)
      last = offset()
    }
    this.#clock = setInterval(checkClock, busyMilliseconds.interval).unref()
    this.#last.purge = Number.NEGATIVE_INFINITY
  }

  async #checkAsOwner(): Promise<number> {
    const at = performance.now()
    const isQuiet = at - this.#last.change > quietMilliseconds / 2
    if (isQuiet) await this.#notifyChangedDeployments()
    const isPurging = at - this.#last.purge >= idleWorkMilliseconds
    const hasChanged = at - this.#last.change < measuredMilliseconds
    const isMeasuring = hasChanged || at - this.#last.measurement >= idleWorkMilliseconds
    const milliseconds = await this.once({ isPurging, isMeasuring, notifies: isQuiet })
    return Math.min(milliseconds, quietMilliseconds)
  }

  /** Best effort: the process that has changed them may have died before its notification. */
  async #notifyChangedDeployments(): Promise<void> {
    const { workflows } = this.#options
    const before = workflows?.currentIds
    await workflows?.refresh?.()
    if (workflows?.currentIds !== before) this.#store.notify('deployments')
  }

  /**
   * Applies the changes that are due; returns the milliseconds until the next call. Writes only when a change is due.
   *
   * @param options without `isPurging`, the purges that are not under way are left out; without `isMeasuring`, the same for
   * measurements of storage. With `notifies`, workers and dispatchers are notified of what waits for them.
   */
  async once({ isPurging = true, isMeasuring = true, notifies = false } = {}): Promise<number> {
    const { scheduler, signIns, usage, bulkWorker, notifier } = this.#options
    const now = this.#now()
    const due = await this.readDue()
    const isDue = (at: number | null) => at !== null && at <= now
    const groups = due.waitsForGroup ? await this.#findStartableGroups() : []
    let hasMore = this.#lastGroup !== ''
    let hasChanged = await this.#applyDue(due, groups, now)
    if (notifies && due.hasReady) this.#store.notify('queue')
    if (isDue(due.delivery)) this.#store.notify('runs')
    // Before work without a deadline.
    if (scheduler && (isDue(due.schedule) || due.scheduleWaits)) {
      await scheduler.once()
      hasChanged = true
    }
    if (signIns && isDue(due.sessionCheck) && (await signIns.checkDue())) hasChanged = true
    if (await notifier?.once(due).catch((error: unknown) => this.#warn(error))) hasChanged = true
    if (isMeasuring || usage?.isMeasuring) {
      this.#last.measurement = performance.now()
      await usage?.maintain()
      if (usage?.isMeasuring) hasMore = true
    } else await usage?.read()
    const startedAt = performance.now()
    let hasBatches = await this.#rollups.once()
    if (bulkWorker && isDue(due.bulkAction)) {
      if (await bulkWorker.once()) hasBatches = true
      hasChanged = true
    }
    if (isPurging) this.#last.purge = startedAt
    for (const purge of this.#purges) if ((isPurging || purge.hasMore) && (await purge.once())) hasBatches = true
    if (isPurging) this.#startToDeleteBlobs()
    if (hasBatches) return Math.min(busyMilliseconds.interval - 1, Math.ceil(performance.now() - startedAt))
    const next = nextTime(hasChanged ? await this.readDue() : due, this.#now(), this.#options)
    return Math.min(hasMore ? busyMilliseconds.interval : quietMilliseconds, Math.max(1, next - this.#now()))
  }

  /** Resolves when the deletion of blobs that `once` has started has ended. */
  async idle(): Promise<void> {
    await this.#deleting
  }

  /** Nothing waits for it: a bucket that does not answer must not keep maintenance from the rest. */
  #startToDeleteBlobs(): void {
    const { contents } = this.#options
    if (!contents) return
    const deleteAll = async () => {
      while (!this.#stopped && (await contents.deleteUnused())) await delay(busyMilliseconds.interval)
    }
    this.#deleting ??= deleteAll()
      .catch((error: unknown) => {
        if (!this.#stopped) this.#warn(error)
      })
      .finally(() => {
        this.#deleting = undefined
      })
  }

  /** When each kind of change is next due. */
  async readDue(): Promise<DueTimes> {
    const [due] = await this.#store.read.all(findDueTimes, [])
    if (!due) throw new Error('A statement without FROM has returned no row.')
    return due
  }

  /** Returns whether anything was due. */
  async #applyDue(due: DueTimes, groups: readonly string[], now: number): Promise<boolean> {
    const times = [due.delay, due.wait, due.sessionWait, due.permit, due.expiry, due.lease, due.idempotencyKey]
    const deadSince = now - deadWorkerMilliseconds
    const { read } = this.#store
    const isDue =
      groups.length > 0 ||
      times.some((at) => at !== null && at <= now) ||
      (due.worker !== null && due.worker <= deadSince) ||
      (due.waitsForContext !== null && (await read.all(read.statements.freeContexts, [])).length > 0)
    if (!isDue) return false
    const { observer } = this.#options
    const options = { concurrent: true, exclusive: 'maintenance' } as const
    const { finished, failed, leasesExpired } = await this.#store.write((tx) => this.#run(tx, now, groups), options)
    for (const attempt of failed) observer?.attemptFailed?.(attempt)
    for (const run of finished) observer?.finished(run)
    if (leasesExpired > 0) observer?.leasesExpired(leasesExpired)
    this.#store.notify('queue')
    this.#store.notify('runs')
    return true
  }

  async #findStartableGroups(): Promise<string[]> {
    const find = (run: { account_id: string; workflow_id: string }) =>
      this.#options.workflows?.current(run.account_id).get(run.workflow_id)
    const { groups, last } = await findStartableGroups(this.#store.read, find, this.#lastGroup)
    this.#lastGroup = last
    return groups
  }

  async #run(tx: Transaction, now: number, groups: readonly string[]) {
    const due = await lockDue(tx, now)
    // Before delays end: a run whose delay ends no sooner than its expiry must expire.
    const finished = await this.#expireRuns(tx, due.expiring, now)
    const failed: FailedAttempt[] = []
    finished.push(...(await expireWithoutSession(tx, due.withoutSession, now)))
    let leasesExpired = 0
    for (const id of due.lost) {
      const [row] = await tx.all(tx.statements.findLostRun, [id, now])
      if (!row) continue
      leasesExpired += 1
      const ended = await completeAttempt(tx, row, { kind: 'workerLost' }, noRetry, now)
      if (ended.finished) finished.push(ended.finished)
      if (ended.failed) failed.push(ended.failed)
    }
    if (due.delayed.length > 0) await endDelays(tx, due.delayed, now)
    if (due.waiting.length > 0) await endWaits(tx, due.waiting, now)
    await tx.all(deleteExpiredKeys, [now])
    await resumeForFreeContexts(tx)
    await resumePermitted(tx, now)
    await resumeGroups(tx, groups)
    await removeDeadWorkers(tx, now)
    return { finished, failed, leasesExpired }
  }

  async #expireRuns(tx: Transaction, ids: readonly string[], now: number): Promise<FinishedRun[]> {
    const expired: FinishedRun[] = []
    const rows: { concurrency_group: string | null }[] = []
    for (const id of ids) {
      const [run] = await tx.all(expireRun, [now, id])
      if (!run) continue
      expired.push(toFinishedRun({ ...run, started_at: null }, expiry, now))
      await appendStatus(tx, { ...run, id }, expiry.status, expiry.reason, now)
      await explainUnstarted(tx, { ...run, id })
      rows.push(run)
    }
    await resumeNextOfGroups(tx, rows)
    return expired
  }
}

/** Finds the runs for which something is due, and locks all of them at once: the order of locks is that of their ids. */
async function lockDue(tx: Transaction, now: number) {
  const find = async (query: Statement<{ id: string }, [now: number]>) =>
    (await tx.all(query, [now])).map(({ id }) => id)
  const due = {
    expiring: await find(findExpiringRuns),
    withoutSession: await find(findOverdueForSession),
    lost: await find(tx.statements.findLostRuns),
    delayed: await find(findDelayed),
    waiting: await findDueWaits(tx, now),
  }
  const ids = Object.values(due).flat()
  if (ids.length > 0) await tx.statements.lockEnding(tx, ids)
  return due
}

/** Runs that have waited too long for their browser context to be signed in. */
async function expireWithoutSession(tx: Transaction, ids: readonly string[], now: number): Promise<FinishedRun[]> {
  const expired: FinishedRun[] = []
  for (const id of ids) {
    const [run] = await tx.all(expireForSession, [now, id])
    if (!run) continue
    await appendStatus(tx, run, 'expired', 'needsSignIn', now)
    expired.push(toFinishedRun({ ...run, started_at: null }, { status: 'expired', reason: 'needsSignIn' }, now))
  }
  return expired
}

const expiry = { status: 'expired', reason: 'notStartedInTime' } as const

/** When something with a deadline is next due. What is overdue and still there cannot change yet, or comes in batches. */
function nextTime(due: DueTimes, now: number, { scheduler, bulkWorker, signIns }: MaintenanceOptions): number {
  const inBatches = [due.delay, due.wait, due.sessionWait, due.permit, scheduler ? due.schedule : null]
  const others = [
    due.expiry,
    due.lease,
    signIns ? due.sessionCheck : null,
    due.delivery,
    bulkWorker ? due.bulkAction : null,
  ]
  const soon = now + busyMilliseconds.interval
  const times = [...inBatches, ...others.map((at) => (at !== null && at <= now ? soon : at))]
  return Math.min(...times.map((at) => at ?? Number.POSITIVE_INFINITY))
}

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

  /** Whether this process is to purge the next batch soon. */
  get hasMore(): boolean {
    return this.#next !== undefined
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
