/** The worker's side of one executor process. */
import { type ChildProcess, fork } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { environmentWithoutSecrets } from '../config.ts'
import { loadExitError, loadTimeoutError, type Workflow, WorkflowError } from '../domain/workflows/workflow.ts'
import type { AttemptMessage, FromExecutor, ToExecutor } from './messages.ts'
import { parentBoundLauncher } from './parent-death.ts'

/** A message from the attempt, or the end of its process. */
export type ExecutorEvent = (AttemptMessage & { at: number }) | { type: 'exited'; how: string }

/** The worker's reply to a message of the attempt. */
export type Reply = WithoutAttempt<Exclude<ToExecutor, { type: 'start' | 'abort' }>>

/** Sends to one attempt only: after its end, messages are dropped instead of reaching the next attempt. */
export interface AttemptChannel {
  abort(reason: string): void
  reply(message: Reply): void
}

type WithoutAttempt<Message> = Message extends unknown ? Omit<Message, 'attempt'> : never

export interface ExecutorOptions {
  workflowsDirectory: string
  memoryMegabytesMax: number
  loadSecondsMax: number
}

export class ExecutorProcess {
  readonly ready: Promise<Workflow[]>
  readonly #child: ChildProcess
  #attempt = 0
  #onEvent: ((event: ExecutorEvent) => void) | undefined

  constructor({ workflowsDirectory, memoryMegabytesMax, loadSecondsMax }: ExecutorOptions) {
    const { execPath, execArgv, args } = parentBoundLauncher()
    this.#child = fork(fileURLToPath(new URL('./executor.ts', import.meta.url)), [workflowsDirectory, ...args], {
      env: environmentWithoutSecrets(process.env),
      execPath,
      execArgv: [...execArgv, `--max-old-space-size=${memoryMegabytesMax}`],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.ready = this.#untilReady(workflowsDirectory, loadSecondsMax)
    // An idle process that nothing awaits may fail without an unhandled rejection.
    this.ready.catch(() => {})
    this.#captureOutput()
  }

  get alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null && this.#child.connected
  }

  /** Starts an attempt. The last event is `returned`, `threw` or `exited`. */
  start(
    message: Omit<Extract<ToExecutor, { type: 'start' }>, 'type' | 'attempt'>,
    onEvent: (event: ExecutorEvent) => void,
  ): AttemptChannel {
    this.#attempt += 1
    const attempt = this.#attempt
    this.#onEvent = onEvent
    this.#send({ type: 'start', attempt, ...message })
    return {
      abort: (reason) => this.#send({ type: 'abort', attempt, reason }),
      reply: (reply) => this.#send({ ...reply, attempt } as ToExecutor),
    }
  }

  /** Kills the process; its attempt emits no more events. */
  kill(): void {
    this.#onEvent = undefined
    this.#child.kill('SIGKILL')
  }

  #send(message: ToExecutor): void {
    // Errors are ignored: the exit event reports a dead process.
    if (this.alive) this.#child.send(message, () => {})
  }

  #untilReady(directory: string, secondsMax: number): Promise<Workflow[]> {
    let timer: NodeJS.Timeout | undefined
    const ready = new Promise<Workflow[]>((resolve, reject) => {
      this.#child.on('message', (message: FromExecutor) => {
        if (message.type === 'ready') resolve(JSON.parse(message.workflows))
        else if (message.type === 'loadFailed') reject(new WorkflowError(message.message))
        else if (message.attempt === this.#attempt) this.#onEvent?.(message)
      })
      this.#child.on('error', reject)
      // `exit` may be emitted before the last message or line of output.
      this.#child.on('close', (code, signal) => {
        const how = signal ? `signal ${signal}` : `exit code ${code}`
        reject(loadExitError(directory, how))
        this.#onEvent?.({ type: 'exited', how })
      })
      timer = setTimeout(() => {
        reject(loadTimeoutError(directory, secondsMax))
        this.kill()
      }, secondsMax * 1000)
    })
    return ready.finally(() => clearTimeout(timer))
  }

  /** Output that bypasses `console`, such as a native module's, also goes to the run's log. */
  #captureOutput(): void {
    for (const [stream, level] of [
      [this.#child.stdout, 'info'],
      [this.#child.stderr, 'warn'],
    ] as const) {
      if (!stream) continue
      createInterface({ input: stream }).on('line', (message) => {
        this.#onEvent?.({ type: 'log', level, message, at: Date.now() })
      })
    }
  }
}
