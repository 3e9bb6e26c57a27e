/** The worker's side of one executor process. */
import { type ChildProcess, fork } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { environmentWithoutSecrets } from '../config.ts'
import { loadExitError, loadTimeoutError, type Workflow, WorkflowError } from '../domain/workflows/workflow.ts'
import type { ChannelMessage, FromExecutor, ToExecutor } from './messages.ts'
import { dyingWithParent } from './parent-death.ts'

/** A word of the attempt that the process executes, or its end. */
export type ExecutorEvent = (ChannelMessage & { at: number }) | { type: 'exited'; how: string }

/** An answer of the worker to a word of the attempt. */
export type Answer = WithoutAttempt<Exclude<ToExecutor, { type: 'start' | 'abort' }>>

/** Speaks to one attempt alone: what comes after its end is not taken for the next one's in the same process. */
export interface ExecutorMessage {
  abort(reason: string): void
  answer(message: Answer): void
}

type WithoutAttempt<Message> = Message extends unknown ? Omit<Message, 'attempt'> : never

export interface ExecutorOptions {
  /** Where the workflows are. */
  directory: string
  memoryMegabytesMax: number
  /** How long the workflows may take to load. */
  loadSecondsMax: number
}

export class ExecutorProcess {
  /** What the loaded workflows say of themselves. */
  readonly ready: Promise<Workflow[]>
  readonly #child: ChildProcess
  #attempt = 0
  #hear: ((heard: ExecutorEvent) => void) | undefined

  constructor({ directory, memoryMegabytesMax, loadSecondsMax }: ExecutorOptions) {
    const { execPath, execArgv, watchdog } = dyingWithParent()
    this.#child = fork(fileURLToPath(new URL('./executor.ts', import.meta.url)), [directory, ...watchdog], {
      env: environmentWithoutSecrets(process.env),
      execPath,
      execArgv: [...execArgv, `--max-old-space-size=${memoryMegabytesMax}`],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.ready = this.#untilReady(directory, loadSecondsMax)
    // Whoever waits for it is told; nobody waiting is no reason to end the worker.
    this.ready.catch(() => {})
    this.#captureLines()
  }

  get alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null && this.#child.connected
  }

  /** Starts an attempt; `hear` is told what it says, and at last that it returned, threw or exited. */
  start(
    message: Omit<Extract<ToExecutor, { type: 'start' }>, 'type' | 'attempt'>,
    hear: (heard: ExecutorEvent) => void,
  ): ExecutorMessage {
    this.#attempt += 1
    const attempt = this.#attempt
    this.#hear = hear
    this.#send({ type: 'start', attempt, ...message })
    return {
      abort: (reason) => this.#send({ type: 'abort', attempt, reason }),
      answer: (answer) => this.#send({ ...answer, attempt } as ToExecutor),
    }
  }

  /** Ends the process at once; nothing is heard of its attempt any more. */
  kill(): void {
    this.#hear = undefined
    this.#child.kill('SIGKILL')
  }

  #send(message: ToExecutor): void {
    // A process that has ended is heard of by its exit.
    if (this.alive) this.#child.send(message, () => {})
  }

  #untilReady(directory: string, secondsMax: number): Promise<Workflow[]> {
    let timer: NodeJS.Timeout | undefined
    const ready = new Promise<Workflow[]>((resolve, reject) => {
      this.#child.on('message', (message: FromExecutor) => {
        if (message.type === 'ready') resolve(JSON.parse(message.workflows))
        else if (message.type === 'refused') reject(new WorkflowError(message.message))
        else if (message.attempt === this.#attempt) this.#hear?.(message)
      })
      this.#child.on('error', reject)
      // Not 'exit', which may come before the last words.
      this.#child.on('close', (code, signal) => {
        const how = signal ? `signal ${signal}` : `exit code ${code}`
        reject(loadExitError(directory, how))
        this.#hear?.({ type: 'exited', how })
      })
      timer = setTimeout(() => {
        reject(loadTimeoutError(directory, secondsMax))
        this.kill()
      }, secondsMax * 1000)
    })
    return ready.finally(() => clearTimeout(timer))
  }

  /** What is written past the console, by a native module or `process.stdout`, belongs to the run's log too. */
  #captureLines(): void {
    for (const [stream, level] of [
      [this.#child.stdout, 'info'],
      [this.#child.stderr, 'warn'],
    ] as const) {
      if (!stream) continue
      const say = (message: string) => this.#hear?.({ type: 'log', level, message, at: Date.now() })
      createInterface({ input: stream }).on('line', say)
    }
  }
}
