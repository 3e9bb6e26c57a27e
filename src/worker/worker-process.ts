/** Both sides of the worker process that a service starts: its supervision, and the channel for its metrics. */
import { type ChildProcess, fork } from 'node:child_process'
import type { Logger } from 'pino'

const restartMillisecondsMax = 30_000

/** Starts a worker process, restarts it with a growing delay when it exits, and stops it. */
export class WorkerProcess {
  readonly #command: string
  readonly #log: Logger
  #child: ChildProcess | undefined
  #restarts = 0
  #timer: NodeJS.Timeout | undefined
  #stopping = false
  #ended: Promise<void> | undefined

  /** @param command the module that runs a worker when started with the argument `worker`. */
  constructor(command: string, log: Logger) {
    this.#command = command
    this.#log = log
  }

  start(): void {
    // A worker makes little garbage: a small young generation saves memory. It stops when the channel closes, so that it
    // never outlives the service.
    const child = fork(this.#command, ['worker'], { execArgv: ['--max-semi-space-size=1'] })
    this.#child = child
    const startedAt = performance.now()
    child.once('exit', (code, signal) => {
      if (this.#stopping) return
      if (performance.now() - startedAt > restartMillisecondsMax) this.#restarts = 0
      const milliseconds = Math.min(restartMillisecondsMax, 500 * 2 ** this.#restarts)
      this.#restarts += 1
      this.#log.error({ code, signal, milliseconds }, 'worker exited; restarting')
      this.#timer = setTimeout(() => this.start(), milliseconds)
    })
  }

  /** The worker's metrics; `undefined` when no worker replies within a second. */
  async metrics(): Promise<unknown> {
    return this.#child && requestMetrics(this.#child)
  }

  /** May be called again to wait for the end. */
  stop(): Promise<void> {
    this.#ended ??= this.#stop()
    return this.#ended
  }

  async #stop(): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#timer)
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGTERM')
    await ended
  }
}

const metricsRequest = 'metrics?'
/** A scrape does not wait longer for a worker that is busy or dead. */
const replyMillisecondsMax = 1000

type MetricsReply = { to: typeof metricsRequest; metrics: unknown }

/** In the worker process: replies whenever the service asks for metrics. */
export function serveMetricsToParent(metrics: () => Promise<unknown>): void {
  if (!process.send) return
  process.on('message', async (message) => {
    if (message !== metricsRequest) return
    const reply: MetricsReply = { to: metricsRequest, metrics: await metrics() }
    process.send?.(reply, undefined, undefined, () => {})
  })
}

function requestMetrics(child: ChildProcess): Promise<unknown> {
  if (!child.connected) return Promise.resolve(undefined)
  return new Promise((resolve) => {
    const done = (metrics: unknown) => {
      clearTimeout(timer)
      child.off('message', onMessage)
      resolve(metrics)
    }
    const onMessage = (message: unknown) => {
      const { to, metrics } = message as Partial<MetricsReply>
      if (to === metricsRequest) done(metrics)
    }
    const timer = setTimeout(() => done(undefined), replyMillisecondsMax)
    child.on('message', onMessage)
    child.send(metricsRequest, (error) => error && done(undefined))
  })
}
