/** A stream that follows a run or an account: remembers a change until it is waited for. */

export class Follower {
  #changed = false
  #wake = () => {}

  notify(): void {
    this.#changed = true
    this.#wake()
  }

  /** Resolves at the next change with true, or with false when the time is over or `signal` is aborted. */
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
