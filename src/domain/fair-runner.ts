/** Runs costly work, such as processes that check schemas, a few at a time, and rotates between the accounts that wait. */

interface Waiting {
  start(): void
}

interface Limits {
  /** Work that runs at the same time. */
  concurrency: number
  /** Of an account, work that runs and waits. */
  perAccountMax: number
}

/** The account has as much work that runs and waits as it may have. */
export class TooMuchWork extends Error {}

export class FairRunner {
  readonly #limits: Limits
  #running = 0
  /** Work that runs and waits, by account. */
  readonly #counts = new Map<string | null, number>()
  /** The accounts whose work runs. Each has one slot, so that long work of one account leaves the others to the rest. */
  readonly #active = new Set<string | null>()
  /** In the order in which the accounts are served. */
  readonly #queues = new Map<string | null, Waiting[]>()

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /**
   * Calls `work` when a slot is free, after the work that the account has passed before.
   *
   * @param account `null` for the installation itself, whose work is not limited in number.
   * @param signal aborted when the result is no longer needed: work that still waits is dropped.
   * @throws {TooMuchWork} unless the account may have more work waiting.
   */
  async run<Result>(account: string | null, work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    signal?.throwIfAborted()
    const count = this.#counts.get(account) ?? 0
    if (account !== null && count >= this.#limits.perAccountMax) throw new TooMuchWork()
    this.#counts.set(account, count + 1)
    try {
      await this.#acquire(account, signal)
      try {
        return await work()
      } finally {
        this.#release(account)
      }
    } finally {
      const left = (this.#counts.get(account) ?? 1) - 1
      if (left === 0) this.#counts.delete(account)
      else this.#counts.set(account, left)
    }
  }

  #acquire(account: string | null, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const queue = this.#queues.get(account) ?? []
      const leave = () => {
        queue.splice(queue.indexOf(waiting), 1)
        reject(signal?.reason)
      }
      const waiting = {
        start: () => {
          signal?.removeEventListener('abort', leave)
          resolve()
        },
      }
      signal?.addEventListener('abort', leave, { once: true })
      queue.push(waiting)
      this.#queues.set(account, queue)
      this.#startNext()
    })
  }

  #release(account: string | null): void {
    this.#running -= 1
    this.#active.delete(account)
    const queue = this.#queues.get(account)
    if (queue) {
      // The other accounts that wait come first.
      this.#queues.delete(account)
      this.#queues.set(account, queue)
    }
    this.#startNext()
  }

  #startNext(): void {
    for (const [account, queue] of this.#queues) {
      if (this.#running >= this.#limits.concurrency) return
      if (this.#active.has(account)) continue
      const next = queue.shift()
      if (queue.length === 0) this.#queues.delete(account)
      if (!next) continue
      this.#running += 1
      this.#active.add(account)
      next.start()
    }
  }
}
