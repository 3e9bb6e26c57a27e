/** How many requests an API key may make in a minute, over both surfaces. Counted in memory: a restart forgets it. */
import { MemoryStore } from 'express-rate-limit'
import type { Exceeded } from '../contract/rate-limit.ts'

const windowSeconds = 60

export class RateLimit {
  readonly #requestsMax: number
  readonly #counts = new MemoryStore()

  /** @param requestsMax how many requests within a minute, which begins with the first of them. */
  constructor(requestsMax: number) {
    this.#requestsMax = requestsMax
    // The store reads nothing else of a middleware's options.
    this.#counts.init({ windowMs: windowSeconds * 1000 } as Parameters<MemoryStore['init']>[0])
  }

  /** Counts a request; tells when it is one too many. */
  async admit({ apiKeyId }: { apiKeyId: string }): Promise<Exceeded | undefined> {
    const { totalHits, resetTime } = await this.#counts.increment(apiKeyId)
    if (totalHits <= this.#requestsMax) return undefined
    const retryAfterSeconds = Math.max(1, Math.ceil(((resetTime?.getTime() ?? 0) - Date.now()) / 1000))
    // The store goes by the system's clock, which has been set back: the key would be refused until it has caught up.
    if (retryAfterSeconds > windowSeconds) {
      await this.#counts.resetKey(apiKeyId)
      return this.admit({ apiKeyId })
    }
    return { requestsMax: this.#requestsMax, windowSeconds, retryAfterSeconds }
  }

  close(): void {
    this.#counts.shutdown()
  }
}
