/** What express-rate-limit counts, in the store's counters for all processes; in this one's memory while those fail. */
import { type ClientRateLimitInfo, MemoryStore, type Options, type Store } from 'express-rate-limit'
import type { Counters } from '../../storage/store.ts'

export interface AttemptCounts {
  counters: Counters
  /** What stands in the store for somebody who attempts: nobody can tell from it who that is. */
  pseudonym(text: string): string
}

export class SharedAttempts implements Store {
  readonly localKeys = false
  readonly prefix: string
  readonly #counts: AttemptCounts
  readonly #memory = new MemoryStore()
  #windowMilliseconds = 0

  /** @param prefix keeps its counts apart from those of other limits. */
  constructor(prefix: string, counts: AttemptCounts) {
    this.prefix = prefix
    this.#counts = counts
  }

  init(options: Options): void {
    this.#windowMilliseconds = options.windowMs
    this.#memory.init(options)
  }

  async increment(key: string): Promise<ClientRateLimitInfo> {
    try {
      const { count, millisecondsLeft } = await this.#add(key, 1)
      return { totalHits: count, resetTime: new Date(Date.now() + millisecondsLeft) }
    } catch {
      return this.#memory.increment(key)
    }
  }

  /** An attempt that has succeeded is not counted. */
  async decrement(key: string): Promise<void> {
    await this.#add(key, -1).catch(() => this.#memory.decrement(key))
  }

  async resetKey(key: string): Promise<void> {
    await this.#add(key, -(2 ** 31)).catch(() => this.#memory.resetKey(key))
  }

  #add(key: string, amount: number) {
    const { counters, pseudonym } = this.#counts
    return counters.add(`${this.prefix}:${pseudonym(key)}`, amount, this.#windowMilliseconds)
  }
}
