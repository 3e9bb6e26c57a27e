/** Readiness of a process: it is ready from start to stop, while its store is available. */
import type { Logger } from 'pino'
import { type Store, StoreUnavailable } from '../../storage/store.ts'

export class Readiness {
  readonly #store: Store
  readonly #log: Pick<Logger, 'info' | 'warn'>
  #isServing = false
  #isStoreAvailable = true
  #lastCheck = 0
  #lastResult = 0

  constructor(store: Store, log: Pick<Logger, 'info' | 'warn'>) {
    this.#store = store
    this.#log = log
  }

  start(): void {
    this.#isServing = true
  }

  stop(): void {
    this.#isServing = false
  }

  /** Logs when the store becomes unavailable or available: probes do not see why. @throws {StoreUnavailable} */
  async check(): Promise<void> {
    if (!this.#isServing) throw new StoreUnavailable('The process is starting or stopping.')
    const check = ++this.#lastCheck
    try {
      await this.#store.check()
    } catch (error) {
      this.#noteResult(check, error)
      throw error
    }
    this.#noteResult(check)
  }

  /** Ignores a check that ends after a later one: on a connection that died silently, it fails long afterwards. */
  #noteResult(check: number, error?: unknown): void {
    if (check < this.#lastResult || !this.#isServing) return
    this.#lastResult = check
    const isAvailable = error === undefined
    if (isAvailable === this.#isStoreAvailable) return
    this.#isStoreAvailable = isAvailable
    if (isAvailable) this.#log.info('store available; ready')
    else this.#log.warn({ err: error }, 'store unavailable; not ready')
  }
}
