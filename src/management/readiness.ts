/** Whether a process may be sent requests, or runs: from its start until it is told to stop, while it has its store. */
import type { Logger } from 'pino'
import { type Store, StoreUnavailable } from '../storage/store.ts'

export class Readiness {
  readonly #store: Store
  readonly #log: Pick<Logger, 'info' | 'warn'>
  #isServing = false
  #hasStore = true

  constructor(store: Store, log: Pick<Logger, 'info' | 'warn'>) {
    this.#store = store
    this.#log = log
  }

  start(): void {
    this.#isServing = true
  }

  /** From now on it is not ready, whatever becomes of its store. */
  stop(): void {
    this.#isServing = false
  }

  /** Logs when the store is lost, and when it is there again, since whoever asks is told no reason. @throws {StoreUnavailable} */
  async check(): Promise<void> {
    if (!this.#isServing) throw new StoreUnavailable('The process is starting or stopping.')
    try {
      await this.#store.check()
    } catch (error) {
      if (this.#isServing && this.#hasStore) this.#log.warn({ err: error }, 'not ready: the store does not answer')
      this.#hasStore = false
      throw error
    }
    if (!this.#hasStore) this.#log.info('ready again: the store answers')
    this.#hasStore = true
  }
}
