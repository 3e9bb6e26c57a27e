/** How many requests an API key may make in a minute, over both surfaces. Counted in memory: a restart forgets it. */
import { MemoryStore } from 'express-rate-limit'

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
  async admit({ apiKeyId }: { apiKeyId: string }) {
    const { totalHits, resetTime } = await this.#counts.increment(apiKeyId)
    if (totalHits <= this.#requestsMax) return undefined
    const milliseconds = (resetTime?.getTime() ?? 0) - Date.now()
    const retryAfterSeconds = Math.max(1, Math.ceil(milliseconds / 1000))
    return { requestsMax: this.#requestsMax, windowSeconds, retryAfterSeconds }
  }

  close(): void {
    this.#counts.shutdown()
  }
}
