/** Keeps one worker process beside the service: starts it, replaces it when it dies, ends it. */
import { type ChildProcess, fork } from 'node:child_process'
import type { Logger } from 'pino'
import { askChild } from './parent-channel.ts'

const restartMillisecondsMax = 30_000

export class WorkerProcess {
  readonly #command: string
  readonly #log: Logger
  #child: ChildProcess | undefined
  #restarts = 0
  #timer: NodeJS.Timeout | undefined
  #stopping = false

  /** @param command the module that runs a worker when it is started with the argument `worker`. */
  constructor(command: string, log: Logger) {
    this.#command = command
    this.#log = log
  }

  start(): void {
    // The worker stops when this channel closes, so that it never outlives the service. It makes little garbage, and
    // keeps less memory with a small young generation.
    const child = fork(this.#command, ['worker'], { execArgv: ['--max-semi-space-size=1'] })
    this.#child = child
    const startedAt = performance.now()
    child.once('exit', (code, signal) => {
      if (this.#stopping) return
      if (performance.now() - startedAt > restartMillisecondsMax) this.#restarts = 0
      const milliseconds = Math.min(restartMillisecondsMax, 500 * 2 ** this.#restarts)
      this.#restarts += 1
      this.#log.error({ code, signal, milliseconds }, 'the worker ended; it is started again')
      this.#timer = setTimeout(() => this.start(), milliseconds)
    })
  }

  /** What the worker has measured, as it says it itself; `undefined` while there is none that answers. */
  async measured(): Promise<unknown> {
    return this.#child && askChild(this.#child)
  }

  async stop(): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#timer)
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGTERM')
    await ended
  }
}
