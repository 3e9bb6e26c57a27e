/** Purges expired data in batches, by one process at a time. */
import type { PurgeTarget } from '../storage/purge-target.ts'
import type { Store, Transaction } from '../storage/store.ts'

export class Purge {
  readonly #store: Store
  readonly #target: PurgeTarget
  /** The next item to purge when this process finished its last batch. */
  #next: string | undefined

  constructor(store: Store, target: PurgeTarget) {
    this.#store = store
    this.#target = target
  }

  /**
   * Purges a batch; returns whether there is more to purge soon. When another process purges the same target, this one
   * writes nothing and leaves the rest to it until the next regular check.
   */
  async once(): Promise<boolean> {
    const { next, remove, concurrent = false } = this.#target
    const item = await next(this.#store.read)
    const isPurgedByOther = this.#next !== undefined && this.#next !== item
    this.#next = undefined
    if (item === undefined || isPurgedByOther) return false
    const purge = async (tx: Transaction) => {
      if ((await next(tx)) !== item) return false
      await remove(tx)
      return true
    }
    if (await this.#store.write(purge, { concurrent, exclusive: 'maintenance' })) {
      this.#next = await next(this.#store.read)
    }
    return this.#next !== undefined
  }
}
