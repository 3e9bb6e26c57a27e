/**
 * The waits of an attempt, in the executor. Results of earlier parts come in the order in which the run got them, so that
 * a race has the same winner again. When only waits are left, the worker suspends the run, unless one of them has ended.
 */
import type { ReachedWait } from '../../domain/queue/run-options.ts'
import type { AttemptMessage, ToExecutor } from './messages.ts'

type Reply = Extract<ToExecutor, { type: 'waitsEnded' }>

/** A result whose turn does not come within this time, because the code calls in another order, is handed over anyway. */
const orderMilliseconds = 1000
/** Bound a message and a transaction. */
const sentMax = 500
const sentBytesMax = 4 * 1024 * 1024
const askMilliseconds = 1000
/** After a reply that no sleep has ended, although one is due by the clock of this process. */
const askAgainMilliseconds = 100
const timerMax = 2 ** 31 - 1

interface Open {
  request: ReachedWait
  resolve(outcome: string): void
  reject(error: Error): void
  isSent: boolean
  bytes: number
  /** Of a sleep: as the store has it, once it is stored. */
  deadline: number
}

interface Options {
  /** Names of the results of earlier parts, in their order. */
  recorded: readonly string[]
  send(message: AttemptMessage): void
  /** Whether a step executes, or something is being stored. */
  isBusy(): boolean
  hasOpenBrowser(): boolean
  /** Whether the process waits for answers, instead of leaving its browser. */
  staysForAnswers?(): boolean
  checkReusable(): Promise<boolean>
  now(): number
  /** A sleep that ends within this time does not leave the process. */
  stayMilliseconds: number
}

export class RunWaits {
  readonly #options: Options
  readonly #open = new Map<string, Open>()
  /** Results of earlier parts that the code has asked for. */
  readonly #asked = new Map<string, () => void>()
  #next = 0
  #isChecking = false
  #isSending = false
  /** The last message asked to suspend the run. */
  #mayBeSuspended = false
  #ended: Error | undefined
  /** When the store was last asked for answers, while the process stays. */
  #askedAt = 0
  /** Whether the last message asked for a sleep that was due, and when the store may be asked again. */
  #askedForDue = false
  #askAgainAt = 0
  #isPaused = false
  #orderTimer: NodeJS.Timeout | undefined
  #sleepTimer: NodeJS.Timeout | undefined

  constructor(options: Options) {
    this.#options = options
  }

