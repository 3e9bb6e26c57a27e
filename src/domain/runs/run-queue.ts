/**
 * The queue as workers use it: claim runs under a lease, extend leases, report on attempts and complete them. Every
 * report names the attempt as its fencing token, so that a worker paused past its lease changes nothing.
 */
import type { ClaimTerms } from '../../storage/run-statements.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables/run-tables.ts'
import { type OwnAttempts, ServedAccounts } from './account-order.ts'
import type { NewArtifact } from './artifact-limits.ts'
import { putArtifact } from './artifacts.ts'
import {
  type Claim,
  completeAttempt,
  type EndedAttempt,
  type Lease,
  nextStateOfRow,
  recordReports,
} from './attempts.ts'
import { Batcher } from './batcher.ts'
import { type Batch, claimPicks, skippedMax } from './claim-picks.ts'
import { type ClaimableWorkflows, type Claimer, FairSchedule, hasLimits } from './fair-scheduling.ts'
import { handBack } from './hand-back.ts'
import type { Report } from './run.ts'
import {
  type FinishedRun,
  noRetry,
  type Outcome,
  type RetryPolicy,
  type RunObserver,
  type RunStatus,
} from './run-state.ts'
import { finishSuccesses, type Success } from './successes.ts'

export interface QueueOptions {
  /** How many runs of one account may run at the same time, over all workers; 0 for no limit. */
  accountConcurrency?: number
  now?: () => number
  observer?: RunObserver
}

/** Accounts that a snapshot has in addition to one for each free slot and each process in turn, to choose from. */
const accountsMore = 2
/** A snapshot in which no run can be claimed is followed by one of this many times as many accounts. */
const growth = 8
/** At most this many of these in a row; the next claim resumes after the last account seen. */
const blockedMax = 4

export class RunQueue {
  readonly #store: Store
  readonly #accountConcurrency: number
  readonly #now: () => number
  readonly #observer: RunObserver | undefined
  readonly #successes: Batcher<Success, FinishedRun | undefined>
  /** Whether the end of a run may let another one start. */
  #hasLimits = true
  /** The account that this process served last. */
  #lastAccount = ''
  readonly #served = new ServedAccounts()

