/** Streams the events of a run, and changes to any run of an account, whichever process writes them. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { findNewestRuns, findStatus, readColumns } from '../../storage/runs/run-lookups.ts'
import { inList } from '../../storage/statement-values.ts'
import { type Store, statement } from '../../storage/store.ts'
import { eventsAfter } from '../queue/runs.sql.ts'
import type { RunEvent } from '../runs/run.ts'
import { deletedStatus, isFinal, type RunStatus } from '../runs/run-state.ts'

/** An event has up to 32 KiB, and a stream whose reader is slow holds what it has read. */
const eventsPerRead = 32

/** For followers whose run was changed by a process that died before its notification. */
const fallbackMilliseconds = 5000

export class RunFeed {
  readonly #store: Store
  /** By the id of the followed run or account. */
  readonly #followers = { run: new Map<string, Set<Follower>>(), account: new Map<string, Set<Follower>>() }
  /** The ids of the newest queued runs of each followed account. */
  readonly #newestRuns = new Map<string, string>()
  readonly #reads = new Map<string, Promise<RunEvent[]>>()
  /** The next read of statuses, and the runs that it is for. */
  #statuses: { ids: Set<string>; read: Promise<Map<string, string>> } | undefined
  readonly #changedRuns: ChangedRuns
  /** The last read of changes that has begun, and the one that follows it. */
  #reading: Promise<void> = Promise.resolve()
  #nextReading: Promise<void> | undefined
  #closed = false
  readonly #stopListening: (() => void)[]
  readonly #fallback: NodeJS.Timeout

