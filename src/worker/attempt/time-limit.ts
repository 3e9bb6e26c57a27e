/**
 * The time limit of an attempt. Time for which a person has paused it does not count, up to a maximum. Nor does time for
 * which the attempt waits for a run that it has called.
 */
import { pausedMillisecondsMax } from '../../domain/run-api/live-views.ts'

export class TimeLimit {
  #total = 0
  #left = 0
  #pausedLeft = pausedMillisecondsMax
  #since = 0
  #isPaused = false
  #isLimited = false
  #timer: NodeJS.Timeout | undefined
  #onReached: () => void = () => {}

  start(seconds: number, onReached: () => void): void {
    this.#total = seconds * 1000
    this.#left = this.#total
    this.#onReached = onReached
    this.#run()
  }

  /** By a clock that no change of the time moves. */
  get usedMilliseconds(): number {
    const running = this.#isPaused || !this.#timer ? 0 : performance.now() - this.#since
    return Math.round(this.#total - this.#left + running)
  }

  /** Does nothing once the attempt has been paused for the maximum, if it is limited to that. */
  pause({ isLimited = true } = {}): void {
    if (this.#isPaused || !this.#timer || (isLimited && this.#pausedLeft <= 0)) return
    this.#left -= performance.now() - this.#since
    this.#isPaused = true
    this.#isLimited = isLimited
    this.#since = performance.now()
    clearTimeout(this.#timer)
    if (isLimited) this.#timer = setTimeout(() => this.resume(), this.#pausedLeft)
  }

  resume(): void {
    if (!this.#isPaused) return
    if (this.#isLimited) this.#pausedLeft -= performance.now() - this.#since
    this.#isPaused = false
    clearTimeout(this.#timer)
    this.#run()
  }

  clear(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#isPaused = false
  }

  #run(): void {
    this.#since = performance.now()
    this.#timer = setTimeout(this.#onReached, Math.max(0, this.#left))
  }
}
