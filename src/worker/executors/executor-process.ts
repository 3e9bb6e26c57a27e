/** The worker's side of one executor process, which is the leader of a process group. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { extname } from 'node:path'
import type { Duplex, Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { executorEnvironment } from '../../config/config.ts'
import { temporaryParentOf } from '../../domain/deployments/deployment-files.ts'
import { readLines } from '../../domain/workflows/bounded-lines.ts'
import { confinedCommand } from '../../domain/workflows/confined-command.ts'
import type { Identity } from '../../domain/workflows/executor-identity.ts'
import type { ExecutorUsers } from '../../domain/workflows/executor-users.ts'
import { HeapReport, type Mark, type ProcessEnd, type ProcessReaper } from '../../domain/workflows/process-reaper.ts'
import { ExecutorOutput } from './executor-output.ts'
import {
  type AttemptMessage,
  channelDescriptor,
  endsOutput,
  type FromExecutor,
  messageBytesMax,
  parseMessage,
  type ToExecutor,
} from './messages.ts'
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
/** Descendants that are not killed may keep the output open. */
const closeMillisecondsMax = 2000
/** How long a message may wait for the marks before it, which a process without its output streams cannot write. */
const markMillisecondsMax = 2000

export class ExecutorProcess {
  /** The user that it runs as, if not the worker's. */
  readonly identity: Identity
  /** Rejects with a LoadError because of a module, with another error if no process can be started. */
  readonly ready: Promise<void>
  readonly #child: ChildProcess
  readonly #channel: Duplex
  readonly #reaped: Mark
  readonly #memoryMegabytesMax: number
  readonly #heapReport = new HeapReport()
  #attempt = 0
  #onEvent: ((event: ExecutorEvent) => void) | undefined
  readonly #mark: string = randomUUID()
  readonly #outputs: ExecutorOutput[]
  /** Messages `marked` that have been handled. */
  #marks = 0
  /** Whether the output before the next message is read. */
  #isRead = false
  #isReading = false
  /** Messages that wait until the output before them is read, and those after them. */
  #waiting: FromExecutor[] = []
  #markTimer: NodeJS.Timeout | undefined
  /** Whether an attempt is executing, whose log has the output. */
  #isLogging = false
  #memoryTimer: NodeJS.Timeout | undefined
  /** Whether processes that the attempts have started may be left. */
  #mayHaveDescendants = false
  /** Another group may get its number now. */
  #hasEnded = false
  #onReady: () => void = () => {}
  readonly #startedAt = performance.now()
  #readyAt = 0
  #endedAt = 0

  constructor(options: ExecutorOptions, { directory, modules, usesBrowser }: ModulesToLoad, reaper: ProcessReaper) {
    const { memoryMegabytesMax, loadSecondsMax, identity, temporaryParent = temporaryParentOf(directory) } = options
    const module = fileURLToPath(new URL(`./executor${extname(import.meta.url)}`, import.meta.url))
    this.identity = identity
    this.#reaped = reaper.mark(temporaryParent)
    this.#memoryMegabytesMax = memoryMegabytesMax
    const parameters = usesBrowser ? [module, directory, 'browser'] : [module, directory]
    const command = confinedCommand([`--max-old-space-size=${memoryMegabytesMax}`, ...parameters], identity)
    this.#child = spawn(...command, {
      ...identity,
      env: { ...executorEnvironment(process.env), ...this.#reaped.environment },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      detached: true,
    })
    this.#child.on('error', () => {})
    if (this.#child.pid) this.#reaped.add(this.#child.pid)
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
    this.#outputs = [
      ...this.#captureOutput(this.#child.stdout, 'info'),
      ...this.#captureOutput(this.#child.stderr, 'warn'),
    ]
    this.#send({ type: 'load', modules, mark: this.#mark })
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

