/** One follower's wait for changes: remembers that something changed until somebody waits for it. */

export class Changes {
  readonly end: () => void
  #changed = false
  #wake: (() => void) | undefined

  constructor(end: () => void) {
    this.end = end
  }

  readonly tell = (): void => {
    this.#changed = true
    this.#wake?.()
  }

  readonly #stop = (): void => this.#wake?.()

  /** Resolves at the next change, or false when `milliseconds` have passed or `signal` is aborted first. */
  async next(milliseconds: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#changed && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => this.#wake?.(), milliseconds)
        this.#wake = () => {
          clearTimeout(timer)
          signal.removeEventListener('abort', this.#stop)
          resolve()
        }
        signal.addEventListener('abort', this.#stop)
      })
    }
    const changed = this.#changed
    this.#changed = false
    this.#wake = undefined
    return changed
  }
}
