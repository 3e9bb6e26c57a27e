/** Keeps executor processes started ahead, so that a claimed run begins within milliseconds. */
import type { Workflow } from '../domain/workflows/workflow.ts'
import { type ExecutorOptions, ExecutorProcess } from './executor-process.ts'

/** All idle processes but one are killed after this time. */
const idleMilliseconds = 30_000

export class ExecutorPool {
  readonly #start: () => ExecutorProcess
  readonly #size: number
  readonly #idle: ExecutorProcess[] = []
  #busy = 0
  #trim: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: ExecutorOptions, size: number) {
    this.#start = () => new ExecutorProcess(options)
    this.#size = size
  }

  /** Starts the first process and resolves with its workflows. */
  async open(): Promise<Workflow[]> {
    const first = this.#start()
    this.#idle.push(first)
    return first.ready
  }

  async acquire(): Promise<ExecutorProcess> {
    this.#busy += 1
    const executor = this.#popAlive() ?? this.#start()
    // Load the modules for the next claim now.
    if (this.#idle.length === 0 && this.#busy < this.#size) this.#idle.push(this.#start())
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
    if (this.#idle.length === 0) this.#idle.push(this.#start())
    clearTimeout(this.#trim)
    this.#trim = setTimeout(() => {
      for (const each of this.#idle.splice(1)) each.kill()
    }, idleMilliseconds).unref()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#trim)
    for (const executor of this.#idle.splice(0)) executor.kill()
  }

  #popAlive(): ExecutorProcess | undefined {
    for (;;) {
      const executor = this.#idle.pop()
      if (!executor || executor.alive) return executor
    }
  }
}
