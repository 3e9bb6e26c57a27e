/** The limit of an account's queued runs, which QUEUED_RUNS_MAX sets. */
import type { Transaction } from '../../storage/store.ts'

/** Within this distance of its limit, the queued runs of an account are counted for each batch. */
const distanceMin = 5000

/** An upper bound for the rate of all processes (15 were measured), which limits how long a count can be reused. */
const runsPerMillisecond = 50

/** Limits the queued runs of an account exactly, without counting them for each batch while the limit is far. */
export class QueuedRunsLimit {
  readonly max: number
  readonly #distance: number
  /** The last count of each account, and the runs that this process has added since. */
  readonly #counts = new Map<string, { queued: number; countedAt: number }>()

  /** @param max runs of an account; 0 for no limit. */
  constructor(max: number) {
    this.max = max
    this.#distance = Math.max(distanceMin, max / 2)
  }

  /**
   * Returns how many of `wanted` runs the account may enqueue. Call it before anything is written in the transaction,
   * once for each account, in the order of their ids: near the limit it locks the account.
   */
  async reserve(tx: Transaction, accountId: string, wanted: number): Promise<number> {
    if (await this.reserveFarFrom(tx, accountId, wanted)) return wanted
    await tx.all(tx.statements.lockAccount, [accountId])
    const count = await this.#count(tx, accountId)
    const reserved = Math.min(wanted, Math.max(0, this.max - count.queued))
    count.queued += reserved
    return reserved
  }

  /** Like `reserve`, but reserves all or none: none if the limit is near. Writes and locks nothing. */
  async reserveFarFrom(tx: Transaction, accountId: string, wanted: number): Promise<boolean> {
    if (this.max === 0) return true
    const near = this.max - this.#distance - wanted
    const known = this.#counts.get(accountId)
    if (near < 0 || (known?.queued ?? 0) > near) return false
    const isRecent = known && performance.now() - known.countedAt < this.#distance / runsPerMillisecond
    const count = isRecent ? known : await this.#count(tx, accountId)
    if (count.queued > near) return false
    count.queued += wanted
    return true
  }

  async #count(tx: Transaction, accountId: string) {
    const countedAt = performance.now()
    const [row] = await tx.all(tx.statements.countQueuedRuns, [accountId, this.max])
    const count = { queued: row?.count ?? 0, countedAt }
    this.#counts.set(accountId, count)
    return count
  }
}
