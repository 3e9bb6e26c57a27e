/** Gathers what an attempt says for a moment and writes it together, in order, with every secret masked. */

import type { Report } from '../domain/runs/attempt-reports.ts'
import type { Lease } from '../domain/runs/claim.ts'
import type { RunQueue } from '../domain/runs/run-queue.ts'
import { StoreUnavailable } from '../storage/store.ts'

/** Long enough to share a commit, too short for a reader to notice. */
const gatherMilliseconds = 20
const messageLengthMax = 8192
/** A workflow that logs in a loop must not fill the disk. */
const reportsMax = 10_000

export class Reporter {
  readonly #queue: RunQueue
  readonly #lease: Lease
  readonly #redact: <Value>(value: Value) => Value
  readonly #onLost: () => void
  #gathered: Report[] = []
  #count = 0
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(queue: RunQueue, lease: Lease, redact: <Value>(value: Value) => Value, onLost: () => void) {
    this.#queue = queue
    this.#lease = lease
    this.#redact = redact
    this.#onLost = onLost
  }

  /** Adds a report to those that are written next. */
  add(at: number, type: Report['type'], data: Record<string, unknown>): void {
    this.#count += 1
    if (this.#count > reportsMax) return
    const last = this.#count === reportsMax
    this.#gathered.push(last ? this.report(at, 'log', tooMany) : this.report(at, type, data))
    this.#timer ??= setTimeout(() => this.#flush(), gatherMilliseconds)
  }

  /** A report of this attempt, masked and cut to size. */
  report(at: number, type: Report['type'], data: Record<string, unknown>): Report {
    const masked = this.#redact(data)
    const { message } = masked
    if (typeof message === 'string' && message.length > messageLengthMax)
      masked.message = `${message.slice(0, messageLengthMax)}…`
    return { at, type, data: { attempt: this.#lease.attempt, ...masked } }
  }

  /** Waits until what was added before is on its way, and returns what is not written yet. */
  async take(): Promise<Report[]> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#writing
    return this.#gathered.splice(0)
  }

  #flush(): void {
    this.#timer = undefined
    const reports = this.#gathered.splice(0)
    const write = async () => {
      if (!(await untilAvailable(() => this.#queue.report(this.#lease, reports)))) this.#onLost()
    }
    this.#writing = this.#writing.then(write).catch(() => this.#onLost())
  }
}

const tooMany = { level: 'warn', message: `The run has said more than ${reportsMax} things; the rest is dropped.` }

const retryMilliseconds = 250

/** Does it again until the store is available; the lease decides whether it still counts then. */
export async function untilAvailable<Result>(act: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await act()
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      await new Promise((resolve) => setTimeout(resolve, retryMilliseconds))
    }
  }
}
