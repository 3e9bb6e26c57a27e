/** Statistics of an account's runs for the dashboard: current counts, and counts of the last 24 hours by status. */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { countedRowsMax } from '../../storage/run-count-statements.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import { firstIdAt } from './run.ts'
import { isFinal, type RunStatus, transitions } from './run-state.ts'

export type RunCounts = Record<RunStatus, number>

export interface AccountStatistics {
  /** Queued runs that are not delayed. */
  ready: number
  delayed: number
  running: number
  oldestReady: OldestRun | null
  /** The last 24 hours, the current one last. */
  hours: HourOfRuns[]
}

interface OldestRun {
  id: string
  workflowId: string
  createdAt: number
}

/** The runs created within an hour, by their current status. */
export interface HourOfRuns {
  /** A whole hour in UTC. */
  startsAt: number
  counts: RunCounts
}

/** Ids above the first and up to the second. */
type Range = readonly [above: string, upTo: string]

const everyId: Range = [firstIdAt(0), firstIdAt(Number.POSITIVE_INFINITY)]

const hourMilliseconds = 60 * 60 * 1000
const hoursShown = 24

/** Allowed time from the creation of a run's id to its commit, which takes far less. */
const commitMillisecondsMax = 60_000

/** Counts of 24 hours take about 5 KB for each account. */
const cachedAccountsMax = 500

const statuses = Object.keys(transitions) as RunStatus[]
const finalStatuses = statuses.filter(isFinal)
const none = Object.fromEntries(statuses.map((status) => [status, 0])) as RunCounts

/**
 * Counts on request, so that a page that reloads after a change shows it. Caches the counts of a past hour until its
 * number of unfinished runs changes: it gets no new runs, and finished runs do not change. Counting a million runs of
 * one day took 160 ms the first time, in reads of at most 1 ms, and 1 ms from then on.
 */
export class RunStatistics {
  readonly #store: Store
  readonly #now: () => number
  /** Counts of past hours by the hour's start, for each account; the account requested last is the last one. */
  readonly #pastHours = new Map<string, Map<number, RunCounts>>()

  constructor(store: Store, now: () => number = Date.now) {
    this.#store = store
    this.#now = now
  }

  /** Not a snapshot: a run that changes its status between two counts may be in both or in neither. */
  async count(accountId: string): Promise<AccountStatistics> {
    const now = this.#now()
    const queued = await countQueued(this.#store.read, accountId)
    const running = await countRuns(this.#store.read, accountId, 'running', everyId)
    const currentHour = now - (now % hourMilliseconds)
    const firstHour = currentHour - (hoursShown - 1) * hourMilliseconds
    const past = this.#cachedHours(accountId, firstHour)
    const hours: HourOfRuns[] = []
    for (let startsAt = firstHour; startsAt <= currentHour; startsAt += hourMilliseconds) {
      hours.push({ startsAt, counts: await this.#countHour(accountId, startsAt, past, now) })
    }
    return { ...queued, running, hours }
  }

  async #countHour(accountId: string, startsAt: number, past: Map<number, RunCounts>, now: number): Promise<RunCounts> {
    const endsAt = startsAt + hourMilliseconds
    const range: Range = [firstIdAt(startsAt), firstIdAt(endsAt)]
    const cached = past.get(startsAt)
    if (cached && unfinishedIn(cached) === 0) return { ...cached }
    const unfinished = await countUnfinished(this.#store.read, accountId, range)
    if (cached && unfinished && unfinishedIn(unfinished) === unfinishedIn(cached)) return { ...cached, ...unfinished }
    const counts = { ...none, ...unfinished }
    for (const status of unfinished ? finalStatuses : statuses) {
      counts[status] = await countRuns(this.#store.read, accountId, status, range)
    }
    // The unfinished runs were counted first. If one has finished since, the cached number differs and leads to a
    // recount.
    if (unfinished && now >= endsAt + commitMillisecondsMax) past.set(startsAt, counts)
    return { ...counts }
  }

  #cachedHours(accountId: string, firstHour: number): Map<number, RunCounts> {
    const hours = this.#pastHours.get(accountId) ?? new Map<number, RunCounts>()
    for (const startsAt of hours.keys()) if (startsAt < firstHour) hours.delete(startsAt)
    this.#pastHours.delete(accountId)
    this.#pastHours.set(accountId, hours)
    const [leastRecent] = this.#pastHours.keys()
    if (this.#pastHours.size > cachedAccountsMax && leastRecent !== undefined) this.#pastHours.delete(leastRecent)
    return hours
  }
}

function unfinishedIn({ queued, running }: Pick<RunCounts, 'queued' | 'running'>): number {
  return queued + running
}

/** A read of at least this many rows yields to the event loop afterwards. */
const rowsWorthYielding = 500

/** The runs of a status, oldest first, in ranges of at most `countedRowsMax` runs. */
async function* countRanges(tx: Transaction, accountId: string, status: RunStatus, [above, upTo]: Range) {
  for (let start = above; ; ) {
    const [last] = await tx.all(tx.statements.lastCounted, [accountId, status, start, upTo])
    if (!last) {
      const [row] = await tx.all(tx.statements.countInRange, [accountId, status, start, upTo])
      const count = row?.count ?? 0
      if (count >= rowsWorthYielding) await yieldToEventLoop()
      yield { count, range: [start, upTo] as const }
      return
    }
    await yieldToEventLoop()
    yield { count: countedRowsMax, range: [start, last.id] as const }
    start = last.id
  }
}

async function countRuns(tx: Transaction, accountId: string, status: RunStatus, range: Range): Promise<number> {
  let sum = 0
  for await (const { count } of countRanges(tx, accountId, status, range)) sum += count
  return sum
}

/** Counted in one statement; `undefined` for more runs than one read counts. */
async function countUnfinished(tx: Transaction, accountId: string, range: Range) {
  const [row] = await tx.all(tx.statements.countUnfinishedInRange, [accountId, ...range])
  const { unfinished = 0, queued = 0 } = row ?? {}
  return unfinished < countedRowsMax ? { queued, running: unfinished - queued } : undefined
}

async function countQueued(tx: Transaction, accountId: string) {
  const queued = { ready: 0, delayed: 0 }
  let oldestReady: OldestRun | null = null
  for await (const { count, range } of countRanges(tx, accountId, 'queued', everyId)) {
    const [row] = await tx.all(tx.statements.countDelayedInRange, [accountId, ...range])
    // A delayed run may have been queued between the two counts.
    const delayed = Math.min(count, row?.count ?? 0)
    queued.delayed += delayed
    queued.ready += count - delayed
    if (!oldestReady && delayed < count) oldestReady = await findOldestReady(tx, accountId, range)
  }
  return { ...queued, oldestReady }
}

async function findOldestReady(tx: Transaction, accountId: string, range: Range): Promise<OldestRun | null> {
  const [row] = await tx.all(tx.statements.firstReadyInRange, [accountId, 'queued', ...range, accountId, ...range])
  return row ? { id: row.id, workflowId: row.workflow_id, createdAt: row.created_at } : null
}
