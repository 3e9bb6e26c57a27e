/** Pauses a workflow while a person controls its browser, in the executor. */
import { type AttemptMessage, awaitedMinutes } from '../executors/messages.ts'
import { toText } from '../executors/workflow-values.ts'

export class TakeOver {
  readonly #send: (message: AttemptMessage) => void
  readonly #signal: AbortSignal
  /** Set while a person has, or waits for, control. */
  #taken: PromiseWithResolvers<void> | undefined
  /** Set while the workflow waits for a person. */
  #awaited: PromiseWithResolvers<boolean> | undefined
  #pauses = 0

  constructor(send: (message: AttemptMessage) => void, signal: AbortSignal) {
    this.#send = send
    this.#signal = signal
  }

  /** A person takes over: the workflow pauses at its next step. */
  begin(): void {
    this.#taken ??= Promise.withResolvers()
  }

  /** The person has returned control. */
  end(): void {
    this.#taken?.resolve()
    this.#taken = undefined
    this.#awaited?.resolve(true)
    this.#awaited = undefined
  }

  /** No user has taken over in time. */
  unanswered(): void {
    this.#awaited?.resolve(false)
    this.#awaited = undefined
  }

  /** Waits while a person has taken over. Steps call it before they start and after they have finished. */
  async boundary(): Promise<void> {
    if (this.#taken) await this.#pause(this.#taken.promise)
  }

  /** Asks for a person, and waits. Returns whether one took over. */
  async wait(message: string, waitMinutes: number = awaitedMinutes.default): Promise<boolean> {
    this.#signal.throwIfAborted()
    if (!(waitMinutes > 0 && waitMinutes <= awaitedMinutes.max)) {
      throw new RangeError(`waitMinutes must be more than 0, and at most ${awaitedMinutes.max}.`)
    }
    if (this.#awaited) throw new Error('The workflow waits for a person already.')
    this.#awaited = Promise.withResolvers()
    const { promise } = this.#awaited
    this.#send({ type: 'takeOverAwaited', message: toText(message), waitMinutes })
    return this.#pause(promise)
  }

  async #pause<Result>(ended: Promise<Result>): Promise<Result> {
    const aborted = Promise.withResolvers<never>()
    const abort = () => aborted.reject(this.#signal.reason)
    this.#signal.addEventListener('abort', abort, { once: true })
    if (this.#signal.aborted) abort()
    this.#pauses += 1
    // Steps that run at the same time pause together.
    if (this.#pauses === 1) this.#send({ type: 'paused' })
    try {
      return await Promise.race([ended, aborted.promise])
    } finally {
      this.#signal.removeEventListener('abort', abort)
      this.#pauses -= 1
      if (this.#pauses === 0) this.#send({ type: 'resumed' })
    }
  }
}
