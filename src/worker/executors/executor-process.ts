/** The worker's side of one executor process, which is the leader of a process group. */
import { type ChildProcess, spawn } from 'node:child_process'
import { extname } from 'node:path'
import type { Duplex, Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { executorEnvironment } from '../../config/config.ts'
import { temporaryParentOf } from '../../domain/deployments/deployment-files.ts'
import { readLines } from '../../domain/workflows/bounded-lines.ts'
import type { Identity } from '../../domain/workflows/executor-identity.ts'
import type { ExecutorUsers } from '../../domain/workflows/executor-users.ts'
import { HeapReport, type Mark, type ProcessEnd, type ProcessReaper } from '../../domain/workflows/process-reaper.ts'
import { type AttemptMessage, channelDescriptor, messageBytesMax, parseMessage, type ToExecutor } from './messages.ts'
import { memoryBytes, runtimeMegabytes } from './process-memory.ts'

/** A message from the attempt, or the reason why its process has ended. */
export type ExecutorEvent =
  | Exclude<AttemptMessage, { type: 'crashed' }>
  | { type: 'exited'; name: string; message: string; stack: string | null }

/** The worker's reply to a message of the attempt. */
export type Reply = WithoutAttempt<Exclude<ToExecutor, { type: 'load' | 'start' | 'abort' }>>

/** Sends to one attempt only: after its end, messages are dropped instead of reaching the next attempt. */
export interface AttemptChannel {
  abort(reason: string, timedOut: boolean): void
  reply(message: Reply): void
  /** Call it when the run waits: the attempt sends no last message. */
  leave(reusable: boolean): void
}

type WithoutAttempt<Message> = Message extends unknown ? Omit<Message, 'attempt'> : never

/** Modules of one deployment, which an executor loads before its first attempt. */
export interface ModulesToLoad {
  directory: string
  /** Paths in the directory, by workflow. */
  modules: Record<string, string>
  usesBrowser: boolean
}

/** A module ended the process or did not load in time. */
export class LoadError extends Error {
  readonly end: ProcessEnd

  constructor(end: ProcessEnd) {
    super(end.message)
    this.end = end
  }
}

export interface ExecutorOptions {
  memoryMegabytesMax: number
  loadSecondsMax: number
  /** The user that executors run as, if not the worker's. */
  identity?: Identity
  /** If each account has its own user. There is no spare process then: a process cannot change its user. */
  users?: ExecutorUsers | undefined
  /** Where executors have their `TMPDIR`, if not beside their deployment. */
  temporaryParent?: string
}

const memoryCheckMilliseconds = 500
/** What a module leaves running ends its process sooner, if it does. */
const earlyMilliseconds = 1000
/** A longer line of output cannot be masked in part. */
const outputLineBytesMax = 1024 * 1024
/** Descendants that are not killed may keep the output open. */
const closeMillisecondsMax = 2000

export class ExecutorProcess {
  /** The user that it runs as, if not the worker's. */
  readonly identity: Identity
  /** Rejects with a LoadError because of a module, with another error if no process can be started. */
  readonly ready: Promise<void>
  readonly #child: ChildProcess
  readonly #channel: Duplex
  readonly #mark: Mark
  readonly #memoryMegabytesMax: number
  readonly #heapReport = new HeapReport()
  #attempt = 0
  #onEvent: ((event: ExecutorEvent) => void) | undefined
  /** The last message of the attempt, until what it has written before is read. */
  #last: Exclude<AttemptMessage, { type: 'crashed' }> | undefined
  #memoryTimer: NodeJS.Timeout | undefined
  /** Whether processes that the attempts have started may be left. */
  #mayHaveDescendants = false
  /** Another group may get its number now. */
  #hasEnded = false
  readonly #startedAt = performance.now()
  #readyAt = 0
  #endedAt = 0

  constructor(options: ExecutorOptions, { directory, modules, usesBrowser }: ModulesToLoad, reaper: ProcessReaper) {
    const { memoryMegabytesMax, loadSecondsMax, identity, temporaryParent = temporaryParentOf(directory) } = options
    const module = fileURLToPath(new URL(`./executor${extname(import.meta.url)}`, import.meta.url))
    this.identity = identity
    this.#mark = reaper.mark(temporaryParent)
    this.#memoryMegabytesMax = memoryMegabytesMax
    const parameters = usesBrowser ? [module, directory, 'browser'] : [module, directory]
    this.#child = spawn(process.execPath, [`--max-old-space-size=${memoryMegabytesMax}`, ...parameters], {
      ...identity,
      env: { ...executorEnvironment(process.env), ...this.#mark.environment },
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
    this.ready = this.#untilReady(loadSecondsMax)
    // An idle process that nothing awaits may fail without an unhandled rejection.
    this.ready.catch(() => {})
    this.#captureOutput(this.#child.stdout, 'info')
    this.#captureOutput(this.#child.stderr, 'warn')
    this.#send({ type: 'load', modules })
  }

  /**
   * Whether code ended the process before or soon after its first attempt began: probably what a module does when it is
   * loaded. Not the kernel, or the worker, which use SIGKILL.
   */
  get endedEarly(): boolean {
    const endedByCode = this.#child.exitCode !== null || this.#child.signalCode === 'SIGABRT'
    return endedByCode && (this.#attempt === 0 || this.#endedAt - this.#readyAt < earlyMilliseconds)
  }

  /** From its start until its modules were loaded; 0 before. */
  get startMilliseconds(): number {
    return Math.max(0, this.#readyAt - this.#startedAt)
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
      abort: (reason, timedOut) => this.#send({ type: 'abort', attempt, reason, timedOut }),
      reply: (reply) => this.#send({ ...reply, attempt } as ToExecutor),
      leave: (reusable) => {
        clearInterval(this.#memoryTimer)
        this.#mayHaveDescendants = !reusable
      },
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
  #fail(end: ProcessEnd & { stack?: string | null }): void {
    this.#deliverLast()
    const onEvent = this.#onEvent
    this.kill()
    onEvent?.({ type: 'exited', stack: null, ...end })
  }

  #checkMemory(): void {
    const megabytes = Math.round(memoryBytes(this.#child.pid ?? 0) / 1024 ** 2)
    const max = this.#memoryMegabytesMax + runtimeMegabytes
    if (megabytes <= max) return
    const limit = `WORKFLOW_MEMORY_MB allows ${this.#memoryMegabytesMax}, and ${runtimeMegabytes} for Node.js`
    this.#fail({ name: 'MemoryLimit', message: `The run's processes used ${megabytes} MB of memory; ${limit}.` })
  }

  #send(message: ToExecutor): void {
    if (this.alive) this.#channel.write(`${JSON.stringify(message)}\n`)
  }

  #untilReady(secondsMax: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const ready = new Promise<void>((resolve, reject) => {
      const onInvalid = () => {
        const message = "The workflow's process wrote an invalid message to its worker and was ended."
        reject(new LoadError({ name: 'InvalidMessage', message }))
        this.#fail({ name: 'InvalidMessage', message })
      }
      const onLine = (line: string, complete: boolean) => {
        // The process was killed while it wrote.
        if (!complete) return
        try {
          const message = parseMessage(line)
          if (message.type === 'ready') {
            this.#readyAt = performance.now()
            resolve()
          } else if (message.attempt === this.#attempt) this.#receive(message)
        } catch {
          onInvalid()
        }
      }
      readLines(this.#channel, messageBytesMax, onLine, onInvalid)
      this.#child.once('error', reject)
      this.#child.once('exit', () => {
        this.#killDescendants()
        this.#mark.removeFiles()
        this.#hasEnded = true
        this.#endedAt = performance.now()
        const destroyStreams = () => {
          for (const stream of this.#child.stdio) stream?.destroy()
        }
        setTimeout(destroyStreams, closeMillisecondsMax).unref()
      })
      // `exit` may be emitted before the last message or line of output.
      this.#child.once('close', (code, signal) => {
        const end = this.#heapReport.describeEnd(code, signal, this.#memoryMegabytesMax)
        reject(new LoadError({ ...end, message: end.message.replace(/\.$/, ' while its module loaded.') }))
        this.#fail(end)
      })
      timer = setTimeout(() => {
        const message = `The workflow's module did not load within ${secondsMax} seconds.`
        reject(new LoadError({ name: 'LoadTimeout', message }))
        this.kill()
      }, secondsMax * 1000)
    })
    return ready.finally(() => clearTimeout(timer))
  }

  #receive(message: AttemptMessage): void {
    if (message.type === 'crashed') {
      const { name, message: text, stack } = message
      return this.#fail({ name, message: `Uncaught: ${text}`, stack })
    }
    const mayBeReusable = message.type === 'returned' || message.type === 'suspended' || message.type === 'signedOut'
    if (mayBeReusable || message.type === 'threw') clearInterval(this.#memoryTimer)
    if (mayBeReusable) this.#mayHaveDescendants = !message.reusable
    if (!mayBeReusable && message.type !== 'threw') return this.#onEvent?.(message)
    this.#last = message
    // Output that the process wrote before is read by the end of the next turn of the event loop.
    setImmediate(() => setImmediate(() => this.#deliverLast()))
  }

  #deliverLast(): void {
    const message = this.#last
    this.#last = undefined
    if (message) this.#onEvent?.(message)
  }

  /** Output that bypasses `console`, such as a native module's, also goes to the run's log. */
  #captureOutput(stream: Readable | null, level: 'info' | 'warn'): void {
    const log = (message: string) => this.#onEvent?.({ type: 'log', level, message })
    const onTooLong = () => log(`[a line of more than ${outputLineBytesMax} bytes was dropped]`)
    const onLine = (line: string) => {
      if (level === 'info' || !this.#heapReport.has(line)) log(line)
    }
    if (stream) readLines(stream, outputLineBytesMax, onLine, onTooLong)
  }
}