  constructor(store: Store, { accountConcurrency = 0, now = Date.now, observer }: QueueOptions = {}) {
    this.#store = store
    this.#accountConcurrency = accountConcurrency
    this.#now = now
    this.#observer = observer
    this.#successes = new Batcher(store, (tx, successes) => finishSuccesses(tx, successes, this.#now()), {
      oneStatement: true,
    })
  }

  /**
   * Claims runs within the concurrency limits of workflows and accounts, by fair scheduling.
   *
   * @param slots the most runs to claim. A function is called again when the claim has its transaction, so that slots
   * which became free during the wait for it are filled by the same commit.
   * @param own by which the worker prefers accounts for which it has a process.
   */
  async claim(
    workerId: string,
    workflows: ClaimableWorkflows,
    slots: number | (() => number),
    leaseSeconds: number,
    own?: OwnAttempts,
  ): Promise<Claim[]> {
    const countMax = typeof slots === 'number' ? () => slots : slots
    const claimer = { workflows, accountConcurrency: this.#accountConcurrency, own, served: this.#served }
    this.#hasLimits = hasLimits(claimer)
    const claims: Claim[] = []
    let blocked = 0
    while (claims.length < countMax() && blocked < blockedMax) {
      const accountsInTurn = new Set(own?.inTurn()).size
      const accountsMax = (countMax() + accountsInTurn + accountsMore) * growth ** blocked
      const left = () => countMax() - claims.length
      try {
        const batch = await this.#claimBatch({ workerId, leaseSeconds }, claimer, left, accountsMax)
        claims.push(...batch.claims)
        this.#lastAccount = batch.lastAccount ?? this.#lastAccount
        if (!batch.more) break
        blocked = batch.claims.length + batch.skipped > 0 ? 0 : blocked + 1
      } catch (error) {
        // Keep the claims of earlier batches: without a worker, their runs would wait for their leases to expire.
        if (claims.length === 0) throw error
        break
      }
    }
    if (claims.length > 0) this.#store.notify('runs')
    return claims
  }

  /** Claims runs of one snapshot; returns whether there may be more. */
  async #claimBatch(
    { workerId, leaseSeconds }: { workerId: string; leaseSeconds: number },
    claimer: Claimer,
    slots: () => number,
    accountsMax: number,
  ): Promise<Batch> {
    const read = (tx: Transaction) =>
      FairSchedule.read(tx, claimer, { after: this.#lastAccount, accountsMax, now: this.#now() })
    // Most wake-ups find nothing; this read saves them a write.
    const schedule = await read(this.#store.read)
    await schedule.loadWorkflows()
    const picks = schedule.pick(slots())
    if (picks.length === 0) {
      return { claims: [], skipped: 0, more: schedule.continueAfter !== undefined, lastAccount: schedule.continueAfter }
    }
    const terms = (): ClaimTerms => ({ workerId, at: this.#now(), leaseExpiresAt: this.#now() + leaseSeconds * 1000 })
    if (!picks.some((pick) => schedule.isExclusive(pick))) {
      // The snapshot may be stale: the statement claims what is ready now.
      const growing = () => (schedule.hasExclusive() ? picks : schedule.pick(slots()))
      const claim = (tx: Transaction) => claimPicks(tx, schedule, growing(), terms())
      // If a power cut undoes the claim, the run is claimed again. Every report and outcome is durable together with it.
      return this.#store.write(claim, { concurrent: true, oneStatement: true, durableLater: true })
    }
    // Two processes that count at the same time would exceed a limit.
    const claim = async (tx: Transaction) => {
      for (const total = { claims: [] as Claim[], skipped: 0 }; ; ) {
        const current = await read(tx)
        const batch = await claimPicks(tx, current, current.pick(slots() - total.claims.length), terms())
        total.claims.push(...batch.claims)
        total.skipped += batch.skipped
        const isFull = total.claims.length >= slots() || total.skipped >= skippedMax
        if (batch.skipped === 0 || isFull) return { ...batch, ...total }
      }
    }
    return this.#store.write(claim, { concurrent: true, exclusive: 'claim' })
  }

  /**
   * Extends the given leases; returns those that the worker still has. Others expire: if the connection was lost during
   * the commit of a claim, the worker does not know about it, and another must take the run.
   */
  async renew(workerId: string, leases: readonly Lease[], leaseSeconds: number): Promise<Lease[]> {
    if (leases.length === 0) return []
    const until = this.#now() + leaseSeconds * 1000
    // In order, as all transactions lock runs, which prevents deadlocks.
    const ids = leases.map(({ runId }) => runId).sort()
    const extend = (tx: Transaction) => tx.statements.extendLeases(tx, workerId, ids, until)
    const runs = await this.#store.write(extend, { concurrent: true, oneStatement: true })
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
   * @param step its position among the finished steps of the run, from 1.
   * @param encrypt called for each attempt to write the result, since the encryption key may have changed.
   */
  async finishStep(
    lease: Lease,
    { name, position }: { name: string; position: number },
    encrypt: () => Uint8Array,
    reports: readonly Report[],
  ): Promise<boolean> {
    return this.#withLease(lease, async (tx) => {
      await tx.all(tx.statements.insertStep, [lease.runId, name, encrypt(), position])
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
    within?: (tx: Transaction, next: RunStatus) => Promise<readonly Report[]>,
  ): Promise<boolean> {
    if (outcome.kind === 'succeeded' && !within) {
      const succeeded = await this.#successes.add({ lease, output: outcome.output, reports })
      if (succeeded) {
        this.#observer?.finished(succeeded)
        this.#store.notify('runs')
        if (this.#hasLimits) this.#store.notify('queue')
        return true
      }
    }
    let ended: EndedAttempt | undefined
    const completed = await this.#withLease(lease, async (tx, row) => {
      const more = (await within?.(tx, nextStateOfRow(row, outcome, retry).status)) ?? []
      await recordReports(tx, lease, [...reports, ...more])
      ended = await completeAttempt(tx, row, outcome, retry, this.#now())
    })
    if (completed && ended?.failed) this.#observer?.attemptFailed?.(ended.failed)
    if (completed && ended?.finished) this.#observer?.finished(ended.finished)
    if (completed) this.#store.notify('queue')
    return completed
  }

  /**
   * Returns a run whose deployment the worker cannot get to the queue, with a growing delay and without counting the
   * attempt. A cancelled run ends. False when the lease was lost.
   *
   * @param message why, in a sentence for callers.
   */
  async handBack(lease: Lease, message: string): Promise<boolean> {
    let finished: FinishedRun | undefined
    const isLeased = await this.#withLease(lease, async (tx, row) => {
      const at = this.#now()
      if (row.cancel_requested === 0) return handBack(tx, row, message, at)
      finished = (await completeAttempt(tx, row, { kind: 'cancelled' }, noRetry, at)).finished
    })
    if (finished) this.#observer?.finished(finished)
    if (isLeased) this.#store.notify('queue')
    return isLeased
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
