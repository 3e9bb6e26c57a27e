/** Removes what is large and no longer wanted, a portion at a time and by one process at a time. */
import type { Unwanted } from '../storage/portion.ts'
import type { Store } from '../storage/store.ts'

export class Removal {
  readonly #store: Store
  readonly #unwanted: Unwanted
  /** What was left when this process last removed something. */
  #left: string | undefined

  constructor(store: Store, unwanted: Unwanted) {
    this.#store = store
    this.#unwanted = unwanted
  }

  /**
   * Removes a portion, unless another process is at it. Returns whether there is more to do soon; a process that finds
   * another at it writes nothing and leaves it to that one until it looks again.
   */
  async once(): Promise<boolean> {
    const { next, remove } = this.#unwanted
    const found = await next(this.#store.read)
    const isOthers = this.#left !== undefined && this.#left !== found
    this.#left = undefined
    if (found === undefined || isOthers) return false
    const removed = await this.#store.write(async (session) => {
      if ((await next(session)) !== found) return false
      await remove(session)
      return true
    })
    if (removed) this.#left = await next(this.#store.read)
    return this.#left !== undefined
  }
}