  /** Resolves with the outcome as JSON. */
  wait(request: ReachedWait): Promise<string> {
    if (this.#ended) return Promise.reject(this.#ended)
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const deadline = request.kind === 'sleep' ? request.deadline : Number.POSITIVE_INFINITY
    const bytes = Buffer.byteLength(JSON.stringify(request))
    this.#open.set(request.name, { request, resolve, reject, isSent: false, bytes, deadline })
    this.check()
    return promise
  }

  /** Resolves when it is the turn of a result of an earlier part. */
  inOrder(name: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#asked.set(name, resolve)
    this.check()
    return promise
  }

  /** Call it when something may have changed. Looks once the code that runs now has called all that it calls. */
  check(): void {
    if (this.#isChecking || this.#ended) return
    this.#isChecking = true
    setImmediate(() => {
      this.#isChecking = false
      if (!this.#ended) this.#look()
    })
  }

  /** Rejects what is open. */
  abort(error: Error): void {
    this.#end(error)
    for (const { reject } of this.#open.values()) reject(error)
    this.#open.clear()
  }

  /** Nothing resolves any more. */
  suspend(): void {
    this.#end(new Error('The run waits, and goes on in another process.'))
    this.#open.clear()
  }

  #end(error: Error): void {
    this.#ended = error
    clearTimeout(this.#orderTimer)
    clearTimeout(this.#sleepTimer)
  }

  onReply({ ended, refused, deadlines }: Reply): void {
    this.#isSending = false
    // The run is about to be aborted.
    const isEmpty = ended.length + refused.length === 0
    if (this.#mayBeSuspended && isEmpty) return
    this.#askAgainAt = isEmpty && this.#askedForDue ? this.#options.now() + askAgainMilliseconds : 0
    for (const { name, outcome } of ended) {
      const open = this.#open.get(name)
      this.#open.delete(name)
      if (!open) continue
      // One after the other, each when the code that the one before has resumed has run.
      const { recorded } = this.#options
      this.#options.recorded = [...recorded, name]
      this.#asked.set(name, () => open.resolve(outcome))
    }
    for (const { name, errorName, message } of refused) {
      this.#open.get(name)?.reject(Object.assign(new Error(message), { name: errorName }))
      this.#open.delete(name)
    }
    for (const [name, deadline] of Object.entries(deadlines)) {
      const open = this.#open.get(name)
      if (open) open.deadline = deadline
    }
    this.check()
  }

  #look(): void {
    if (this.#open.size === 0) this.#pause(false)
    if (this.#handOver() || this.#isSending || this.#open.size === 0) return
    const open = [...this.#open.values()]
    const allUnsent = open.filter(({ isSent }) => !isSent)
    const unsent = takeFirst(allUnsent)
    const now = this.#options.now()
    const soonest = Math.max(this.#askAgainAt, Math.min(...open.map(({ deadline }) => deadline)))
    const isDue = soonest <= now
    const staysForAnswers = this.#options.staysForAnswers?.() ?? false
    this.#pause(staysForAnswers)
    const isBusy = this.#options.isBusy() || this.#asked.size > 0 || staysForAnswers
    const stays = isBusy || soonest - now <= this.#options.stayMilliseconds
    const isComplete = unsent.length === allUnsent.length
    if (stays && unsent.length === 0 && !isDue) {
      if (!staysForAnswers) return this.#wakeAt(soonest, now)
      // Nothing notifies this process of an answer.
      if (now < this.#askedAt + askMilliseconds) return this.#wakeAt(this.#askedAt + askMilliseconds, now)
    }
    this.#askedAt = now
    this.#askedForDue = isDue
    void this.#send(unsent, open, !stays && isComplete)
    if (stays) this.#wakeAt(soonest, now)
  }

  /** The time for which the process waits for an answer does not count. */
  #pause(pauses: boolean): void {
    if (pauses === this.#isPaused) return
    this.#isPaused = pauses
    this.#options.send({ type: pauses ? 'paused' : 'resumed' })
  }

  #wakeAt(time: number, now: number): void {
    clearTimeout(this.#sleepTimer)
    if (time !== Number.POSITIVE_INFINITY)
      this.#sleepTimer = setTimeout(() => this.check(), Math.min(timerMax, Math.max(1, time - now)))
  }

  /** Hands over the next result of an earlier part; returns whether there is one. */
  #handOver(): boolean {
    if (this.#asked.size === 0) return false
    const { recorded } = this.#options
    const name = recorded[this.#next]
    const resolve = name === undefined ? undefined : this.#asked.get(name)
    if (name !== undefined && resolve) {
      this.#take(name, resolve)
      return true
    }
    this.#orderTimer ??= setTimeout(() => this.#takeFirst(), orderMilliseconds)
    return false
  }

  #takeFirst(): void {
    this.#orderTimer = undefined
    const { recorded } = this.#options
    const index = recorded.findIndex((name, index) => index >= this.#next && this.#asked.has(name))
    const name = recorded[index] ?? this.#asked.keys().next().value
    if (name === undefined) return
    if (index >= 0) this.#next = index
    this.#take(name, this.#asked.get(name) as () => void)
  }

  #take(name: string, resolve: () => void): void {
    clearTimeout(this.#orderTimer)
    this.#orderTimer = undefined
    this.#next += 1
    this.#asked.delete(name)
    resolve()
    this.check()
  }

  async #send(unsent: readonly Open[], open: readonly Open[], canSuspend: boolean): Promise<void> {
    this.#isSending = true
    const { send, checkReusable, hasOpenBrowser } = this.#options
    for (const each of unsent) each.isSent = true
    const reusable = canSuspend && (await checkReusable())
    if (this.#ended) return
    // A step may have begun in the meantime.
    this.#mayBeSuspended = canSuspend && !this.#options.isBusy() && open.length === this.#open.size
    send({
      type: 'waits',
      reached: unsent.map(({ request }) => request),
      names: open.filter(({ isSent }) => isSent).map(({ request }) => request.name),
      canSuspend: this.#mayBeSuspended,
      hasOpenBrowser: hasOpenBrowser(),
      reusable,
    })
  }
}

function takeFirst(unsent: readonly Open[]): Open[] {
  let bytes = 0
  return unsent.slice(0, sentMax).filter((each, index) => {
    bytes += each.bytes
    return index === 0 || bytes <= sentBytesMax
  })
}
