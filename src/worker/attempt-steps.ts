/** The steps of one attempt: which are running, and whether finished ones are within the limits. */
import { stepBytesOfRunMax, stepsMax } from '../domain/runs/reported-values.ts'
import type { ObservedStep } from './attempt-observer.ts'

export class AttemptSteps {
  /** Steps that this attempt or an earlier one has finished. */
  readonly #finished: Set<string>
  #bytes = 0
  /** Steps that have started and not ended, the latest last. */
  #running: string[] = []

  /** @param finished the steps that earlier attempts have finished. */
  constructor(finished: readonly { name: string }[]) {
    this.#finished = new Set(finished.map(({ name }) => name))
  }

  /** The step that has started last and not ended. */
  get running(): string | null {
    return this.#running.at(-1) ?? null
  }

  observe(name: string, state: ObservedStep['state']): void {
    if (state !== 'started') this.#running = this.#running.filter((each) => each !== name)
    else if (this.#running.length < stepsMax) this.#running.push(name)
  }

  /**
   * Returns the position of the step among the finished ones, from 1. The executor checks the same limits. A process that
   * writes to its channel itself is ended.
   */
  addFinished(name: string, value: string): number {
    this.#bytes += Buffer.byteLength(value)
    const isWithinLimits = this.#finished.size < stepsMax && this.#bytes <= stepBytesOfRunMax
    if (this.#finished.has(name) || !isWithinLimits) throw new Error('The step is finished, or exceeds a limit.')
    this.#finished.add(name)
    return this.#finished.size
  }
}
