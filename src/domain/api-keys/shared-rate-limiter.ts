/** rate-limiter-flexible over the store's counters, and over this process's memory while those cannot be reached. */
import RateLimiterMemory from 'rate-limiter-flexible/lib/RateLimiterMemory.js'
import RateLimiterRes from 'rate-limiter-flexible/lib/RateLimiterRes.js'
import RateLimiterStoreAbstract from 'rate-limiter-flexible/lib/RateLimiterStoreAbstract.js'
import type { Count, Counters } from '../../storage/store.ts'

interface Limit {
  /** Keeps its counts apart from those of other limits. */
  keyPrefix: string
  points: number
  /** In seconds. */
  duration: number
}

/** Called by the library: the methods with an underscore are what it asks of a store. */
export class SharedLimiter extends RateLimiterStoreAbstract {
  readonly #counters: Counters
  readonly #failed: (error: unknown) => void

  /** @param failed told why requests are counted in this process alone. */
  constructor(limit: Limit, counters: Counters, failed: (error: unknown) => void) {
    super({ ...limit, storeClient: counters, insuranceLimiter: new RateLimiterMemory(limit) })
    this.#counters = counters
    this.#failed = failed
  }

  /** Counts that many; tells how many there are now, whether or not they are too many. */
  async count(key: string, points: number): Promise<RateLimiterRes> {
    try {
      return await this.consume(key, points)
    } catch (tooMany) {
      if (tooMany instanceof RateLimiterRes) return tooMany
      throw tooMany
    }
  }

  async _upsert(key: string, points: number, milliseconds: number): Promise<Count> {
    try {
      return await this.#counters.add(key, points, milliseconds)
    } catch (error) {
      this.#failed(error)
      throw error
    }
  }

  _getRateLimiterRes(_key: string, points: number, { count, millisecondsLeft }: Count): RateLimiterRes {
    return new RateLimiterRes(Math.max(0, this.points - count), millisecondsLeft, count, count === points)
  }
}