  constructor(store: Store) {
    this.#store = store
    this.#changedRuns = new ChangedRuns(store)
    this.#stopListening = [
      store.listen('runs', () => this.#notify()),
      // Queueing a run notifies only this topic, and a new run has no followers yet.
      store.listen('queue', () => {
        if (this.#followers.account.size > 0) this.#notify()
      }),
    ]
    this.#fallback = setInterval(() => this.#notify(), fallbackMilliseconds).unref()
  }

  /** Ends all streams. */
  close(): void {
    this.#closed = true
    clearInterval(this.#fallback)
    for (const stop of this.#stopListening) stop()
    for (const followed of Object.values(this.#followers)) {
      for (const followers of followed.values()) for (const follower of followers) follower.notify()
    }
  }

  /** Waits up to `seconds` for the run to finish. */
  async waitUntilFinished(runId: string, seconds: number, signal: AbortSignal): Promise<void> {
    const deadline = performance.now() + seconds * 1000
    const follower = await this.#follow('run', runId)
    try {
      for (;;) {
        const [current] = await this.#store.read.all(findStatus, [runId])
        const milliseconds = deadline - performance.now()
        if (!current || isFinal(current.status as RunStatus) || milliseconds <= 0 || this.#isOver(signal)) return
        await follower.wait(milliseconds, signal)
      }
    } finally {
      this.#unfollow('run', runId, follower)
    }
  }

  async hasEventsAfter(runId: string, sequence: number): Promise<boolean> {
    return (await eventsAfter(this.#store.read, runId, sequence, 1)).length > 0
  }

  /**
   * The run's events after `sequence`, then new ones as they are written. Ends after the final one, or when the run is
   * purged. Yields `null` each time `quietSeconds` pass without an event, or less for the first time: to all streams of
   * this process at the same moment, so that they share a look at their runs.
   */
  async *events(
    runId: string,
    sequence: number,
    quietSeconds: number,
    signal: AbortSignal,
  ): AsyncGenerator<RunEvent | null> {
    const follower = await this.#follow('run', runId)
    const quietMilliseconds = quietSeconds * 1000
    let last = sequence
    let changed = true
    try {
      while (!this.#isOver(signal)) {
        const events = changed ? await this.#readEvents(runId, last) : []
        for (const event of events) {
          yield event
          last = event.sequence
          if (event.type === 'status' && isFinal(event.data.status as RunStatus)) return
        }
        if (events.length > 0) continue
        changed = await follower.wait(quietMilliseconds - (performance.now() % quietMilliseconds), signal)
        if (changed || signal.aborted) continue
        const status = await this.#readStatus(runId)
        // It is purged, or a power cut has undone the claim whose event the follower had received.
        if (!status || (isFinal(status) && !(await this.hasEventsAfter(runId, last)))) return
        changed = isFinal(status)
        yield null
      }
    } finally {
      this.#unfollow('run', runId, follower)
    }
  }

  /**
   * Yields `true` when it has started to follow, so that the caller can read the current state and miss no change. Then
   * yields `true` soon after any run of the account gets events, once for several changes, and `null` each time
   * `quietSeconds` pass without a change. The end of a delay is not an event.
   */
  async *changes(accountId: string, quietSeconds: number, signal: AbortSignal): AsyncGenerator<true | null> {
    const follower = await this.#follow('account', accountId)
    try {
      if (!this.#isOver(signal)) yield true
      while (!this.#isOver(signal)) {
        const changed = await follower.wait(quietSeconds * 1000, signal)
        if (!this.#isOver(signal)) yield changed || null
      }
    } finally {
      this.#unfollow('account', accountId, follower)
    }
  }

  /** Streams that one notification wakes call this before any other callback runs, so they share a read. */
  #readEvents(runId: string, sequence: number): Promise<RunEvent[]> {
    const key = `${runId} ${sequence}`
    let reading = this.#reads.get(key)
    if (!reading) {
      reading = eventsAfter(this.#store.read, runId, sequence, eventsPerRead)
      this.#reads.set(key, reading)
      queueMicrotask(() => this.#reads.delete(key))
    }
    return reading
  }

  /** Streams that wake at the same moment share a read. `undefined` if the run is deleted. */
  async #readStatus(runId: string): Promise<RunStatus | undefined> {
    this.#statuses ??= this.#startStatusRead()
    const { ids, read } = this.#statuses
    ids.add(runId)
    const status = (await read).get(runId)
    return status === undefined || status === deletedStatus ? undefined : (status as RunStatus)
  }

  #startStatusRead() {
    const ids = new Set<string>()
    const read = nextTurn().then(async () => {
      this.#statuses = undefined
      const runs = await readColumns(this.#store.read, ['id', 'status'], [...ids])
      return new Map(runs.map(({ id, status }) => [id, status]))
    })
    return { ids, read }
  }

  /** How many streams follow one run, and how many all runs of an account. */
  get followers(): { run: number; account: number } {
    const count = (followers: Map<string, Set<unknown>>) =>
      [...followers.values()].reduce((sum, { size }) => sum + size, 0)
    return { run: count(this.#followers.run), account: count(this.#followers.account) }
  }

  get #hasFollowers(): boolean {
    return this.#followers.run.size > 0 || this.#followers.account.size > 0
  }

  #isOver(signal: AbortSignal): boolean {
    return signal.aborted || this.#closed
  }

  async #follow(kind: 'run' | 'account', id: string): Promise<Follower> {
    // Changes before the end of this read are in what the follower reads next.
    if (!this.#hasFollowers) await this.#readChanges()
    if (kind === 'account' && !this.#followers.account.has(id)) await this.#hasNewRuns(id)
    const follower = new Follower()
    const followers = this.#followers[kind].get(id) ?? new Set()
    this.#followers[kind].set(id, followers.add(follower))
    return follower
  }

  #unfollow(kind: 'run' | 'account', id: string, follower: Follower): void {
    const followers = this.#followers[kind].get(id)
    followers?.delete(follower)
    if (followers?.size !== 0) return
    this.#followers[kind].delete(id)
    if (kind === 'account') this.#newestRuns.delete(id)
  }

  /** Whether runs of the account were queued since the last call. */
  async #hasNewRuns(accountId: string): Promise<boolean> {
    const newest = (await this.#store.read.all(findNewestRuns, [accountId])).map(({ id }) => id).join()
    const before = this.#newestRuns.get(accountId)
    this.#newestRuns.set(accountId, newest)
    return newest !== before
  }

  #notify(): void {
    // Streams get the error from their own reads.
    if (this.#hasFollowers) this.#readChanges().catch(() => {})
  }

  /**
   * Reads what has changed and notifies its followers. Resolves when a read has ended that began after this call. One query
   * serves all followers, and one follows the other: what a read returns, no later one returns again.
   */
  #readChanges(): Promise<void> {
    this.#nextReading ??= this.#reading
      .catch(() => {})
      .then(() => {
        this.#reading = this.#nextReading ?? this.#reading
        this.#nextReading = undefined
        return this.#notifyFollowers()
      })
    return this.#nextReading
  }

  async #notifyFollowers(): Promise<void> {
    try {
      const changed = await this.#changedRuns.find(() => this.#hasFollowers)
      for (const runId of changed) notifyAll(this.#followers.run.get(runId))
      if (this.#followers.account.size === 0) return
      const runs = await readColumns(this.#store.read, ['account_id'], [...changed])
      const accounts = new Set(runs.map(({ account_id }) => account_id))
      for (const id of this.#followers.account.keys()) if (await this.#hasNewRuns(id)) accounts.add(id)
      for (const id of accounts) notifyAll(this.#followers.account.get(id))
    } catch (error) {
      // What the read has found before the error is found no more.
      for (const followed of Object.values(this.#followers)) for (const each of followed.values()) notifyAll(each)
      throw error
    }
  }
}

function notifyAll(followers: ReadonlySet<Follower> = new Set()): void {
  for (const follower of followers) follower.notify()
}

// Finds the runs with new events, whichever process has written them.

type EventId = { id: number; run_id: string }

const findLatestEvent = statement<{ latest: number }, []>('SELECT COALESCE(MAX(id), 0) AS latest FROM run_events')
const findNewEvents = statement<EventId, [afterId: number, limit: number]>(
  'SELECT id, run_id FROM run_events WHERE id > ? ORDER BY id LIMIT ?',
)

const changedEventsPerRead = 1000

/** No transaction of the service takes this long, so an event id still missing then was rolled back. */
const missingMillisecondsMax = 30_000
/** Bounds the query for missing ids. */
const missingMax = 1000

class ChangedRuns {
  readonly #store: Pick<Store, 'read'>
  /** The id of the last event found. */
  #lastId = 0
  /** Lower event ids that have not been seen, and since when. */
  readonly #missing = new Map<number, number>()

  constructor(store: Pick<Store, 'read'>) {
    this.#store = store
  }

  /**
   * Runs with new events. PostgreSQL assigns ids before the commit, so a missing id may still appear: it is queried
   * until its transaction must have been rolled back.
   *
   * @param isFollowed without followers, past events are skipped, except ids whose transactions may not have committed yet.
   */
  async find(isFollowed: () => boolean): Promise<Set<string>> {
    const runs = new Set<string>()
    const { read } = this.#store
    const [newest] = isFollowed() ? [] : await read.all(findLatestEvent, [])
    if (newest && !isFollowed()) {
      this.#missing.clear()
      this.#lastId = Math.max(0, newest.latest - changedEventsPerRead)
    }
    const now = performance.now()
    for (const [id, since] of this.#missing) if (now - since > missingMillisecondsMax) this.#missing.delete(id)
    if (this.#missing.size > 0) {
      const { marks, values } = inList([...this.#missing.keys()])
      for (const row of await read.all<EventId>(`SELECT id, run_id FROM run_events WHERE id IN (${marks})`, values)) {
        this.#missing.delete(row.id)
        runs.add(row.run_id)
      }
    }
    for (let count = changedEventsPerRead; count === changedEventsPerRead; ) {
      const events = await read.all(findNewEvents, [this.#lastId, changedEventsPerRead])
      count = events.length
      for (const { id, run_id } of events) {
        for (let skipped = this.#lastId + 1; skipped < id && this.#missing.size < missingMax; skipped += 1) {
          this.#missing.set(skipped, now)
        }
        this.#lastId = id
        runs.add(run_id)
      }
    }
    return runs
  }
}

// Wakes a stream that follows a run or an account. Remembers a change that arrives before the stream waits for it.

class Follower {
  #changed = false
  #wake = () => {}

  notify(): void {
    this.#changed = true
    this.#wake()
  }

  /** Resolves with true at the next change, or with false after `milliseconds` or when `signal` is aborted. */
  async wait(milliseconds: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#changed && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, milliseconds)
      this.#wake = resolve
      signal.addEventListener('abort', this.#wake)
      await promise
      signal.removeEventListener('abort', this.#wake)
      clearTimeout(timer)
    }
    const changed = this.#changed
    this.#changed = false
    return changed
  }
}
