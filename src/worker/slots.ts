/**
 * Who has a slot of a worker: a state machine without I/O.
 *
 * A slot is free, or has a stack of attempts. The attempt on top executes. Each attempt below waits in its process for the
 * run above it, which it has called, and gets the slot back when everything above it has ended.
 *
 * | event | state before | state after |
 * | --- | --- | --- |
 * | `claim(attempt)` | a slot is free | the slot has this attempt |
 * | `offer(caller)` | the caller is on top, and the worker does not stop | the slot is offered: the store decides whether the called run starts in it |
 * | `start(caller, called)` | the slot is offered | the called run's attempt is on top, whether the caller has ended or not |
 * | `keep(caller)` | the slot is offered | as before the offer |
 * | `end(attempt)` | the slot has the attempt | without the attempt |
 * | `stop()` | any | no slot is offered any more |
 *
 * A slot whose stack is empty is free, unless it is offered: the store has not answered yet, and may have started a run in
 * it. An attempt that has ended is in no stack, and no event puts it into one. Every event may come at any time; one that
 * does not fit the state changes nothing.
 */

interface Slot<Attempt> {
  /** The one that executes is the last. */
  readonly stack: Attempt[]
  /** The attempt on top that has offered the slot. It may have ended since. */
  offeredBy: Attempt | undefined
}

export class Slots<Attempt> {
  readonly #count: number
  readonly #onFree: () => void
  readonly #taken = new Set<Slot<Attempt>>()
  /** What each caller below another attempt does when it has its slot again. */
  readonly #onReturned = new Map<Attempt, () => void>()
  #isStopping = false

  /** @param onFree called when a slot becomes free. */
  constructor(count: number, onFree: () => void) {
    this.#count = count
    this.#onFree = onFree
  }

  get free(): number {
    return this.#count - this.#taken.size
  }

  /** Whether the attempt executes in a slot. */
  has(attempt: Attempt): boolean {
    return this.#find((slot) => isOnTop(slot, attempt)) !== undefined
  }

  claim(attempt: Attempt): void {
    this.#taken.add({ stack: [attempt], offeredBy: undefined })
  }

  /**
   * Returns whether the called run may start in the caller's slot; `start` or `keep` must follow. At most as many callers
   * as there are slots wait in their processes.
   */
  offer(caller: Attempt): boolean {
    const slot = this.#find((slot) => isOnTop(slot, caller))
    if (!slot || slot.offeredBy !== undefined || this.#isStopping || this.#callers >= this.#count) return false
    slot.offeredBy = caller
    return true
  }

  /** Resolves when the caller has its slot again, or has ended. */
  async start(caller: Attempt, called: Attempt): Promise<void> {
    const slot = this.#takeBack(caller)
    if (!slot) return
    const waits = slot.stack.at(-1) === caller
    slot.stack.push(called)
    if (waits) await new Promise<void>((resolve) => this.#onReturned.set(caller, resolve))
  }

  keep(caller: Attempt): void {
    const slot = this.#takeBack(caller)
    if (slot && slot.stack.at(-1) !== caller) this.#pass(slot)
  }

  end(attempt: Attempt): void {
    const slot = this.#find(({ stack }) => stack.includes(attempt))
    if (!slot) return
    const isLast = slot.stack.at(-1) === attempt
    slot.stack.splice(slot.stack.indexOf(attempt), 1)
    this.#resolve(attempt)
    if (isLast && slot.offeredBy === undefined) this.#pass(slot)
  }

  stop(): void {
    this.#isStopping = true
  }

  /** Those that wait in their processes, or may soon. */
  get #callers(): number {
    const count = ({ stack, offeredBy }: Slot<Attempt>) => Math.max(0, stack.length - 1) + (offeredBy ? 1 : 0)
    return [...this.#taken].reduce((sum, slot) => sum + count(slot), 0)
  }

  #find(fits: (slot: Slot<Attempt>) => boolean): Slot<Attempt> | undefined {
    return [...this.#taken].find(fits)
  }

  #takeBack(caller: Attempt): Slot<Attempt> | undefined {
    const slot = this.#find(({ offeredBy }) => offeredBy === caller)
    if (slot) slot.offeredBy = undefined
    return slot
  }

  /** Gives a slot whose attempt on top has ended to the one below, or frees it. */
  #pass(slot: Slot<Attempt>): void {
    const caller = slot.stack.at(-1)
    if (caller !== undefined) return this.#resolve(caller)
    this.#taken.delete(slot)
    this.#onFree()
  }

  #resolve(caller: Attempt): void {
    this.#onReturned.get(caller)?.()
    this.#onReturned.delete(caller)
  }
}

/** Until the store has answered an offer, the slot is that of the attempt which has made it, even after its end. */
function isOnTop<Attempt>({ stack, offeredBy }: Slot<Attempt>, attempt: Attempt): boolean {
  return stack.at(-1) === attempt && (offeredBy === undefined || offeredBy === attempt)
}
