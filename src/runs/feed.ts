/** Tells who follows a run, or all of an account, when something has happened to it, in whichever process it happened. */
import type { Store } from '../storage/store.ts'
import type { Run, RunEvent } from './run.ts'
import type { Runs } from './runs.ts'
import { isFinal, type RunStatus } from './state.ts'
import { eventsAfter } from './store.ts'

const latestSql = 'SELECT COALESCE(MAX(id), 0) AS latest FROM run_events'
const changedSql = 'SELECT DISTINCT run_id FROM run_events WHERE id > ? AND id <= ?'
const changedWithAccountSql = `SELECT run_id, (SELECT account_id FROM runs WHERE id = run_id) AS account_id
  FROM (${changedSql}) AS changed`

const eventsPerRead = 500

export class RunFeed {
  readonly #store: Store
  /** By the id of what they follow. */
  readonly #followers = { run: new Map<string, Set<() => void>>(), account: new Map<string, Set<() => void>>() }
  /** The last event that followers know of. */
  #seen = 0
  #isReading = false
  #again = false
  #closed = false
  readonly #stopListening: (() => void)[]

  constructor(store: Store) {
    this.#store = store
    this.#stopListening = [
      store.listen('runs', () => this.#read()),
      // All that queueing a run rings; it is news to those alone who do not know the run yet.
      store.listen('queue', () => {
        if (this.#followers.account.size > 0) this.#read()
      }),
    ]
  }

  /** Lets go of everyone who follows anything. */
  close(): void {
    this.#closed = true
    for (const stop of this.#stopListening) stop()
    for (const followed of Object.values(this.#followers)) {
      for (const followers of followed.values()) for (const tell of followers) tell()
    }
  }

  /** Waits until the run has finished, for `seconds` at most; returns it as it is then. */
  async waitUntilFinished(runs: Runs, run: Run, seconds: number, signal: AbortSignal): Promise<Run> {
    const deadline = performance.now() + seconds * 1000
    const changes = await this.#follow('run', run.id)
    try {
      for (;;) {
        const now = (await runs.get(run.accountId, run.id)) ?? run
        const left = deadline - performance.now()
        if (isFinal(now.status) || left <= 0 || signal.aborted || this.#closed) return now
        await changes.next(left, signal)
      }
    } finally {
      changes.end()
    }
  }

  async hasEventsAfter(runId: string, sequence: number): Promise<boolean> {
    return (await eventsAfter(this.#store.read, runId, sequence, 1)).length > 0
  }

  /**
   * The run's events after `sequence`, old ones first, then each as it happens; ends after the final one. Yields
   * `null` each time `quietSeconds` pass without an event.
   */
  async *events(
    runId: string,
    sequence: number,
    quietSeconds: number,
    signal: AbortSignal,
  ): AsyncGenerator<RunEvent | null> {
    const changes = await this.#follow('run', runId)
    let last = sequence
    try {
      while (!signal.aborted && !this.#closed) {
        const events = await eventsAfter(this.#store.read, runId, last, eventsPerRead)
        for (const event of events) {
          yield event
          last = event.sequence
          if (event.type === 'status' && isFinal(event.data.status as RunStatus)) return
        }
        if (events.length > 0) continue
        const changed = await changes.next(quietSeconds * 1000, signal)
        if (!changed && !signal.aborted) yield null
      }
    } finally {
      changes.end()
    }
  }

  /**
   * Yields `true` soon after something has happened to any run of the account, many things at once being one, and
   * `null` each time `quietSeconds` pass without it. What happened before the first is asked for is not told, nor is
   * that a delay has ended, which is no event.
   */
  async *changes(accountId: string, quietSeconds: number, signal: AbortSignal): AsyncGenerator<true | null> {
    const changes = await this.#follow('account', accountId)
    try {
      while (!signal.aborted && !this.#closed) {
        const changed = await changes.next(quietSeconds * 1000, signal)
        if (!signal.aborted && !this.#closed) yield changed || null
      }
    } finally {
      changes.end()
    }
  }

  get #followed(): boolean {
    return this.#followers.run.size > 0 || this.#followers.account.size > 0
  }

  async #follow(what: 'run' | 'account', id: string): Promise<Changes> {
    if (!this.#followed) {
      const [row] = await this.#store.read.all<{ latest: number }>(latestSql, [])
      // Another follower may have begun meanwhile, and must not miss what it waits for.
      if (!this.#followed) this.#seen = row?.latest ?? 0
    }
    const changes = new Changes(() => this.#unfollow(what, id, changes.tell))
    const followers = this.#followers[what].get(id) ?? new Set()
    this.#followers[what].set(id, followers.add(changes.tell))
    return changes
  }

  #unfollow(what: 'run' | 'account', id: string, tell: () => void): void {
    const followers = this.#followers[what].get(id)
    followers?.delete(tell)
    if (followers?.size === 0) this.#followers[what].delete(id)
  }

  /** One query for all followers, however many there are. */
  #read(): void {
    if (!this.#followed) return
    this.#again = true
    if (!this.#isReading) void this.#readAll()
  }

  async #readAll(): Promise<void> {
    this.#isReading = true
    while (this.#again) {
      this.#again = false
      try {
        const [row] = await this.#store.read.all<{ latest: number }>(latestSql, [])
        const latest = row?.latest ?? 0
        const sql = this.#followers.account.size > 0 ? changedWithAccountSql : changedSql
        const changed = await this.#store.read.all<{ run_id: string; account_id?: string }>(sql, [this.#seen, latest])
        this.#seen = latest
        for (const { run_id, account_id = '' } of changed) {
          for (const tell of this.#followers.run.get(run_id) ?? []) tell()
          for (const tell of this.#followers.account.get(account_id) ?? []) tell()
        }
      } catch {
        // The store is unavailable; the next ring tries again, and readers learn of it by their own reads.
      }
    }
    // In the turn of the last look at `#again`: a ring between the two would not be heard.
    this.#isReading = false
  }
}

/** Remembers that something changed until somebody waits for it. */
class Changes {
  readonly end: () => void
  #changed = false
  #wake: (() => void) | undefined

  constructor(end: () => void) {
    this.end = end
  }

  readonly tell = (): void => {
    this.#changed = true
    this.#wake?.()
  }

  readonly #stop = (): void => this.#wake?.()

  /** Resolves at the next change, or false when `milliseconds` have passed or `signal` is aborted first. */
  async next(milliseconds: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#changed && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => this.#wake?.(), milliseconds)
        this.#wake = () => {
          clearTimeout(timer)
          signal.removeEventListener('abort', this.#stop)
          resolve()
        }
        signal.addEventListener('abort', this.#stop)
      })
    }
    const changed = this.#changed
    this.#changed = false
    this.#wake = undefined
    return changed
  }
}
