/**
 * Claims more runs than a worker has free slots, while its runs are so short that requests for further ones would take
 * most of the time. A run that has waited here is returned, since another worker may have a free slot.
 */
import type { Claim } from '../../domain/queue/attempts.ts'

/** Attempts that take longer, on average, are not claimed ahead. */
const shortMilliseconds = 50
/** The weight of the last attempt in the average. */
const weight = 0.1
/** Runs ahead for each slot. The next request is sent when half of them are left. */
const aheadOfSlot = 2
/** How long a run may wait here. */
const waitMillisecondsMax = 500

interface Options {
  slots: number
  /** Claims up to `countMax` runs; waits for one, or not. */
  poll(countMax: number, waits: boolean): Promise<Claim[]>
  handBack(claim: Claim): Promise<unknown>
}

export class ClaimsAhead {
  readonly #options: Options
  readonly #ready: { claim: Claim; at: number }[] = []
  #polling: Promise<void> | undefined
  #averageMilliseconds = 2 * shortMilliseconds
  #timer: NodeJS.Timeout | undefined

  constructor(options: Options) {
    this.#options = options
  }

  /** Returns runs that are here, or waits for some. */
  async take(free: () => number): Promise<Claim[]> {
    if (this.#ready.length === 0) await (this.#polling ?? this.#poll(free(), true))
    const taken = this.#ready.splice(0, free()).map(({ claim }) => claim)
    // Without an error: the next call that finds nothing here has it.
    if (taken.length > 0 && this.#ready.length < this.#ahead / 2) this.#poll(0, false).catch(() => {})
    return taken
  }

  /** @param milliseconds how long an attempt has taken. */
  ended(milliseconds: number): void {
    this.#averageMilliseconds += (milliseconds - this.#averageMilliseconds) * weight
  }

  /** Returns the runs that are here. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await Promise.all(this.#ready.splice(0).map(({ claim }) => this.#options.handBack(claim)))
  }

  get #ahead(): number {
    return this.#averageMilliseconds < shortMilliseconds ? aheadOfSlot * this.#options.slots : 0
  }

  /** One request at a time: the service returns what a worker has not got to the next one. */
  #poll(free: number, waits: boolean): Promise<void> {
    const countMax = free + this.#ahead - this.#ready.length
    this.#polling ??= this.#options
      .poll(countMax, waits)
      .then((claims) => {
        for (const claim of claims) this.#ready.push({ claim, at: performance.now() })
        this.#returnLater()
      })
      .finally(() => {
        this.#polling = undefined
      })
    return this.#polling
  }

  #returnLater(): void {
    const [oldest] = this.#ready
    if (!oldest || this.#timer) return
    const left = oldest.at + waitMillisecondsMax - performance.now()
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      const latest = performance.now() - waitMillisecondsMax
      const early = this.#ready.findIndex(({ at }) => at > latest)
      const late = this.#ready.splice(0, early === -1 ? this.#ready.length : early)
      for (const { claim } of late) void this.#options.handBack(claim)
      this.#returnLater()
    }, left)
  }
}
