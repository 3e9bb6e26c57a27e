/**
 * Queues the runs of schedules that are due, in any number of processes on one store. One transaction inserts the runs
 * and moves each schedule to its next time, so a killed process leaves either both or neither.
 */

import type { Logger } from 'pino'
import type { Encryption } from '../../storage/encryption.ts'
import { findRunTimes, findUnfinished } from '../../storage/runs/run-lookups.ts'
import { rowBytes } from '../../storage/runs/run-maintenance.ts'
import type { CancelledRun } from '../../storage/runs/run-statements.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import type { SchedulesTable } from '../../storage/tables/tables.ts'
import type { StorageUsage } from '../accounts/storage-usage.ts'
import { findContextLeases } from '../browser-contexts/browser-contexts.sql.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { type NewNotification, recordNotification } from '../notifications/notifications.sql.ts'
import { cancelRuns, toFinishedRuns } from '../queue/cancellation.ts'
import { insertRuns, type NewRun, QueuedRunsLimit, withContextLease } from '../queue/enqueue-batcher.ts'
import { createRun } from '../queue/queue-request.ts'
import type { ScheduleOptions } from '../queue/run-options.ts'
import type { RunObserver } from '../runs/run-state.ts'
import { type OverlapPolicy, type SkipReason, timingOf, toPause, toQueueRequest, unreadable } from './schedule.ts'
import { findRefusal } from './schedule-request.ts'
import { type DueTimes, divideDueTimes, type MissedPolicy, nextTimeOf } from './schedule-times.ts'
import { findDue, findNextDue, findResumable, updateDecided } from './schedules.sql.ts'

interface SchedulerDependencies {
  store: Store
  encryption: Encryption
  workflows: WorkflowRegistry
  /** How many queued runs an account may have; 0 for no limit. */
  queuedRunsMax: number
  usage: StorageUsage
  log: Logger
  observer?: RunObserver | undefined
  now?: () => number
}

interface Decided {
  decisions: Decision[]
  /** Earlier runs that a successor has cancelled. */
  cancelled: CancelledRun[]
}

/** Schedules of one transaction: on SQLite, it delays other writes by some milliseconds. */
const batchSize = 100

/**
 * After this many runs, the rest of a batch follows in another transaction: a schedule can make up for 100 times at once,
 * and a process that is killed during a transaction has made no progress.
 */
const runsPerBatch = 200

/** Batches before other maintenance continues. */
const batchesMax = 10

/** Schedules that are compared with a new deployment at a time. */
const recheckPage = 200

export class Scheduler {
  readonly #dependencies: SchedulerDependencies
  readonly #limit: QueuedRunsLimit
  readonly #now: () => number

  constructor(dependencies: SchedulerDependencies) {
    this.#dependencies = dependencies
    this.#limit = new QueuedRunsLimit(dependencies.queuedRunsMax)
    this.#now = dependencies.now ?? Date.now
  }

  /** Queues the runs that are due; returns when the next schedule is due, or `null` if none is. */
  async once(): Promise<number | null> {
    const { read } = this.#dependencies.store
    for (let batch = 0; batch < batchesMax; batch += 1) {
      const now = this.#now()
      const due = await findBatch(read, now)
      if (due.length === 0) break
      await this.#queueDue(new Set(due.map(({ id }) => id)), now)
    }
    return this.nextDue()
  }

  /** When the next schedule is due; `null` if none is. */
  async nextDue(): Promise<number | null> {
    const [next] = await this.#dependencies.store.read.all(findNextDue, [])
    return next?.at ?? null
  }

