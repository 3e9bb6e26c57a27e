/** Claims runs for a worker's free slots: from snapshots of the queue heads, by fair scheduling, within the limits. */
import type { ClaimTerms } from '../../storage/run-statements.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import { type OwnAttempts, ServedAccounts } from './account-order.ts'
import type { Claim } from './attempts.ts'
import { type Batch, claimPicks, skippedMax } from './claim-picks.ts'
import { type ClaimableWorkflows, type Claimer, FairSchedule, hasLimits } from './fair-scheduling.ts'

/** Accounts that a snapshot has in addition to one for each free slot and each process in turn, to choose from. */
const accountsMore = 2
/** A snapshot in which no run can be claimed is followed by one of this many times as many accounts. */
const growth = 8
/** At most this many of these in a row; the next claim resumes after the last account seen. */
const blockedMax = 4

export class RunClaims {
  readonly #store: Store
  readonly #accountConcurrency: number
  readonly #now: () => number
  /** The account that this process served last. */
  #lastAccount = ''
  readonly #served = new ServedAccounts()
  /** Whether the end of a run may let another one start. */
  hasLimits = true

  constructor(store: Store, { accountConcurrency, now }: { accountConcurrency: number; now: () => number }) {
    this.#store = store
    this.#accountConcurrency = accountConcurrency
    this.#now = now
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
    this.hasLimits = hasLimits(claimer)
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
}
