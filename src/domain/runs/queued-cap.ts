/** How many queued runs an account may have; exact near the cap, and far from it not counted with every run. */
import type { Transaction } from '../../storage/store.ts'

/** Near the cap every run is counted; this far from it, at least, a process goes by what it has counted a moment ago. */
const distanceMin = 5000

/** More than all processes together can queue: 15 were measured. So the distance outlasts a count that is believed. */
const runsPerMillisecond = 50

/** From the index runs_by_status: 10,000 take half a millisecond to one. */
const countSql = `SELECT COUNT(*) AS count FROM
  (SELECT id FROM runs WHERE account_id = ? AND status = 'queued' LIMIT CAST(? AS INTEGER)) AS queued_runs`

export class QueuedCap {
  readonly max: number
  readonly #distance: number
  /** What was counted, and what this process may have added since. */
  readonly #known = new Map<string, { queued: number; countedAt: number }>()

  /** @param max runs of an account; 0 for any number. */
  constructor(max: number) {
    this.max = max
    this.#distance = Math.max(distanceMin, max / 2)
  }

  /**
   * To be called within the transaction that queues the runs, once for each account, in the order of their ids, and
   * before anything is written: the lock that it takes near the cap is one that others may be waiting for.
   *
   * @param wanted how many runs are to be queued at most.
   * @returns for how many of them there is room.
   */
  async room(tx: Transaction, accountId: string, wanted: number): Promise<number> {
    if (this.max === 0) return wanted
    const near = this.max - this.#distance - wanted
    const known = this.#known.get(accountId)
    if (near >= 0 && (known?.queued ?? 0) <= near) {
      const isFresh = known && performance.now() - known.countedAt < this.#distance / runsPerMillisecond
      const { queued } = isFresh ? known : await this.#count(tx, accountId)
      if (queued <= near) return this.#give(accountId, wanted)
    }
    // A run refers to its account's row, so that this waits for whoever has queued one and not committed it yet.
    await tx.all(`SELECT id FROM accounts WHERE id = ? ${tx.forUpdate}`, [accountId])
    const { queued } = await this.#count(tx, accountId)
    return this.#give(accountId, Math.min(wanted, Math.max(0, this.max - queued)))
  }

  async #count(tx: Transaction, accountId: string) {
    const countedAt = performance.now()
    const [row] = await tx.all<{ count: number }>(countSql, [accountId, this.max])
    const known = { queued: row?.count ?? 0, countedAt }
    this.#known.set(accountId, known)
    return known
  }

  #give(accountId: string, runs: number): number {
    const known = this.#known.get(accountId)
    if (known) known.queued += runs
    return runs
  }
}
