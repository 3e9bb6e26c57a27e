/** Tells who follows a run, or all of an account, when something has happened to it, in whichever process it happened. */
import { inList } from '../../storage/statement-values.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import { Changes } from './changes.ts'
import type { Run, RunEvent } from './run.ts'
import { isFinal, type RunStatus } from './run-state.ts'
import { eventsAfter } from './runs.sql.ts'
import type { Runs } from './runs.ts'

const latestSql = 'SELECT COALESCE(MAX(id), 0) AS latest FROM run_events'
const changedSql = 'SELECT id, run_id FROM run_events WHERE id > ? ORDER BY id LIMIT ?'

const existsSql = 'SELECT 1 AS one FROM runs WHERE id = ?'

const eventsPerRead = 500
const changesPerRead = 1000

export class RunFeed {
  readonly #store: Store
  /** By the id of what they follow. */
  readonly #followers = { run: new Map<string, Set<() => void>>(), account: new Map<string, Set<() => void>>() }
  /** The last event that followers know of. */
  #seen = 0
  /** Ids below that of which no event has been seen, and since when. */
  readonly #missing = new Map<number, number>()
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
   * The run's events after `sequence`, old ones first, then each as it happens; ends after the final one, or when the run
   * is removed. Yields `null` each time `quietSeconds` pass without an event.
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
        if (changed || signal.aborted) continue
        if ((await this.#store.read.all(existsSql, [runId])).length === 0) return
        yield null
      }
    } finally {
      changes.end()
    }
  }

  /**
   * Yields `true` when it follows, so that nothing happens unseen to whoever reads then; again soon after something has
   * happened to any run of the account, many things at once being one; and `null` each time `quietSeconds` pass without
   * it. That a delay has ended is not told: it is no event.
   */
  async *changes(accountId: string, quietSeconds: number, signal: AbortSignal): AsyncGenerator<true | null> {
    const changes = await this.#follow('account', accountId)
    try {
      if (!signal.aborted && !this.#closed) yield true
      while (!signal.aborted && !this.#closed) {
        const changed = await changes.next(quietSeconds * 1000, signal)
        if (!signal.aborted && !this.#closed) yield changed || null
      }
    } finally {
      changes.end()
    }
  }

  /** How many follow a run, and all runs of an account. */
  get followers(): { run: number; account: number } {
    const count = (followers: Map<string, Set<unknown>>) =>
      [...followers.values()].reduce((sum, { size }) => sum + size, 0)
    return { run: count(this.#followers.run), account: count(this.#followers.account) }
  }

  get #followed(): boolean {
    return this.#followers.run.size > 0 || this.#followers.account.size > 0
  }

  async #follow(what: 'run' | 'account', id: string): Promise<Changes> {
    if (!this.#followed) {
      const [row] = await this.#store.read.all<{ latest: number }>(latestSql, [])
      // Another follower may have begun meanwhile, and must not miss what it waits for.
      if (!this.#followed) await this.#begin(row?.latest ?? 0)
    }
    const changes = new Changes(() => this.#unfollow(what, id, changes.tell))
    const followers = this.#followers[what].get(id) ?? new Set()
    this.#followers[what].set(id, followers.add(changes.tell))
    return changes
  }

  /** Nothing up to now is news, but what was written and is not committed yet. */
  async #begin(latest: number): Promise<void> {
    this.#missing.clear()
    this.#seen = Math.max(0, latest - changesPerRead)
    await this.#changedRuns()
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
        const changed = await this.#changedRuns()
        for (const runId of changed) for (const tell of this.#followers.run.get(runId) ?? []) tell()
        if (this.#followers.account.size === 0) continue
        for (const accountId of await accountsOf(this.#store.read, changed)) {
          for (const tell of this.#followers.account.get(accountId) ?? []) tell()
        }
      } catch {
        // The store is unavailable; the next ring tries again, and readers learn of it by their own reads.
      }
    }
    // In the turn of the last look at `#again`: a ring between the two would not be heard.
    this.#isReading = false
  }

  /**
   * The runs with events since the last look. Ids are given out before the commit, in PostgreSQL: one that is missing
   * between others may come still, and is looked for until it has to be one that was undone.
   */
  async #changedRuns(): Promise<Set<string>> {
    const runs = new Set<string>()
    const { read } = this.#store
    const now = performance.now()
    for (const [id, since] of this.#missing) if (now - since > missingMilliseconds) this.#missing.delete(id)
    if (this.#missing.size > 0) {
      const { marks, values } = inList([...this.#missing.keys()])
      const sql = `SELECT id, run_id FROM run_events WHERE id IN (${marks})`
      for (const { id, run_id } of await read.all<Changed>(sql, values)) {
        this.#missing.delete(id)
        runs.add(run_id)
      }
    }
    for (let count = changesPerRead; count === changesPerRead; ) {
      const changed = await read.all<Changed>(changedSql, [this.#seen, changesPerRead])
      count = changed.length
      for (const { id, run_id } of changed) {
        for (let skipped = this.#seen + 1; skipped < id && this.#missing.size < missingMax; skipped += 1) {
          this.#missing.set(skipped, now)
        }
        this.#seen = id
        runs.add(run_id)
      }
    }
    return runs
  }
}

interface Changed {
  id: number
  run_id: string
}

/** No transaction of the service takes so long. */
const missingMilliseconds = 30_000
/** Bounds what one look asks for. */
const missingMax = 1000

async function accountsOf(tx: Transaction, runs: ReadonlySet<string>): Promise<Set<string>> {
  const accounts = new Set<string>()
  for (const ids of portionsOf([...runs], changesPerRead)) {
    const { marks, values } = inList(ids)
    const sql = `SELECT account_id FROM runs WHERE id IN (${marks})`
    for (const { account_id } of await tx.all<{ account_id: string }>(sql, values)) accounts.add(account_id)
  }
  return accounts
}

function* portionsOf<Item>(items: readonly Item[], size: number): Generator<Item[]> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size)
}
