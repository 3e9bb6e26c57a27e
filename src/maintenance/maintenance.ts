/** What time alone does: delays end, unstarted runs expire, leases of lost workers run out, the dead are forgotten. */

import { unfinishedErasures, unfinishedVersions } from '../domain/browser-contexts/context-erasure.ts'
import { RunArtifacts } from '../domain/runs/artifacts.ts'
import { completeAttempt } from '../domain/runs/completion.ts'
import { anyFreeContextWaitedFor, passOnFreeContexts } from '../domain/runs/context-waiting.ts'
import {
  type AttemptedRun,
  attemptedColumns,
  type Dispatcher,
  dispatcherFor,
  type ReadyRun,
  readyColumns,
} from '../domain/runs/dispatcher.ts'
import { type FinishedRun, finishedRun, type RunObserver } from '../domain/runs/run-observer.ts'
import { noRetry } from '../domain/runs/run-state.ts'
import { appendEvent } from '../domain/runs/runs.sql.ts'
import { anyLongDeadWorkers, forgetLongDeadWorkers } from '../domain/runs/workers.ts'
import type { Store, Transaction } from '../storage/store.ts'
import type { RunsTable } from '../storage/tables.ts'
import { oldEntries } from './audit-log-retention.ts'
import { Purge } from './purge.ts'
import { finishedRuns, type Retention } from './retention.ts'

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

export class Maintenance {
  readonly #store: Store
  readonly #handout: Dispatcher
  readonly #removals: readonly Purge[]
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
    this.#handout = dispatcherFor(store)
    this.#observer = observer
    const unwanted = [
      new RunArtifacts(store, retention.artifacts, now).old,
      finishedRuns(retention.runs, now),
      oldEntries(retention.auditLog, now),
      unfinishedVersions(now),
      unfinishedErasures(now),
    ]
    this.#removals = unwanted.map((each) => new Purge(store, each))
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
      const { expired, finished, leasesExpired } = await this.#store.write((tx) => this.#do(tx, now), {
        concurrent: true,
        exclusive: 'maintenance',
      })
      for (const run of finished) this.#observer?.finished(run)
      if (leasesExpired > 0) this.#observer?.leasesExpired(leasesExpired)
      this.#store.notify('queue')
      this.#store.notify('runs')
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
  async #do(tx: Transaction, now: number) {
    const expired: AttemptedRun[] = []
    const finished: FinishedRun[] = []
    // Before delays end: a run that may start no sooner than it expires has not started in time.
    for (const { id } of await tx.all<{ id: string }>(expiringSql, [now])) {
      const [run] = await tx.all<AttemptedRun>(expireSql, [now, id])
      // Started, or cancelled, in this moment.
      if (!run) continue
      expired.push(run)
      finished.push(finishedRun({ ...run, started_at: null }, { status: 'expired', reason: 'notStartedInTime' }, now))
      const data = { status: 'expired', attempt: 0, reason: 'notStartedInTime' }
      await appendEvent(tx, id, { at: now, type: 'status', data })
    }
    const lost = await tx.all<RunsTable>(`${lostSql} ${tx.forUpdate}`, [now])
    for (const row of lost) {
      const ended = await completeAttempt(tx, this.#handout, row, { kind: 'workerLost' }, noRetry, now)
      if (ended) finished.push(ended)
    }
    await this.#handout.unpark(tx, await tx.all<ReadyRun>(endDelaysSql, [now]))
    await tx.all(forgetKeysSql, [now])
    await passOnFreeContexts(tx, this.#handout)
    await forgetLongDeadWorkers(tx, now)
    return { expired, finished, leasesExpired: lost.length }
  }
}
