/** Decides what happens at the due times of a schedule, within the transaction that stores it. */
import type { Encryption } from '../../storage/encryption.ts'
import type { Transaction } from '../../storage/store.ts'
import type { SchedulesTable } from '../../storage/tables/schedule-tables.ts'
import type { StorageUsage } from '../accounts/storage-usage.ts'
import { findContextLeases } from '../browser-contexts/browser-contexts.sql.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import type { NewRun } from '../runs/enqueue-batcher.ts'
import { createRun } from '../runs/new-run.ts'
import { refusedDetails } from '../runs/queue-problems.ts'
import {
  type OverlapPolicy,
  type RunOptions,
  type SkipReason,
  timingOf,
  toPause,
  toQueueRequest,
  unreadable,
} from './schedule.ts'
import { type DueTimes, divideDueTimes, type MissedPolicy, nextTimeOf } from './schedule-times.ts'
import { findRunTimes, findUnfinished } from './schedules.sql.ts'

/** The schedule as it is stored afterwards, and its new runs. */
export interface Decision {
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

export interface DecisionContext extends Read {
  workflows: WorkflowRegistry
  encryption: Encryption
  usage: StorageUsage
  now: number
}

export async function readContext(tx: Transaction, rows: readonly SchedulesTable[]): Promise<Read> {
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
  return (JSON.parse(options) as RunOptions).browserContextId
}

/** The due times of the schedule, by its policy for missed ones. */
function dueTimesOf(row: SchedulesTable, now: number): DueTimes {
  if (row.next_at === null) return { times: [], skipped: undefined }
  const missed = row.missed as MissedPolicy
  const due = { nextAt: row.next_at, missed, isWaiting: row.waits_for_run === 1 }
  return divideDueTimes(nextTimeOf(timingOf(row)), due, now)
}

/** Never throws: a schedule that cannot be read must not stop the others. */
export function decide(row: SchedulesTable, context: DecisionContext): Decision {
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
  if (contextId !== null && !contexts.has(contextId)) {
    const detail = `/browserContextId ${refusedDetails.noSuchBrowserContext}`
    return { pause: { paused_reason: 'browserContextRemoved', paused_detail: detail } }
  }
  if (usage.refusal(row.account_id) !== undefined) return { skip: 'storageQuota' }
  const waits = contextId !== null && contexts.get(contextId) !== null && run.persist_context !== 'never'
  return { run: { ...run, waits_for_context: waits ? 1 : 0 } }
}
