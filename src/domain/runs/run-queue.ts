/**
 * The queue as workers use it: claim runs under a lease, extend leases, report on attempts and complete them. Every
 * report names the attempt as its fencing token, so that a worker paused past its lease changes nothing.
 */
import { inList } from '../../storage/statement-values.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables.ts'
import { type NewArtifact, putArtifact } from './artifacts.ts'
import {
  type Claim,
  type Claimable,
  completeAttempt,
  ExclusiveClaimNeeded,
  type Lease,
  nextStateOfRow,
  recordReports,
  startAttempt,
} from './attempts.ts'
import { Dispatcher } from './dispatcher.ts'
import { FairSchedule } from './fair-scheduling.ts'
import type { Report } from './run.ts'
import type { FinishedRun, Outcome, RetryPolicy, RunObserver, RunStatus } from './run-state.ts'

export interface QueueOptions {
  /** How many runs of one account may run at the same time, over all workers; 0 for no limit. */
  accountConcurrency?: number
  now?: () => number
  observer?: RunObserver
}

/** Skipping a run takes a statement. After this many, a transaction ends, so that others can write. */
const skippedMax = 100
/** At most this many snapshots of queue heads in one claim; the next claim resumes after the last account seen. */
const snapshotsMax = 4

export class RunQueue {
  readonly #store: Store
  readonly #dispatcher: Dispatcher
  readonly #accountConcurrency: number
  readonly #now: () => number
  readonly #observer: RunObserver | undefined
  /** The account that this process served last. */
  #lastAccount = ''

  constructor(store: Store, { accountConcurrency = 0, now = Date.now, observer }: QueueOptions = {}) {
    this.#store = store
    this.#dispatcher = new Dispatcher(store)
    this.#accountConcurrency = accountConcurrency
    this.#now = now
    this.#observer = observer
  }

  /** Claims up to `slots` runs within the concurrency limits of workflows and accounts, by fair scheduling. */
  async claim(
    workerId: string,
    workflows: readonly Claimable[],
    slots: number,
    leaseSeconds: number,
  ): Promise<Claim[]> {
    // Most wake-ups find nothing; this read saves them a write transaction.
    const schedule = await this.#findSchedule(workflows)
    if (!schedule.next()) return []
    await this.#dispatcher.createQueues(schedule.heads)
    // With a limit, two processes that count at the same time would exceed it. SQLite has one writer anyway.
    let exclusive =
      !this.#store.jobs ||
      this.#accountConcurrency > 0 ||
      workflows.some(({ concurrencyLimit }) => concurrencyLimit !== null)
    let more = true
    let snapshot: FairSchedule | undefined = schedule
    const claims: Claim[] = []
    while (more) {
      const options = { workerId, slots: slots - claims.length, leaseSeconds, exclusive }
      // With a limit, re-read the counts inside the transaction. Without one a stale snapshot is safe, because each
      // claim is an atomic UPDATE. The transaction may run twice, so it changes a copy.
      const stale = exclusive ? undefined : snapshot?.copy()
      snapshot = undefined
      const claimBatch = async (tx: Transaction) =>
        this.#claimBatch(tx, stale?.copy() ?? (await this.#readSchedule(tx, workflows)), options)
      const write = this.#store.write(claimBatch, { concurrent: true, ...(exclusive && { exclusive: 'claim' }) })
      const batch = await write.catch((error: unknown) => {
        if (error instanceof ExclusiveClaimNeeded) {
          exclusive = true
          return { claims: [], more: true }
        }
        // Keep the claims of earlier batches: without a worker, their runs would wait for their leases to expire.
        if (claims.length === 0) throw error
        return { claims: [], more: false }
      })
      more = batch.more
      claims.push(...batch.claims)
    }
    this.#lastAccount = claims.at(-1)?.accountId ?? this.#lastAccount
    if (claims.length > 0) this.#store.notify('runs')
    return claims
  }

