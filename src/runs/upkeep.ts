/** What time alone does: delays end, unstarted runs expire, leases of lost workers run out, the dead are forgotten. */
import { oldEntries } from '../audit-log/retention.ts'
import { unfinishedErasures, unfinishedVersions } from '../browser-contexts/erasure.ts'
import type { Session, Store } from '../storage/store.ts'
import type { RunsTable } from '../storage/tables.ts'
import { RunArtifacts } from './artifacts.ts'
import { anyFreeContextWaitedFor, passOnFreeContexts } from './context-turns.ts'
import { type AttemptedRun, attemptedColumns, type Handout, handoutOf, type ReadyRun, readyColumns } from './handout.ts'
import { type FinishedRun, finishedRun, type RunObserver } from './observer.ts'
import { Removal } from './removal.ts'
import { finishedRuns, type Retention } from './retention.ts'
import { settleRow } from './settlement.ts'
import { noRetry } from './state.ts'
import { appendEvent } from './store.ts'
import { anyLongDeadWorkers, forgetLongDeadWorkers } from './workers.ts'

const nextDelaySql = `SELECT MIN(available_at) AS at FROM runs WHERE status = 'queued' AND delayed = 1`
const expiringSql = `SELECT id FROM runs
  WHERE status = 'queued' AND expires_at IS NOT NULL AND expires_at <= ? AND attempts = 0 LIMIT 500`
const lostSql = `SELECT * FROM runs WHERE status = 'running' AND lease_expires_at <= ? LIMIT 500`
const endDelaysSql = `UPDATE runs SET delayed = 0 WHERE id IN (SELECT id FROM runs
  WHERE status = 'queued' AND delayed = 1 AND available_at <= ? ORDER BY available_at LIMIT 500)
  AND status = 'queued' RETURNING ${readyColumns}`
const expireSql = `UPDATE runs SET status = 'expired', reason = 'notStartedInTime', finished_at = ?
  WHERE id = ? AND status = 'queued' AND attempts = 0 RETURNING ${attemptedColumns}`
const forgetKeysSql = 'DELETE FROM idempotency_keys WHERE expires_at <= ?'
const anyOldKeySql = 'SELECT 1 AS one FROM idempotency_keys WHERE expires_at <= ? LIMIT 1'

/** Looks this often, and sooner when a delay ends sooner. */
const intervalMilliseconds = 1000

export class Upkeep {
  readonly #store: Store
  readonly #handout: Handout
  readonly #removals: readonly Removal[]
  readonly #now: () => number
  readonly #onError: (error: unknown) => void
  readonly #observer: RunObserver | undefined
  #timer: NodeJS.Timeout | undefined
  #working: Promise<void> | undefined
  #stopped = false

  constructor(
    store: Store,
    retention: Retention,
    onError: (error: unknown) => void,
    now: () => number = Date.now,
    observer?: RunObserver,
  ) {
    this.#store = store
    this.#handout = handoutOf(store)
    this.#observer = observer
    const unwanted = [
      new RunArtifacts(store, retention.artifacts, now).old,
      finishedRuns(retention.runs, now),
      oldEntries(retention.auditLog, now),
      unfinishedVersions(now),
      unfinishedErasures(now),
    ]
    this.#removals = unwanted.map((each) => new Removal(store, each))
    this.#onError = onError
    this.#now = now
  }

  /** Does it now and from then on; any number of processes may. */
  start(): void {
    this.#working = this.once()
      .then(
        (due) => due,
        (error) => {
          this.#onError(error)
          return intervalMilliseconds
        },
      )
      .then((milliseconds) => {
        if (!this.#stopped) this.#timer = setTimeout(() => this.start(), milliseconds)
      })
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#working
  }

  /** Does what is due; returns in how many milliseconds to look again. Writes only when something is due. */
  async once(): Promise<number> {
    const now = this.#now()
    if (await this.#anythingDue(now)) {
      const { expired, finished, leasesExpired } = await this.#store.write((session) => this.#do(session, now), {
        overlapping: true,
        turn: 'upkeep',
      })
      for (const run of finished) this.#observer?.finished(run)
      if (leasesExpired > 0) this.#observer?.leasesExpired(leasesExpired)
      this.#store.ring('queue')
      this.#store.ring('runs')
      for (const run of expired) await this.#handout.withdraw(run)
    }
    const interval = await this.#removeSome()
    const next = await this.#nextDelay()
    return next === null ? interval : Math.min(interval, Math.max(1, next - this.#now()))
  }

  /**
   * In transactions of its own, since they take a while; returns in how many milliseconds to look again. While there is
   * more, that is sooner than otherwise, and others get as much time to write as this has taken.
   */
  async #removeSome(): Promise<number> {
    const startedAt = performance.now()
    let more = false
    for (const removal of this.#removals) {
      if (await removal.once()) more = true
    }
    return more ? Math.min(intervalMilliseconds - 1, Math.ceil(performance.now() - startedAt)) : intervalMilliseconds
  }

  async #anythingDue(now: number): Promise<boolean> {
    const next = await this.#nextDelay()
    if (next !== null && next <= now) return true
    for (const sql of [expiringSql, lostSql, anyOldKeySql]) {
      if ((await this.#store.read.all(sql, [now])).length > 0) return true
    }
    const { read } = this.#store
    if (await anyFreeContextWaitedFor(read)) return true
    return anyLongDeadWorkers(read, now)
  }

  async #nextDelay(): Promise<number | null> {
    const [row] = await this.#store.read.all<{ at: number | null }>(nextDelaySql, [])
    return row?.at ?? null
  }

  /** Returns the runs that were not started in time, and what is to be told of these and others. */
  async #do(session: Session, now: number) {
    const expired: AttemptedRun[] = []
    const finished: FinishedRun[] = []
    // Before delays end: a run that may start no sooner than it expires has not started in time.
    for (const { id } of await session.all<{ id: string }>(expiringSql, [now])) {
      const [run] = await session.all<AttemptedRun>(expireSql, [now, id])
      // Started, or cancelled, in this moment.
      if (!run) continue
      expired.push(run)
      finished.push(finishedRun({ ...run, started_at: null }, { status: 'expired', reason: 'notStartedInTime' }, now))
      const data = { status: 'expired', attempt: 0, reason: 'notStartedInTime' }
      await appendEvent(session, id, { at: now, type: 'status', data })
    }
    const lost = await session.all<RunsTable>(`${lostSql} ${session.forUpdate}`, [now])
    for (const row of lost) {
      const ended = await settleRow(session, this.#handout, row, { kind: 'workerLost' }, noRetry, now)
      if (ended) finished.push(ended)
    }
    await this.#handout.unpark(session, await session.all<ReadyRun>(endDelaysSql, [now]))
    await session.all(forgetKeysSql, [now])
    await passOnFreeContexts(session, this.#handout)
    await forgetLongDeadWorkers(session, now)
    return { expired, finished, leasesExpired: lost.length }
  }
}