  async #queueDue(ids: ReadonlySet<string>, now: number): Promise<void> {
    const { store, usage, observer } = this.#dependencies
    // Read again: another process may have decided them, and a caller may have changed them.
    const work = async (tx: Transaction) => {
      const rows = await findBatch(tx, now)
      return this.#decideAll(
        tx,
        rows.filter(({ id }) => ids.has(id)),
        now,
      )
    }
    const { decisions, cancelled } = await store.write(work, { concurrent: true, exclusive: 'maintenance' })
    for (const run of toFinishedRuns(cancelled, now)) observer?.finished(run)
    if (cancelled.length > 0) {
      store.notify('cancellations')
      store.notify('runs')
    }
    const runs = decisions.flatMap((decision) => decision.runs)
    for (const { account_id, variables } of runs) usage.add(account_id, rowBytes + variables.length)
    if (runs.length > 0) store.notify('queue')
    for (const { row, error } of decisions) this.#logDecision(row, error)
  }

  async #decideAll(tx: Transaction, rows: readonly SchedulesTable[], now: number): Promise<Decided> {
    if (rows.length === 0) return { decisions: [], cancelled: [] }
    const context: DecisionContext = { ...(await readContext(tx, rows)), ...this.#dependencies, now }
    const decisions: Decision[] = []
    let count = 0
    for (const row of rows) {
      if (count >= runsPerBatch) break
      const decision = decide(row, context)
      decisions.push(decision)
      count += decision.runs.length
    }
    // In the order of their ids, because this may lock the accounts.
    const byAccount = [...Map.groupBy(decisions, ({ row }) => row.account_id)].sort(([a], [b]) => (a < b ? -1 : 1))
    for (const [accountId, ofAccount] of byAccount) {
      const wanted = ofAccount.reduce((sum, { runs }) => sum + runs.length, 0)
      if (wanted > 0) dropLast(ofAccount, wanted - (await this.#limit.reserve(tx, accountId, wanted)))
    }
    for (const { row, runs } of decisions) {
      const last = runs.at(-1)
      if (last) Object.assign(row, { last_run_id: last.id, last_run_for: last.scheduled_for })
    }
    const cancelled = await cancelPrevious(tx, decisions, now)
    const runs: NewRun[] = decisions.flatMap((decision) => decision.runs)
    await insertRuns(
      tx,
      runs.sort((a, b) => (a.id < b.id ? -1 : 1)),
    )
    await updateDecided(
      tx,
      decisions.map(({ row }) => row),
    )
    for (const { row } of decisions)
      if (row.paused_reason !== null) await recordNotification(tx, toNotification(row, now))
    return { decisions, cancelled }
  }

  #logDecision(row: SchedulesTable, error: unknown): void {
    const { log } = this.#dependencies
    const schedule = { scheduleId: row.id, accountId: row.account_id }
    if (row.paused_reason !== null) log.warn({ ...schedule, reason: row.paused_reason, err: error }, 'schedule paused')
  }

  /** Pauses the active schedules whose runs the current deployments would refuse. Call it after each deployment. */
  async recheck(): Promise<void> {
    const { store } = this.#dependencies
    for (let after = ''; ; ) {
      const active = store.read.query.selectFrom('schedules').selectAll().where('paused_reason', 'is', null)
      const rows = await active.where('id', '>', after).orderBy('id').limit(recheckPage).execute()
      for (const row of rows) await this.#pauseIfRefused(row)
      const last = rows.at(-1)
      if (!last || rows.length < recheckPage) return
      after = last.id
    }
  }

  async #pauseIfRefused(row: SchedulesTable): Promise<void> {
    const refusal = this.#findPause(row)
    if (!refusal) return
    const pause = { ...refusal.pause, next_at: null, waits_for_run: 0 } as const
    const { store } = this.#dependencies
    const isPaused = await store.write(async (tx) => {
      const update = tx.query.updateTable('schedules').set(pause).where('id', '=', row.id)
      // A caller may have changed it in the meantime.
      const same = update.where('updated_at', '=', row.updated_at).where('paused_reason', 'is', null)
      const { numUpdatedRows } = await same.executeTakeFirst()
      if (numUpdatedRows > 0n) await recordNotification(tx, toNotification(row, this.#now()))
      return numUpdatedRows > 0n
    })
    if (isPaused) this.#logDecision({ ...row, ...pause }, refusal.error)
  }

  /** Never throws: a schedule that cannot be read must not stop the others. */
  #findPause(row: SchedulesTable) {
    try {
      const refused = findRefusal(this.#dependencies, row)
      return refused && { pause: toPause(refused), error: undefined }
    } catch (error) {
      return { pause: unreadable, error }
    }
  }
}

/** The service has paused the schedule. */
function toNotification({ id, account_id, workflow_id }: SchedulesTable, at: number): NewNotification {
  return { event: 'schedule.paused', accountId: account_id, workflowId: workflow_id, subject: id, at }
}

/** Cancels unfinished runs that have got a successor. */
async function cancelPrevious(tx: Transaction, decisions: readonly Decision[], now: number): Promise<CancelledRun[]> {
  const successors = new Map<string, { accountId: string; time: number }>()
  for (const { row, runs } of decisions) {
    const time = row.overlap === 'cancelPrevious' ? runs.at(-1)?.scheduled_for : undefined
    if (time != null) successors.set(row.id, { accountId: row.account_id, time })
  }
  const previous = (await findUnfinished(tx, [...successors.keys()])).flatMap(({ id, schedule_id, time }) => {
    const successor = successors.get(schedule_id)
    return successor && time < successor.time ? [{ id, accountId: successor.accountId }] : []
  })
  const cancelled: CancelledRun[] = []
  // Those of all accounts at once: the order of locks is that of their ids.
  if (previous.length > 0)
    await tx.statements.lockCancelled(
      tx,
      previous.map(({ id }) => id),
    )
  for (const [accountId, runs] of Map.groupBy(previous, (run) => run.accountId)) {
    const ids = runs.map(({ id }) => id)
    cancelled.push(...(await cancelRuns(tx, accountId, ids, {}, now)))
  }
  return cancelled
}

/** Schedules to decide: due ones, and ones whose times have waited for a run that has ended. */
async function findBatch(tx: Transaction, now: number): Promise<SchedulesTable[]> {
  const due = await tx.all(findDue, [now, batchSize])
  return due.length > 0 ? due : tx.all(findResumable, [batchSize])
}

/** Leaves out the last runs, for which the account has no more capacity. */
function dropLast(decisions: readonly Decision[], count: number): void {
  let left = count
  for (const { row, runs } of decisions.toReversed()) {
    if (left === 0) return
    const [latest] = runs.slice(-1)
    if (!latest) continue
    // The latest of the dropped times is the one that the schedule shows.
    row.last_skipped_for = latest.scheduled_for
    row.last_skip_reason = 'queuedRunsLimit'
    left -= runs.splice(-left).length
  }
}

// Decides what happens at the due times of a schedule, within the transaction that stores it.

/** The schedule as it is stored afterwards, and its new runs. */
interface Decision {
  row: SchedulesTable
  runs: NewRun[]
  /** Why the schedule cannot be read; it is paused. */
  error?: unknown
}

/** What decisions depend on besides the schedule. */
interface Read {
  /** Schedules with an unfinished run. */
  unfinished: ReadonlySet<string>
  /** The browser contexts that exist, with the run that leases each. */
  contexts: ReadonlyMap<string, string | null>
  /** The times of a schedule that already have a run. */
  ran: ReadonlyMap<string, ReadonlySet<number>>
}

interface DecisionContext extends Read {
  workflows: WorkflowRegistry
  encryption: Encryption
  usage: StorageUsage
  now: number
}

async function readContext(tx: Transaction, rows: readonly SchedulesTable[]): Promise<Read> {
  const exclusive = rows.filter(({ overlap }) => overlap === 'skip' || overlap === 'queue')
  const unfinished = await findUnfinished(
    tx,
    exclusive.map(({ id }) => id),
  )
  const contexts = new Map<string, string | null>()
  for (const [accountId, ofAccount] of Map.groupBy(rows, ({ account_id }) => account_id)) {
    const given = ofAccount.map((row) => ({ browser_context_id: contextOf(row) }))
    if (given.every(({ browser_context_id: id }) => id === null)) continue
    for (const [id, run] of await findContextLeases(tx, accountId, given)) contexts.set(id, run)
  }
  const ran = new Map<string, ReadonlySet<number>>()
  for (const { id, next_at, last_run_for } of rows) {
    if (next_at === null || last_run_for === null || next_at > last_run_for) continue
    const times = await tx.all(findRunTimes, [id, next_at])
    ran.set(id, new Set(times.map(({ scheduled_for }) => scheduled_for)))
  }
  return { unfinished: new Set(unfinished.map(({ schedule_id }) => schedule_id)), contexts, ran }
}

function contextOf({ options }: SchedulesTable): string | null {
  return (JSON.parse(options) as ScheduleOptions).browserContextId
}

/** The due times of the schedule, by its policy for missed ones. */
function dueTimesOf(row: SchedulesTable, now: number): DueTimes {
  if (row.next_at === null) return { times: [], skipped: undefined }
  const missed = row.missed as MissedPolicy
  const due = { nextAt: row.next_at, missed, isWaiting: row.waits_for_run === 1 }
  return divideDueTimes(nextTimeOf(timingOf(row)), due, now)
}

/** Never throws: a schedule that cannot be read must not stop the others. */
function decide(row: SchedulesTable, context: DecisionContext): Decision {
  try {
    return decideTimes(row, context)
  } catch (error) {
    return { row: { ...row, ...unreadable, next_at: null, waits_for_run: 0 }, runs: [], error }
  }
}

function decideTimes(row: SchedulesTable, context: DecisionContext): Decision {
  const { now, ran } = context
  const due = dueTimesOf(row, now)
  const times = due.times.filter((time) => !ran.get(row.id)?.has(time))
  const { started, waiting, skipped } = applyOverlap(row, times, context.unfinished.has(row.id))
  const latest = Math.max(now, due.times.at(-1) ?? now)
  const decided: SchedulesTable = {
    ...row,
    next_at: waiting ?? nextTimeOf(timingOf(row))(latest) ?? null,
    waits_for_run: waiting === undefined ? 0 : 1,
  }
  if (due.skipped !== undefined) setSkipped(decided, due.skipped, 'missed')
  if (skipped !== undefined) setSkipped(decided, skipped, 'overlap')
  const runs: NewRun[] = []
  for (const time of started) {
    const created = createRunFor(row, time, context)
    if ('pause' in created) return { row: { ...decided, ...created.pause, next_at: null, waits_for_run: 0 }, runs }
    if ('skip' in created) setSkipped(decided, time, created.skip)
    else runs.push(created.run)
  }
  return { row: decided, runs }
}

function setSkipped(row: SchedulesTable, time: number, reason: SkipReason): void {
  row.last_skipped_for = time
  row.last_skip_reason = reason
}

interface Overlap {
  /** Times that get a run now. */
  started: readonly number[]
  /** The first time that waits for a run. */
  waiting?: number | undefined
  /** The latest time that gets none. */
  skipped?: number | undefined
}

function applyOverlap({ overlap }: SchedulesTable, times: readonly number[], isRunning: boolean): Overlap {
  const policy = overlap as OverlapPolicy
  const [first] = times
  switch (policy) {
    case 'allow':
      return { started: times }
    case 'skip':
      return isRunning
        ? { started: [], skipped: times.at(-1) }
        : { started: times.slice(0, 1), skipped: times.slice(1).at(-1) }
    case 'queue':
      return isRunning ? { started: [], waiting: first } : { started: times.slice(0, 1), waiting: times[1] }
    case 'cancelPrevious':
      return { started: times.slice(-1), skipped: times.at(-2) }
  }
}

type CreatedRun =
  | { run: NewRun }
  | { pause: Pick<SchedulesTable, 'paused_reason' | 'paused_detail'> }
  | { skip: SkipReason }

function createRunFor(row: SchedulesTable, time: number, context: DecisionContext): CreatedRun {
  const { encryption, usage, contexts } = context
  const { request, secrets } = toQueueRequest(encryption, row, time)
  const created = createRun(context, { accountId: row.account_id, apiKeyId: null }, request, secrets)
  if (created.kind !== 'created') return { pause: toPause(created) }
  const { run } = created
  const { browser_context_id: contextId } = run
  if (contextId !== null && !contexts.has(contextId)) return { pause: toPause({ kind: 'noSuchBrowserContext' }) }
  if (usage.refusal(row.account_id) !== undefined) return { skip: 'storageQuota' }
  return { run: withContextLease(run, contexts) }
}