  /** Reads queue heads until one can be claimed, so that accounts at their limits do not hide those after them. */
  async #findSchedule(workflows: readonly Claimable[]): Promise<FairSchedule> {
    for (let snapshots = 1; ; snapshots += 1) {
      const schedule = await this.#readSchedule(this.#store.read, workflows)
      if (schedule.continueAfter === undefined || schedule.next()) return schedule
      this.#lastAccount = schedule.continueAfter
      if (snapshots === snapshotsMax) return schedule
    }
  }

  #readSchedule(tx: Transaction, workflows: readonly Claimable[]): Promise<FairSchedule> {
    const claimer = { workflows, accountConcurrency: this.#accountConcurrency, after: this.#lastAccount }
    return FairSchedule.read(tx, claimer, this.#now())
  }

  /** Claims up to `slots` runs in one transaction; returns whether there may be more. */
  async #claimBatch(
    tx: Transaction,
    schedule: FairSchedule,
    {
      workerId,
      slots,
      leaseSeconds,
      exclusive,
    }: { workerId: string; slots: number; leaseSeconds: number; exclusive: boolean },
  ): Promise<{ claims: Claim[]; more: boolean }> {
    const claims: Claim[] = []
    for (let skipped = 0; claims.length < slots; ) {
      const at = this.#now()
      const head = schedule.next()
      if (!head) break
      // Before its job is taken, which would hide the run from other claimers.
      if (head.browser_context_id !== null && !exclusive) throw new ExclusiveClaimNeeded()
      const dispatch = await this.#dispatcher.take(tx, head)
      if (!dispatch) {
        schedule.drop(head)
        continue
      }
      const start = { dispatch, workflow: head.workflow, workerId, at, leaseExpiresAt: at + leaseSeconds * 1000 }
      const claim = await startAttempt(tx, start, exclusive)
      if (!claim) {
        // Parked instead of completed: the run may need its job again, as pg-boss expires active jobs after a day.
        const { runId: id, jobId: job_id, jobRetryCount: job_retry_count } = dispatch
        await this.#dispatcher.park(tx, { ...head, id, job_id, job_retry_count })
        await schedule.skip(tx, head, at)
        if (++skipped === skippedMax) return { claims, more: true }
        continue
      }
      claims.push(claim)
      if (claims.length < slots) await schedule.claimed(tx, head, at)
    }
    return { claims, more: false }
  }

  /**
   * Extends the given leases; returns those that the worker still has. Others expire: if the connection was lost during
   * the commit of a claim, the worker does not know about it, and another must take the run.
   */
  async renew(workerId: string, leases: readonly Lease[], leaseSeconds: number): Promise<Lease[]> {
    if (leases.length === 0) return []
    const until = this.#now() + leaseSeconds * 1000
    const { marks, values } = inList(leases.map(({ runId }) => runId))
    const extend = async (tx: Transaction) => {
      const runs = await tx.all(tx.statements.extendLeases(marks), [until, workerId, ...values])
      await this.#dispatcher.touch(tx, runs)
      return runs
    }
    const runs = await this.#store.write(extend, { concurrent: true })
    return runs.map(({ id, attempts }) => ({ runId: id, attempt: attempts, workerId }))
  }

  /** The worker's leases on runs that a caller has cancelled. */
  async cancelRequested(workerId: string): Promise<Lease[]> {
    const { read } = this.#store
    return (await read.all(read.statements.cancelledLeases, [workerId])).map(({ id, attempts }) => ({
      runId: id,
      attempt: attempts,
      workerId,
    }))
  }

  /** Appends events to the run, and stores the last progress among them. False when the lease was lost. */
  async report(lease: Lease, reports: readonly Report[]): Promise<boolean> {
    return this.#withLease(lease, (tx) => recordReports(tx, lease, reports))
  }

  /**
   * Appends events and stores a step's result for later attempts. False when the lease was lost.
   *
   * @param encrypt called for each attempt to write the result, since the encryption key may have changed.
   */
  async finishStep(
    lease: Lease,
    name: string,
    encrypt: () => Uint8Array,
    reports: readonly Report[],
  ): Promise<boolean> {
    return this.#withLease(lease, async (tx) => {
      await tx.query.insertInto('run_steps').values({ run_id: lease.runId, name, value: encrypt() }).execute()
      await recordReports(tx, lease, reports)
    })
  }

  /** Stores an artifact of the run. False when the lease was lost. @throws {ArtifactError} */
  async keepArtifact(lease: Lease, artifact: NewArtifact, reports: readonly Report[]): Promise<boolean> {
    return this.#withLease(lease, async (tx) => {
      await putArtifact(tx, lease, artifact, this.#now())
      await recordReports(tx, lease, reports)
    })
  }

  /**
   * Ends the attempt: the run finishes or is queued again. False when the lease was lost; nothing has changed then.
   *
   * @param within writes in the same transaction, and may return further events.
   */
  async complete(
    lease: Lease,
    outcome: Outcome,
    retry: RetryPolicy,
    reports: readonly Report[] = [],
    within: (tx: Transaction, next: RunStatus) => Promise<readonly Report[]> = async () => [],
  ): Promise<boolean> {
    let finished: FinishedRun | undefined
    const completed = await this.#withLease(lease, async (tx, row) => {
      const more = await within(tx, nextStateOfRow(row, outcome, retry).status)
      await recordReports(tx, lease, [...reports, ...more])
      finished = await completeAttempt(tx, this.#dispatcher, row, outcome, retry, this.#now())
    })
    if (completed && finished) this.#observer?.finished(finished)
    if (completed) this.#store.notify('queue')
    return completed
  }

  async #withLease(
    { runId, attempt, workerId }: Lease,
    work: (tx: Transaction, row: RunsTable) => Promise<void>,
  ): Promise<boolean> {
    const workIfLeased = async (tx: Transaction) => {
      const [row] = await tx.all(tx.statements.lockLeasedRun, [runId, attempt, workerId])
      if (row) await work(tx, row)
      return row !== undefined
    }
    const isLeased = await this.#store.write(workIfLeased, { concurrent: true })
    if (isLeased) this.#store.notify('runs')
    return isLeased
  }
}
