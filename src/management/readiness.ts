/** Whether a process may be sent requests, or runs: from its start until it is told to stop, while it has its store. */
import { type Store, StoreUnavailable } from '../storage/store.ts'

export class Readiness {
  readonly #store: Store
  #isServing = false

  constructor(store: Store) {
    this.#store = store
  }

  start(): void {
    this.#isServing = true
  }

  /** From now on it is not ready, whatever becomes of its store. */
  stop(): void {
    this.#isServing = false
  }

  /** @throws {StoreUnavailable} */
  async check(): Promise<void> {
    if (!this.#isServing) throw new StoreUnavailable('The process is starting or stopping.')
    await this.#store.check()
  }
}
