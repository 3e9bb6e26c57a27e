/** Statistics of an account's runs for the dashboard: current counts, and counts of the last 24 hours by status. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { countByStatus } from '../../storage/run-count-statements.ts'
import type { Store } from '../../storage/store.ts'
import { firstIdAt } from './run.ts'
import { type RunStatus, transitions } from './run-state.ts'

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

const hourMilliseconds = 60 * 60 * 1000
const hoursShown = 24

/** Allowed time from the creation of a run's id to its commit, which takes far less. */
const commitMillisecondsMax = 60_000

/** Counts of about 400 accounts. */
const cachedHoursMax = 10_000

const statuses = Object.keys(transitions) as RunStatus[]
const countCreated = countByStatus(statuses)

/**
 * Counts on request, so that a page that reloads after a change shows it. A million runs of one day take 160 ms the
 * first time; hours whose runs have all finished are counted once.
 */
export class RunStatistics {
  readonly #store: Store
  readonly #now: () => number
  /** Counts of past hours whose runs have all finished, by account and hour. The one stored first comes first. */
  readonly #finishedHours = new Map<string, RunCounts>()

  constructor(store: Store, now: () => number = Date.now) {
    this.#store = store
    this.#now = now
  }

  /** Not a snapshot: a run that changes its status between two counts may be in both or in neither. */
  async count(accountId: string): Promise<AccountStatistics> {
    const { read } = this.#store
    const now = this.#now()
    const [counted] = await read.all(read.statements.countOfAccount, [accountId, accountId, accountId])
    const { queued = 0, delayed = 0, running = 0 } = counted ?? {}
    const [oldest] = queued > delayed ? await read.all(read.statements.oldestReady, [accountId, accountId]) : []
    const oldestReady = oldest ? { id: oldest.id, workflowId: oldest.workflow_id, createdAt: oldest.created_at } : null
    const currentHour = now - (now % hourMilliseconds)
    const hours: HourOfRuns[] = []
    for (let past = hoursShown - 1; past >= 0; past -= 1) {
      const startsAt = currentHour - past * hourMilliseconds
      hours.push({ startsAt, counts: await this.#countHour(accountId, startsAt, now) })
    }
    return { ready: queued - delayed, delayed, running, oldestReady, hours }
  }

  async #countHour(accountId: string, startsAt: number, now: number): Promise<RunCounts> {
    const key = `${accountId} ${startsAt}`
    const known = this.#finishedHours.get(key)
    if (known) return known
    // SQLite counts on this thread: other requests are served between two hours.
    await nextTurn()
    const { read } = this.#store
    const endsAt = startsAt + hourMilliseconds
    const range = [accountId, firstIdAt(startsAt), firstIdAt(endsAt)]
    const values = statuses.flatMap(() => range)
    const [counts] = (await read.all(countCreated, values)) as [RunCounts]
    if (counts.queued + counts.running === 0 && now >= endsAt + commitMillisecondsMax) {
      this.#finishedHours.set(key, counts)
      const [first] = this.#finishedHours.keys()
      if (this.#finishedHours.size > cachedHoursMax && first !== undefined) this.#finishedHours.delete(first)
    }
    return counts
  }
}
