/** What an overview of an account's runs says: how many wait and run now, and what became of those of the last day. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Store } from '../../storage/store.ts'
import { countRuns, countUnfinished, countWaiting, everyId, type Range, type WaitingRun } from './run-counts.ts'
import { firstIdAt } from './run-id.ts'
import { isFinal, type RunStatus, transitions } from './run-state.ts'

export type RunCounts = Record<RunStatus, number>

export interface AccountStatistics {
  /** Queued runs that wait for nothing but a worker, or for their workflow's concurrency limit. */
  ready: number
  delayed: number
  running: number
  /** The oldest of the ready ones. */
  oldestReady: WaitingRun | null
  /** The last 24 hours, the present one last. */
  hours: HourOfRuns[]
}

/** The runs that were created in an hour, by the status that they have now. */
export interface HourOfRuns {
  /** The whole hour, in UTC. */
  startsAt: number
  counts: RunCounts
}

const hourMilliseconds = 60 * 60 * 1000
const hoursTold = 24

/** A run's id is made a moment before its row can be read; how long the commit may take is bounded far below this. */
const closingMilliseconds = 60_000

/** An account rests for so many times what counting it took, that many pages which look at it do not keep it counting. */
const restFactor = 9
const restMillisecondsMax = 1000

/** Of so many accounts the closed hours are kept: 24 hours of one take about 5 KB. */
const accountsMax = 500

const statuses = Object.keys(transitions) as RunStatus[]
const finalStatuses = statuses.filter(isFinal)
const none = Object.fromEntries(statuses.map((status) => [status, 0])) as RunCounts

/**
 * Every answer is counted after its question, so that whoever asks because something has changed sees the change: a
 * page that was told an answer of a second ago would stay wrong until the next change. What makes this quick all the
 * same: a closed hour gets no new run, and a finished run stays as it is, so that what was counted holds until fewer of
 * its runs are unfinished. A million runs of one day took 160 ms at first, in pieces of a millisecond, and then 1 ms.
 */
export class RunStatistics {
  readonly #store: Store
  readonly #now: () => number
  /** The counting that has not begun yet, which whoever asks meanwhile shares. */
  readonly #next = new Map<string, Promise<AccountStatistics>>()
  /** The counting that goes on, and the rest after it. */
  readonly #present = new Map<string, Promise<void>>()
  /** Counts of closed hours by the hour's start; accounts that were asked for last come last. */
  readonly #closed = new Map<string, Map<number, RunCounts>>()

  constructor(store: Store, now: () => number = Date.now) {
    this.#store = store
    this.#now = now
  }

  of(accountId: string): Promise<AccountStatistics> {
    const next = this.#next.get(accountId) ?? this.#afterPresent(accountId)
    this.#next.set(accountId, next)
    return next
  }

  async #afterPresent(accountId: string): Promise<AccountStatistics> {
    await this.#present.get(accountId)
    this.#next.delete(accountId)
    const begun = performance.now()
    const counting = this.#count(accountId)
    const rest = () => {
      const milliseconds = Math.min(restMillisecondsMax, restFactor * (performance.now() - begun))
      return delay(milliseconds, undefined, { ref: false })
    }
    const present = counting.then(rest, rest).finally(() => this.#present.delete(accountId))
    this.#present.set(accountId, present)
    return counting
  }

  /** Runs go on meanwhile: one that changes its status between two counts may be in both or in none. */
  async #count(accountId: string): Promise<AccountStatistics> {
    const now = this.#now()
    const { ready, delayed, oldest } = await countWaiting(this.#store.read, accountId)
    const running = await countRuns(this.#store.read, accountId, 'running', everyId)
    const presentHour = now - (now % hourMilliseconds)
    const firstHour = presentHour - (hoursTold - 1) * hourMilliseconds
    const closed = this.#closedHours(accountId, firstHour)
    const hours: HourOfRuns[] = []
    for (let startsAt = firstHour; startsAt <= presentHour; startsAt += hourMilliseconds) {
      hours.push({ startsAt, counts: await this.#countHour(accountId, startsAt, closed, now) })
    }
    return { ready, delayed, running, oldestReady: oldest, hours }
  }

  async #countHour(
    accountId: string,
    startsAt: number,
    closed: Map<number, RunCounts>,
    now: number,
  ): Promise<RunCounts> {
    const endsAt = startsAt + hourMilliseconds
    const range: Range = [firstIdAt(startsAt), firstIdAt(endsAt)]
    const known = closed.get(startsAt)
    if (known && unfinishedOf(known) === 0) return { ...known }
    const unfinished = await countUnfinished(this.#store.read, accountId, range)
    if (known && unfinished && unfinishedOf(unfinished) === unfinishedOf(known)) return { ...known, ...unfinished }
    const counts = { ...none, ...unfinished }
    for (const status of unfinished ? finalStatuses : statuses) {
      counts[status] = await countRuns(this.#store.read, accountId, status, range)
    }
    // Only with those unfinished that there were before the others were counted: a run may have finished since.
    if (unfinished && now >= endsAt + closingMilliseconds) closed.set(startsAt, counts)
    return { ...counts }
  }

  #closedHours(accountId: string, firstHour: number): Map<number, RunCounts> {
    const hours = this.#closed.get(accountId) ?? new Map<number, RunCounts>()
    for (const startsAt of hours.keys()) if (startsAt < firstHour) hours.delete(startsAt)
    this.#closed.delete(accountId)
    this.#closed.set(accountId, hours)
    const [longestUnasked] = this.#closed.keys()
    if (this.#closed.size > accountsMax && longestUnasked !== undefined) this.#closed.delete(longestUnasked)
    return hours
  }
}

function unfinishedOf({ queued, running }: Pick<RunCounts, 'queued' | 'running'>): number {
  return queued + running
}
