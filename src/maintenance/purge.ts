/** Removes what is large and no longer wanted, a portion at a time and by one process at a time. */
import type { PurgeTarget } from '../storage/purge-target.ts'
import type { Store, Transaction } from '../storage/store.ts'

export class Purge {
  readonly #store: Store
  readonly #unwanted: PurgeTarget
  /** What was left when this process last removed something. */
  #left: string | undefined

  constructor(store: Store, unwanted: PurgeTarget) {
    this.#store = store
    this.#unwanted = unwanted
  }

  /**
   * Removes a portion, unless another process is at it. Returns whether there is more to do soon; a process that finds
   * another at it writes nothing and leaves it to that one until it looks again.
   */
  async once(): Promise<boolean> {
    const { next, remove, concurrent = false } = this.#unwanted
    const found = await next(this.#store.read)
    const isOthers = this.#left !== undefined && this.#left !== found
    this.#left = undefined
    if (found === undefined || isOthers) return false
    const removeNext = async (tx: Transaction) => {
      if ((await next(tx)) !== found) return false
      await remove(tx)
      return true
    }
    const removed = await this.#store.write(removeNext, { concurrent, exclusive: 'maintenance' })
    if (removed) this.#left = await next(this.#store.read)
    return this.#left !== undefined
  }
}
