/** Keeps executor processes started ahead, so that a claimed run begins within milliseconds. */
import type { Workflow } from '../domain/workflows/workflow.ts'
import { type ExecutorOptions, ExecutorProcess } from './executor-process.ts'
import { ProcessReaper } from './process-reaper.ts'

/** All idle processes but one are killed after this time. */
const idleMilliseconds = 30_000

export class ExecutorPool {
  readonly #reaper: ProcessReaper
  readonly #start: () => ExecutorProcess
  readonly #size: number
  /** In the order of their last use. */
  #idle: ExecutorProcess[] = []
  #busy = 0
  #trim: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: ExecutorOptions, size: number) {
    this.#reaper = new ProcessReaper({ graceSeconds: 0, identity: options.identity })
    this.#start = () => new ExecutorProcess(options, this.#reaper)
    this.#size = size
  }

  /** Starts the first process and resolves with its workflows. */
  async open(): Promise<Workflow[]> {
    const first = this.#start()
    this.#idle.push(first)
    return first.ready
  }

  /** A process that has executed runs of this account only, or none. */
  async acquire(accountId: string): Promise<ExecutorProcess> {
    this.#idle = this.#idle.filter(({ alive }) => alive)
    const executor = this.#take(accountId) ?? this.#take(undefined) ?? this.#start()
    this.#busy += 1
    executor.accountId = accountId
    // Load the modules for the next claim now.
    if (this.#busy < this.#size) this.#startSpare()
    this.#removeExcess()
    try {
      await executor.ready
      return executor
    } catch (error) {
      this.release(executor, false)
      throw error
    }
  }

  /** @param reusable false when code of the attempt may still run in the process. */
  release(executor: ExecutorProcess, reusable: boolean): void {
    this.#busy -= 1
    if (!reusable || this.#closed) executor.kill()
    else this.#idle.push(executor)
    if (this.#closed) return
    this.#startSpare()
    this.#removeExcess()
    clearTimeout(this.#trim)
    this.#trim = setTimeout(() => this.#keepOnly(1), idleMilliseconds).unref()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#trim)
    for (const executor of this.#idle.splice(0)) executor.kill()
    this.#reaper.close()
  }

  #take(accountId: string | undefined): ExecutorProcess | undefined {
    const index = this.#idle.findLastIndex((each) => each.accountId === accountId)
    return index < 0 ? undefined : this.#idle.splice(index, 1)[0]
  }

  /** A process that has served no account can serve any. */
  #startSpare(): void {
    if (this.#idle.some(({ accountId }) => accountId === undefined)) return
    try {
      this.#idle.push(this.#start())
    } catch {
      // The next run without a process reports the error.
    }
  }

  /** Keeps two processes per slot, so that runs that alternate between few accounts start none, and a spare. */
  #removeExcess(): void {
    this.#keepOnly(2 * this.#size + 1 - this.#busy)
  }

  /** Kills those that were used least recently, and never the spare. */
  #keepOnly(count: number): void {
    const used = this.#idle.filter(({ accountId }) => accountId !== undefined)
    const excess = used.slice(0, Math.max(0, this.#idle.length - count))
    for (const executor of excess) executor.kill()
    this.#idle = this.#idle.filter((executor) => !excess.includes(executor))
  }
}
