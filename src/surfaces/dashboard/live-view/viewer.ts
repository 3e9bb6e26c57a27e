/** One open page that watches a run. It keeps the latest of what it has not been sent, so that a slow page misses frames. */
import type { Received } from './live-view-hub.ts'

export interface Shown extends Received {
  /** Whether a worker is connected that runs the browser. */
  isConnected?: boolean
}

export class Viewer {
  #pending: Shown = {}
  #wake: () => void = () => {}

  show({ frame, tabs, control, isConnected }: Shown): void {
    Object.assign(this.#pending, frame && { frame }, tabs && { tabs }, control && { control })
    Object.assign(this.#pending, isConnected !== undefined && { isConnected })
    this.#wake()
  }

  /** Resolves with what is new, or with nothing after `milliseconds` or when the signal is aborted. */
  async next(milliseconds: number, signal: AbortSignal): Promise<Shown> {
    if (Object.keys(this.#pending).length === 0 && !signal.aborted) await this.#untilNew(milliseconds, signal)
    const pending = this.#pending
    this.#pending = {}
    return pending
  }

  async #untilNew(milliseconds: number, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, milliseconds)
      function done(): void {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        resolve()
      }
      this.#wake = done
      signal.addEventListener('abort', done, { once: true })
    })
    this.#wake = () => {}
  }
}
