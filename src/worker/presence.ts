/** Says that the worker lives. Whoever looks for workers may miss it for a while; its runs are none the worse for it. */
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { Workers } from '../domain/runs/workers.ts'
import type { Store } from '../storage/store.ts'

export interface PresenceOptions {
  id: string
  slots: number
  /** It is taken for dead when it has said nothing for this long. */
  leaseSeconds: number
}

export class Heartbeat {
  readonly #workers: Workers
  readonly #options: PresenceOptions
  readonly #log: Logger
  readonly #startedAt = Date.now()

  constructor(store: Store, options: PresenceOptions, log: Logger) {
    this.#workers = new Workers(store)
    this.#options = options
    this.#log = log
  }

  async announce(): Promise<void> {
    const { id, slots, leaseSeconds } = this.#options
    const worker = { id, host: hostname(), slots, startedAt: this.#startedAt }
    await this.#workers.announce(worker, leaseSeconds).catch((error: unknown) => {
      this.#log.warn({ err: error }, 'it could not be told that the worker lives; it is tried again')
    })
  }

  async leave(): Promise<void> {
    await this.#workers.leave(this.#options.id).catch((error: unknown) => {
      this.#log.warn({ err: error }, 'it could not be told that the worker has stopped; it is taken for dead soon')
    })
  }
}
