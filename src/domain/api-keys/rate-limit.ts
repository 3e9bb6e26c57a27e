/** Limits how many requests an API key may make per minute, counted over both APIs and all processes. */
import type { RateLimitStatus } from '../../contract/response.ts'
import type { Count, Counters } from '../../storage/store.ts'

/** Name of the limit in the RateLimit headers. */
const policy = 'api-key'

const windowSeconds = 60
const windowMilliseconds = windowSeconds * 1000

/**
 * Each process reserves this fraction of a key's limit at a time and admits requests from its reservation. With a limit
 * of 6000 per minute, one request in 60 queries the store. Unused reservations expire with the window.
 */
const reservationsPerWindow = 100

/**
 * The state of a key's limit in this process. Times are by `performance.now()`, which does not jump with the system
 * clock.
 */
interface Allowance {
  /** Reserved requests that have not been admitted yet. */
  left: number
  /** Requests that no process had reserved after the last reservation of this one. */
  unreserved: number
  endsAt: number
  /** Requests that wait for the reservation in progress. */
  waiting: number
  reserving: Promise<void> | undefined
  /** Counts in this process while the store is unavailable. */
  local: { count: number; endsAt: number }
}

export class RateLimit {
  readonly #requestsMax: number
  readonly #counters: Counters
  readonly #onUnavailable: (error: unknown) => void
  readonly #allowances = new Map<string, Allowance>()
  readonly #now: () => number
  #sweptAt: number

  /**
   * @param requestsMax per window of a minute, which begins with the key's first request.
   * @param onUnavailable called when the shared counters fail; each process then counts on its own.
   * @param now for a simulator.
   */
  constructor(
    requestsMax: number,
    counters: Counters,
    onUnavailable: (error: unknown) => void,
    now: () => number = () => performance.now(),
  ) {
    this.#now = now
    this.#sweptAt = now()
    this.#requestsMax = requestsMax
    this.#counters = counters
    this.#onUnavailable = onUnavailable
  }

  /** Counts a request. */
  async admit({ apiKeyId }: { apiKeyId: string }): Promise<RateLimitStatus> {
    for (;;) {
      const allowance = this.#allowanceFor(apiKeyId)
      const millisecondsLeft = allowance.endsAt - this.#now()
      if (millisecondsLeft > 0 && (allowance.left > 0 || allowance.unreserved === 0)) {
        const isExceeded = allowance.left === 0
        if (!isExceeded) allowance.left -= 1
        const remaining = allowance.left + allowance.unreserved
        const resetSeconds = Math.ceil(millisecondsLeft / 1000)
        return { policy, requestsMax: this.#requestsMax, windowSeconds, remaining, resetSeconds, isExceeded }
      }
      allowance.waiting += 1
      allowance.reserving ??= this.#reserve(apiKeyId, allowance).finally(() => {
        allowance.reserving = undefined
      })
      await allowance.reserving.finally(() => {
        allowance.waiting -= 1
      })
    }
  }

  /** Reserves enough for all waiting requests, so that none of them waits twice below the limit. */
  async #reserve(apiKeyId: string, allowance: Allowance): Promise<void> {
    this.#sweep()
    const amount = Math.max(Math.ceil(this.#requestsMax / reservationsPerWindow), allowance.waiting)
    // Taken before the query, so that the window never ends later here than in the store.
    const startedAt = this.#now()
    const { count, millisecondsLeft } = await this.#add(apiKeyId, amount, allowance)
    allowance.left = Math.max(0, amount - Math.max(0, count - this.#requestsMax))
    allowance.unreserved = Math.max(0, this.#requestsMax - count)
    allowance.endsAt = startedAt + millisecondsLeft
  }

  async #add(apiKeyId: string, amount: number, { local }: Allowance): Promise<Count> {
    try {
      return await this.#counters.add(`api-key:${apiKeyId}`, amount, windowMilliseconds)
    } catch (error) {
      this.#onUnavailable(error)
      const now = this.#now()
      if (local.endsAt <= now) Object.assign(local, { count: 0, endsAt: now + windowMilliseconds })
      local.count += amount
      return { count: local.count, millisecondsLeft: local.endsAt - now }
    }
  }

  #allowanceFor(apiKeyId: string): Allowance {
    let allowance = this.#allowances.get(apiKeyId)
    if (!allowance) {
      const local = { count: 0, endsAt: 0 }
      allowance = { left: 0, unreserved: 0, endsAt: 0, waiting: 0, reserving: undefined, local }
      this.#allowances.set(apiKeyId, allowance)
    }
    return allowance
  }

  /** Forgets keys without requests in the current window. */
  #sweep(): void {
    const now = this.#now()
    if (now - this.#sweptAt < windowMilliseconds) return
    this.#sweptAt = now
    for (const [id, { endsAt, waiting, local }] of this.#allowances) {
      if (Math.max(endsAt, local.endsAt) <= now && waiting === 0) this.#allowances.delete(id)
    }
  }
}
