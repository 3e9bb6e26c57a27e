/** How many requests an API key may make in a minute, over both surfaces and all processes. */
import type { RateLimitExceeded } from '../../contract/rate-limit.ts'
import type { Counters } from '../../storage/store.ts'
import { SharedLimiter } from './shared-rate-limiter.ts'

const windowSeconds = 60

/**
 * A process takes this part of what a key may make at a time, and admits requests from it: of 6000 in a minute, one in
 * 60 asks the store. What it has not admitted when the window ends is lost to the others.
 */
const takesPerWindow = 100

/** What this process knows of a key. Moments are by `performance.now()`, which nobody sets. */
interface Allowance {
  /** Requests that were taken and not admitted yet. */
  left: number
  /** Whether no process can take any more before the window ends. */
  exhausted: boolean
  endsAt: number
  /** Requests that wait for more to be taken. */
  waiting: number
  taking: Promise<void> | undefined
}

export class RateLimit {
  readonly #requestsMax: number
  readonly #limiter: SharedLimiter
  readonly #allowances = new Map<string, Allowance>()
  #sweptAt = performance.now()

  /**
   * @param requestsMax how many requests within a minute, which begins with the first of them.
   * @param failed told when the counters cannot be reached: until they can, each process counts by itself.
   */
  constructor(requestsMax: number, counters: Counters, failed: (error: unknown) => void) {
    this.#requestsMax = requestsMax
    const limit = { keyPrefix: 'api-key', points: requestsMax, duration: windowSeconds }
    this.#limiter = new SharedLimiter(limit, counters, failed)
  }

  /** Counts a request; tells when it is one too many. */
  async admit({ apiKeyId }: { apiKeyId: string }): Promise<RateLimitExceeded | undefined> {
    for (;;) {
      const allowance = this.#allowanceOf(apiKeyId)
      const millisecondsLeft = allowance.endsAt - performance.now()
      if (millisecondsLeft > 0 && allowance.left > 0) {
        allowance.left -= 1
        return undefined
      }
      if (millisecondsLeft > 0 && allowance.exhausted) {
        const retryAfterSeconds = Math.ceil(millisecondsLeft / 1000)
        return { requestsMax: this.#requestsMax, windowSeconds, retryAfterSeconds }
      }
      allowance.waiting += 1
      allowance.taking ??= this.#take(apiKeyId, allowance).finally(() => {
        allowance.taking = undefined
      })
      await allowance.taking.finally(() => {
        allowance.waiting -= 1
      })
    }
  }

  /** As much as whoever waits needs, so that none of them waits twice while there is more. */
  async #take(apiKeyId: string, allowance: Allowance): Promise<void> {
    this.#sweep()
    const taken = Math.max(Math.ceil(this.#requestsMax / takesPerWindow), allowance.waiting)
    // Before the store is asked: so the window never ends later here than there.
    const takenAt = performance.now()
    const { consumedPoints, msBeforeNext } = await this.#limiter.count(apiKeyId, taken)
    const tooMany = Math.max(0, consumedPoints - this.#requestsMax)
    allowance.left = Math.max(0, taken - tooMany)
    allowance.exhausted = consumedPoints >= this.#requestsMax
    // A count of this process may seem to last longer, where the system's clock has been set back.
    allowance.endsAt = takenAt + Math.min(msBeforeNext, windowSeconds * 1000)
  }

  #allowanceOf(apiKeyId: string): Allowance {
    let allowance = this.#allowances.get(apiKeyId)
    if (!allowance) {
      allowance = { left: 0, exhausted: false, endsAt: 0, waiting: 0, taking: undefined }
      this.#allowances.set(apiKeyId, allowance)
    }
    return allowance
  }

  /** Forgets keys that make no requests any more. */
  #sweep(): void {
    const now = performance.now()
    if (now - this.#sweptAt < windowSeconds * 1000) return
    this.#sweptAt = now
    for (const [id, { endsAt, waiting }] of this.#allowances) {
      if (endsAt <= now && waiting === 0) this.#allowances.delete(id)
    }
  }
}
