/** Wakes a stream that follows a run or an account. Remembers a change that arrives before the stream waits for it. */

export class Follower {
  #changed = false
  #wake = () => {}

  notify(): void {
    this.#changed = true
    this.#wake()
  }

  /** Resolves with true at the next change, or with false after `milliseconds` or when `signal` is aborted. */
  async wait(milliseconds: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#changed && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, milliseconds)
      this.#wake = resolve
      signal.addEventListener('abort', this.#wake)
      await promise
      signal.removeEventListener('abort', this.#wake)
      clearTimeout(timer)
    }
    const changed = this.#changed
    this.#changed = false
    return changed
  }
}