  /** Its memory and that of its descendants; what an idle process has at least, where that is unknown. */
  get memoryBytes(): number {
    return memoryBytes(this.#child.pid ?? 0) || runtimeMegabytes * 1024 ** 2
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
    this.#isLogging = true
    this.#mayHaveDescendants = true
    this.#send({ type: 'start', attempt, ...message })
    this.#memoryTimer = setInterval(() => this.#checkMemory(), memoryCheckMilliseconds)
    return {
      abort: (reason, timedOut) => this.#send({ type: 'abort', attempt, reason, timedOut }),
      reply: (reply) => this.#send({ ...reply, attempt } as ToExecutor),
      leave: (reusable) => {
        this.#isLogging = false
        clearInterval(this.#memoryTimer)
        this.#mayHaveDescendants = !reusable
      },
    }
  }

  /** Kills the process and its descendants. Its attempt emits no more events but the line that is being read. */
  kill(): void {
    clearInterval(this.#memoryTimer)
    clearTimeout(this.#markTimer)
    for (const { flush } of this.#outputs) flush()
    this.#isLogging = false
    this.#onEvent = undefined
    this.#killDescendants()
  }

  #killDescendants(): void {
    try {
      if (this.#child.pid && !this.#hasEnded) process.kill(-this.#child.pid, 'SIGKILL')
    } catch {
      // The group is empty.
    }
    if (this.#mayHaveDescendants) this.#reaped.kill()
    this.#mayHaveDescendants = false
  }

  /** Ends an attempt whose process has ended or must end. */
  #fail(end: ProcessEnd & { stack?: string | null }): void {
    this.#handleWaiting(true)
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
      this.#onReady = () => {
        this.#readyAt = performance.now()
        resolve()
      }
      const onInvalid = () => {
        const message = "The workflow's process wrote an invalid message to its worker and was ended."
        reject(new LoadError({ name: 'InvalidMessage', message }))
        this.#fail({ name: 'InvalidMessage', message })
      }
      const onLine = (line: string, complete: boolean) => {
        // The process was killed while it wrote.
        if (!complete) return
        try {
          this.#waiting.push(parseMessage(line))
          this.#handleWaiting()
        } catch {
          onInvalid()
        }
      }
      readLines(this.#channel, messageBytesMax, onLine, onInvalid)
      this.#child.once('error', reject)
      this.#child.once('exit', () => {
        this.#killDescendants()
        this.#reaped.removeFiles()
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

  /** @param isEnded when no more output is read. */
  #handleWaiting(isEnded = false): void {
    for (let message = this.#waiting[0]; message; message = this.#waiting[0]) {
      if (message.type === 'marked' && !isEnded && this.#outputs.some(({ marks }) => marks <= this.#marks)) {
        this.#markTimer ??= setTimeout(() => this.#giveUpOutput(), markMillisecondsMax)
        return
      }
      const isLast = endsOutput(message)
      if (isLast && !isEnded && !this.#isRead) return this.#readOutput()
      this.#waiting.shift()
      this.#handle(message)
      if (isLast) this.#isRead = false
    }
  }

  #handle(message: FromExecutor): void {
    if (message.type === 'ready') return this.#onReady()
    if (message.type === 'marked') {
      clearTimeout(this.#markTimer)
      this.#markTimer = undefined
      this.#marks += 1
      this.#isRead = true
    } else if (message.attempt === this.#attempt) {
      if (endsOutput(message)) for (const { flush } of this.#outputs) flush()
      this.#receive(message)
    }
  }

  /** What the kernel has at this time is read by the end of the next turn of the event loop. */
  #readOutput(): void {
    if (this.#isReading) return
    this.#isReading = true
    const onRead = () => {
      this.#isReading = false
      this.#isRead = true
      this.#handleWaiting()
    }
    setImmediate(() => setImmediate(onRead))
  }

  /** The process executes no other attempt: its output could be added to the wrong one. */
  #giveUpOutput(): void {
    this.#handleWaiting(true)
    this.#channel.destroy()
  }

  #receive(message: AttemptMessage): void {
    if (message.type === 'crashed') {
      const { name, message: text, stack } = message
      return this.#fail({ name, message: `Uncaught: ${text}`, stack })
    }
    const mayBeReusable = message.type === 'returned' || message.type === 'suspended' || message.type === 'signedOut'
    if (mayBeReusable) this.#mayHaveDescendants = !message.reusable
    if (mayBeReusable || message.type === 'threw') {
      clearInterval(this.#memoryTimer)
      this.#isLogging = false
    }
    this.#onEvent?.(message)
  }

  /** Output that bypasses `console`, such as a native module's, also goes to the run's log. */
  #captureOutput(stream: Readable | null, level: 'info' | 'warn'): ExecutorOutput[] {
    const onLine = (line: string) => {
      if (level === 'warn' && this.#heapReport.has(line)) return
      if (this.#isLogging) this.#onEvent?.({ type: 'log', level, message: line })
    }
    return stream ? [new ExecutorOutput(stream, this.#mark, onLine, () => this.#handleWaiting())] : []
  }
}
