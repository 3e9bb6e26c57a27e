/** The worker's side of one executor process, which is the leader of a process group. */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Duplex, Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { environmentWithoutSecrets } from '../config.ts'
import type { Identity } from '../domain/workflows/executor-identity.ts'
import { loadExitError, loadTimeoutError, type Workflow, WorkflowError } from '../domain/workflows/workflow.ts'
import { readLines } from './bounded-lines.ts'
import { type AttemptMessage, channelDescriptor, messageBytesMax, parseMessage, type ToExecutor } from './messages.ts'
import { memoryBytes, runtimeMegabytes } from './process-memory.ts'
import type { Mark, ProcessReaper } from './process-reaper.ts'

/** A message from the attempt, or the reason why its process has ended. */
export type ExecutorEvent = AttemptMessage | { type: 'exited'; name: string; message: string }

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
  /** The user that executors run as, if not the worker's. */
  identity?: Identity
}

const memoryCheckMilliseconds = 500
/** A longer line of output cannot be masked in part. */
const outputLineBytesMax = 1024 * 1024
/** Descendants that are not killed may keep the output open. */
const closeMillisecondsMax = 2000

export class ExecutorProcess {
  readonly ready: Promise<Workflow[]>
  /** The account whose runs it executes. A process serves one account, so that nothing of another remains in it. */
  accountId: string | undefined
  readonly #child: ChildProcess
  readonly #channel: Duplex
  readonly #mark: Mark
  readonly #memoryMegabytesMax: number
  #attempt = 0
  #onEvent: ((event: ExecutorEvent) => void) | undefined
  #memoryTimer: NodeJS.Timeout | undefined
  /** Whether processes that the attempts have started may be left. */
  #mayHaveDescendants = false
  /** Another group may get its number now. */
  #hasEnded = false

