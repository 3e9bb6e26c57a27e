/** The time of a world: `Date` of its thread, which passes only when the clock is set. Timers stay real. */

const dateOfSystem = Date

/** The time of the machine, whatever the thread's `Date` says. */
export const systemNow = dateOfSystem.now

export class VirtualClock {
  #now: number

  constructor(now: number) {
    this.#now = now
  }

  readonly now = (): number => this.#now

  /** @throws {RangeError} for a time before the present. */
  set(to: number): void {
    if (to < this.#now) throw new RangeError('The clock cannot be set back.')
    this.#now = to
  }

  /** Replaces `Date` of this thread. Call it before modules are imported that keep `Date`. */
  install(): void {
    const now = this.now
    globalThis.Date = new Proxy(dateOfSystem, {
      construct: (target, given, newTarget) => Reflect.construct(target, given.length > 0 ? given : [now()], newTarget),
      apply: () => new dateOfSystem(now()).toString(),
      get: (target, name, receiver) => (name === 'now' ? now : Reflect.get(target, name, receiver)),
    })
  }
}
