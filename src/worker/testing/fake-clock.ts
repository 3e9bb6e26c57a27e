/** A clock for tests of workflows: time jumps to the next timer as soon as a run waits for nothing else. */
import { createHook } from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'
import promises from 'node:timers/promises'
import { type Clock, install } from '@sinonjs/fake-timers'

const real = { setTimeout, setImmediate, timeoutSignal: AbortSignal.timeout }

/** How long to wait for work that is no timer before looking again. */
const pollMilliseconds = 2

/** Rounds of `setImmediate` during which time does not pass, if the run does nothing else. */
const immediateRoundsMax = 100

/** A value that comes after a time, which `after` makes. */
export class Delayed<Value> {
  readonly seconds: number
  readonly value: Value

  constructor(seconds: number, value: Value) {
    this.seconds = seconds
    this.value = value
  }
}

export interface RunClock {
  /** Resolves with the result of `act`, during which the clock's timers are those of the process. */
  run<Result>(act: () => Promise<Result>): Promise<Result>
  /** Lets time pass without waiting. */
  skip(seconds: number): Promise<void>
  /** The run has done something: what it does next may take as many turns of the event loop again. */
  onProgress(): void
  /** In milliseconds since 1970. */
  now(): number
}

/** Skipped time does not change what the process reads as the time. */
export function createRealClock(): RunClock {
  let skipped = 0
  const skip = async (seconds: number) => {
    skipped += seconds * 1000
  }
  return { run: (act) => act(), skip, onProgress: () => {}, now: () => Date.now() + skipped }
}

/** Timers are global: with two clocks, neither run would know which time it is. */
let isInUse = false

export class FakeClock implements RunClock {
  readonly #startedAt: Date
  #rounds = 0
  /** What only the loop of the clock does: two that move it at once would fire timers that one of them has not seen. */
  #skip: { milliseconds: number; resolve(): void } | undefined

  constructor(now: Date) {
    this.#startedAt = now
  }

  /** @throws {Error} while another run has a fake clock. */
  async run<Result>(act: () => Promise<Result>): Promise<Result> {
    if (isInUse) throw new Error('Another run has a fake clock: await it before you start this one.')
    isInUse = true
    const toFake = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'] as const
    const clock = install({ now: this.#startedAt, toFake: [...toFake], ignoreMissingTimers: true })
    AbortSignal.timeout = timeoutSignal
    // The library's own rejects with the signal's reason, and leaves out the scheduler. It restores this one.
    promises.setTimeout = delay
    Object.assign(promises.scheduler, {
      wait: (milliseconds: number, options = {}) => delay(milliseconds, undefined, options),
    })
    // For modules that import functions of `node:timers` by name.
    syncBuiltinESMExports()
    try {
      return await this.#jumpUntil(act, clock)
    } finally {
      clock.uninstall()
      AbortSignal.timeout = real.timeoutSignal
      // Reveals the method of its prototype.
      Reflect.deleteProperty(promises.scheduler, 'wait')
      syncBuiltinESMExports()
      isInUse = false
    }
  }

  now(): number {
    return Date.now()
  }

  skip(seconds: number): Promise<void> {
    return new Promise((resolve) => {
      this.#skip = { milliseconds: seconds * 1000, resolve }
    })
  }

  onProgress(): void {
    this.#rounds = 0
  }

  async #jumpUntil<Result>(act: () => Promise<Result>, clock: Clock): Promise<Result> {
    const requests = new CryptoRequests()
    let before = countOthers()
    let hasEnded = false
    const result = act().finally(() => {
      hasEnded = true
      requests.close()
    })
    // Handled by the caller, which gets the same promise.
    result.catch(() => {})
    let waitedSince = process.hrtime.bigint()
    while (!hasEnded) {
      await new Promise((resolve) => real.setImmediate(resolve))
      if (hasEnded) break
      if (this.#skip) {
        const { milliseconds, resolve } = this.#skip
        this.#skip = undefined
        await clock.tickAsync(milliseconds)
        resolve()
        this.onProgress()
        continue
      }
      // They execute before the next round. A loop of `setImmediate` may wait for the time.
      if (process.getActiveResourcesInfo().includes('Immediate') && this.#rounds < immediateRoundsMax) {
        this.#rounds += 1
        continue
      }
      this.#rounds = 0
      const others = countOthers() + requests.pending
      // What the process of the test waited for when the run began may have come since.
      before = Math.min(before, others)
      if (others === before) {
        // In this turn: in the next one, the run may have begun something.
        clock.next()
        waitedSince = process.hrtime.bigint()
        continue
      }
      // A file, a socket or a process is awaited: its time is real, and so is the clock's.
      await new Promise((resolve) => real.setTimeout(resolve, pollMilliseconds))
      const milliseconds = (process.hrtime.bigint() - waitedSince) / 1_000_000n
      waitedSince += milliseconds * 1_000_000n
      await clock.tickAsync(Number(milliseconds))
    }
    return result
  }
}

/** Like `setTimeout` of `node:timers/promises`, on the timers that the clock has replaced. */
function delay<Value>(milliseconds?: number, value?: Value, options: { signal?: AbortSignal | undefined } = {}) {
  const { signal } = options
  const { promise, resolve, reject } = Promise.withResolvers<Value>()
  const abort = () => {
    clearTimeout(timer)
    const error = new Error('The operation was aborted', { cause: signal?.reason })
    reject(Object.assign(error, { name: 'AbortError', code: 'ABORT_ERR' }))
  }
  const timer = setTimeout(() => {
    signal?.removeEventListener('abort', abort)
    resolve(value as Value)
  }, milliseconds)
  if (signal?.aborted) abort()
  else signal?.addEventListener('abort', abort, { once: true })
  return promise
}

/** The resources that keep the process waiting, without timers. */
function countOthers(): number {
  return process.getActiveResourcesInfo().filter((type) => type !== 'Timeout').length
}

/** Those that are never synchronous. */
const webCryptoTypes = new Set(['HASHREQUEST', 'SIGNREQUEST', 'CIPHERREQUEST'])

/** Requests to node:crypto and Web Crypto, which Node.js does not list among its resources. */
class CryptoRequests {
  readonly #requests = new Map<number, { type: string; request: object }>()
  readonly #hook = createHook({
    init: (id, type, _trigger, request) => void (type.endsWith('REQUEST') && this.#requests.set(id, { type, request })),
    before: (id) => void this.#requests.delete(id),
  }).enable()

  get pending(): number {
    // The others have ended if they have no callback.
    const isPending = ({ type, request }: { type: string; request: object }) =>
      webCryptoTypes.has(type) || 'ondone' in request
    return [...this.#requests.values()].filter(isPending).length
  }

  close(): void {
    this.#hook.disable()
  }
}

/** Node.js uses an internal timer, which a fake clock does not reach. */
function timeoutSignal(milliseconds: number): AbortSignal {
  const controller = new AbortController()
  const error = () => new DOMException('The operation was aborted due to timeout', 'TimeoutError')
  setTimeout(() => controller.abort(error()), milliseconds)
  return controller.signal
}