  constructor(options: ExecutorOptions, reaper: ProcessReaper) {
    const { workflowsDirectory, memoryMegabytesMax, loadSecondsMax, identity } = options
    const module = fileURLToPath(new URL('./executor.ts', import.meta.url))
    this.#mark = reaper.mark()
    this.#memoryMegabytesMax = memoryMegabytesMax
    this.#child = spawn(process.execPath, [`--max-old-space-size=${memoryMegabytesMax}`, module, workflowsDirectory], {
      ...identity,
      env: { ...environmentWithoutSecrets(process.env), ...this.#mark.environment },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      detached: true,
    })
    this.#child.on('error', () => {})
    const channel = this.#child.stdio?.[channelDescriptor]
    if (!channel) throw new Error('No executor can be started: this process has too many open files.')
    this.#channel = channel as Duplex
    // Errors are ignored: the exit event reports a dead process.
    this.#channel.on('error', () => {})
    // A process without its channel is of no use. Its exit code is kept if it is exiting.
    this.#channel.once('close', () => this.#killDescendants())
    this.ready = this.#untilReady(workflowsDirectory, loadSecondsMax)
    // An idle process that nothing awaits may fail without an unhandled rejection.
    this.ready.catch(() => {})
    this.#captureOutput(this.#child.stdout, 'info')
    this.#captureOutput(this.#child.stderr, 'warn')
  }

  get alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null && !this.#channel.destroyed
  }

  /** Starts an attempt. The last event is `returned`, `threw` or `exited`. */
  start(
    message: Omit<Extract<ToExecutor, { type: 'start' }>, 'type' | 'attempt'>,
    onEvent: (event: ExecutorEvent) => void,
  ): AttemptChannel {
    this.#attempt += 1
    const attempt = this.#attempt
    this.#onEvent = onEvent
    this.#mayHaveDescendants = true
    this.#send({ type: 'start', attempt, ...message })
    this.#memoryTimer = setInterval(() => this.#checkMemory(), memoryCheckMilliseconds)
    return {
      abort: (reason) => this.#send({ type: 'abort', attempt, reason }),
      reply: (reply) => this.#send({ ...reply, attempt } as ToExecutor),
    }
  }

  /** Kills the process and its descendants; its attempt emits no more events. */
  kill(): void {
    clearInterval(this.#memoryTimer)
    this.#onEvent = undefined
    this.#killDescendants()
  }

  #killDescendants(): void {
    try {
      if (this.#child.pid && !this.#hasEnded) process.kill(-this.#child.pid, 'SIGKILL')
    } catch {
      // The group is empty.
    }
    if (this.#mayHaveDescendants) this.#mark.kill()
    this.#mayHaveDescendants = false
  }

  /** Ends an attempt whose process has ended or must end. */
  #fail(name: string, message: string): void {
    const onEvent = this.#onEvent
    this.kill()
    onEvent?.({ type: 'exited', name, message })
  }

  #checkMemory(): void {
    const megabytes = Math.round(memoryBytes(this.#child.pid ?? 0) / 1024 ** 2)
    const max = this.#memoryMegabytesMax + runtimeMegabytes
    if (megabytes <= max) return
    const limit = `WORKFLOW_MEMORY_MB allows ${this.#memoryMegabytesMax}, and ${runtimeMegabytes} for Node.js`
    this.#fail('MemoryLimit', `The run's processes used ${megabytes} MB of memory; ${limit}.`)
  }

  #send(message: ToExecutor): void {
    if (this.alive) this.#channel.write(`${JSON.stringify(message)}\n`)
  }

  #untilReady(directory: string, secondsMax: number): Promise<Workflow[]> {
    let timer: NodeJS.Timeout | undefined
    const ready = new Promise<Workflow[]>((resolve, reject) => {
      const onInvalid = () => {
        reject(loadExitError(directory, 'it wrote an invalid message to the worker'))
        this.#fail('InvalidMessage', "The workflow's process wrote an invalid message to its worker and was ended.")
      }
      const onLine = (line: string, complete: boolean) => {
        // The process was killed while it wrote.
        if (!complete) return
        try {
          const message = parseMessage(line)
          if (message.type === 'ready') resolve(JSON.parse(message.workflows))
          else if (message.type === 'loadFailed') reject(new WorkflowError(message.message))
          else if (message.attempt === this.#attempt) this.#receive(message)
        } catch {
          onInvalid()
        }
      }
      readLines(this.#channel, messageBytesMax, onLine, onInvalid)
      this.#child.once('error', reject)
      this.#child.once('exit', () => {
        this.#killDescendants()
        this.#hasEnded = true
        const destroyStreams = () => {
          for (const stream of this.#child.stdio) stream?.destroy()
        }
        setTimeout(destroyStreams, closeMillisecondsMax).unref()
      })
      // `exit` may be emitted before the last message or line of output.
      this.#child.once('close', (code, signal) => {
        const how = signal ? `signal ${signal}` : `exit code ${code}`
        reject(loadExitError(directory, how))
        this.#fail('ProcessExit', `The workflow's process ended (${how}).`)
      })
      timer = setTimeout(() => {
        reject(loadTimeoutError(directory, secondsMax))
        this.kill()
      }, secondsMax * 1000)
    })
    return ready.finally(() => clearTimeout(timer))
  }

  #receive(message: AttemptMessage): void {
    const isLast = message.type === 'returned' || message.type === 'threw'
    if (isLast) clearInterval(this.#memoryTimer)
    if (message.type === 'returned') this.#mayHaveDescendants = !message.reusable
    this.#onEvent?.(message)
  }

  /** Output that bypasses `console`, such as a native module's, also goes to the run's log. */
  #captureOutput(stream: Readable | null, level: 'info' | 'warn'): void {
    const log = (message: string) => this.#onEvent?.({ type: 'log', level, message })
    const onTooLong = () => log(`[a line of more than ${outputLineBytesMax} bytes was dropped]`)
    if (stream) readLines(stream, outputLineBytesMax, log, onTooLong)
  }
}
