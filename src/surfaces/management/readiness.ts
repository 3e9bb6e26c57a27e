/** Whether a process may be sent requests, or runs: from its start until it is told to stop, while it has its store. */
import type { Logger } from 'pino'
import { type Store, StoreUnavailable } from '../../storage/store.ts'

export class Readiness {
  readonly #store: Store
  readonly #log: Pick<Logger, 'info' | 'warn'>
  #isServing = false
  #hasStore = true
  #asked = 0
  /** The last question whose answer counts. */
  #answered = 0

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
    this.#asked += 1
    const question = this.#asked
    try {
      await this.#store.check()
    } catch (error) {
      this.#note(question, error)
      throw error
    }
    this.#note(question)
  }

  /** On a connection that was lost without a word, a question fails long after later ones were answered. */
  #note(question: number, error?: unknown): void {
    if (question < this.#answered || !this.#isServing) return
    this.#answered = question
    const hasStore = error === undefined
    if (hasStore === this.#hasStore) return
    this.#hasStore = hasStore
    if (hasStore) this.#log.info('ready again: the store answers')
    else this.#log.warn({ err: error }, 'not ready: the store does not answer')
  }
}
