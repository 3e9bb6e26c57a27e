/**
 * Moves the clock of a world from due time to due time, and lets each part of the service do what is due then. Nothing in a
 * world happens by a timer, so that the same requests at the same times lead to the same state.
 */
import { setTimeout as delay, setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { WebhookDispatcher } from '../domain/webhooks/webhook-dispatcher.ts'
import type { Maintenance } from '../maintenance/maintenance.ts'
import type { DueTimeName, DueTimes } from '../storage/runs/run-maintenance.ts'
import type { MemoryStore } from '../storage/sqlite/memory-store.ts'
import type { ScriptedWorker } from './scripted-worker.ts'
import { systemNow, type VirtualClock } from './virtual-clock.ts'

export interface DriverDependencies {
  clock: VirtualClock
  store: MemoryStore
  maintenance: Maintenance
  webhooks: WebhookDispatcher
  worker: ScriptedWorker
  /** An error while the clock ran. */
  onError(error: unknown): void
}

/** What happens next without a request. */
export interface NextDue {
  at: number
  kind: DueKind
}

const dueKinds = {
  delay: 'A delayed run starts',
  wait: 'A sleep or the time for an answer ends',
  permit: 'A throttle permits a start',
  expiry: 'A run expires',
  lease: 'The lease of an attempt ends',
  idempotencyKey: 'An idempotency key expires',
  schedule: 'A schedule queues a run',
  sessionCheck: 'It is checked whether a browser context is signed in',
  sessionWait: 'The time for a sign-in ends',
  bulkAction: 'A bulk action continues',
  delivery: 'A webhook is sent',
  attempt: 'An attempt goes on or ends',
} as const satisfies Record<Exclude<DueTimeName, 'worker'> | 'attempt', string>
export type DueKind = keyof typeof dueKinds

/** What other parts than maintenance do. The worker of a simulator does not die. */
const ofOthers: ReadonlySet<string> = new Set<keyof DueTimes>(['hasReady', 'delivery', 'worker'])

/** Simulated seconds in a second. */
export const speedMax = 1_000_000

/** Between two steps of a clock that runs. */
const tickMilliseconds = 20

/** What is old is erased once in this time, and at the end of an advance. */
const purgeMilliseconds = 24 * 60 * 60 * 1000
/** At the end of an advance, unless less time has passed. */
const finalPurgeMilliseconds = 60_000

/** The clock waits for a receiver of webhooks, which cannot wait for the clock. */
export class ClockWaits extends Error {}

/** How long another call waits for receivers before it is refused. */
const receiverMilliseconds = 1000
const unref = { ref: false }

/** Passes at one time, after which what is still due waits for the next one. */
const passesMax = 10_000

/** Between two looks for requests during an advance. */
const stepsBetweenRequests = 20

export class Driver {
  readonly #dependencies: DriverDependencies
  #due: { commits: number; times: DueTimes } | undefined
  #purgedAt: number
  #last: Promise<unknown> = Promise.resolve()
  #speed = 0
  #timer: NodeJS.Timeout | undefined
  #isTicking = false
  #isStopped = false
  /** Resolves when the requests to receivers of webhooks that are under way have ended. */
  #sending: Promise<boolean> | undefined
  /** The times of the machine and of the world at which the speed was set. */
  #since = { system: 0, world: 0 }

  constructor(dependencies: DriverDependencies) {
    this.#dependencies = dependencies
    this.#purgedAt = dependencies.clock.now()
  }

  get speed(): number {
    return this.#speed
  }

  /** Simulated seconds in a second; 0: the clock stands still. */
  setSpeed(speed: number): void {
    this.#speed = speed
    this.#since = { system: systemNow(), world: this.#dependencies.clock.now() }
    clearInterval(this.#timer)
    if (speed > 0) this.#timer = setInterval(() => this.#tick().catch(this.#dependencies.onError), tickMilliseconds)
  }

  /**
   * Does everything that is due until `to`, in its order. A call during another one follows it.
   *
   * @throws {ClockWaits} instead of waiting for itself: a receiver that advances the clock has not responded yet. Other callers
   * look the same, so each waits a while for the receivers.
   */
  async advanceTo(to: number): Promise<void> {
    if (this.#sending && this.#speed === 0) {
      const isSent = await Promise.race([this.#sending, delay(receiverMilliseconds, false, unref)])
      if (!isSent)
        throw new ClockWaits('The clock waits for the response of a webhook receiver: advance it after that.')
    }
    return this.exclusively(async () => {
      if (to < this.#dependencies.clock.now()) return
      await this.#advance(to)
      if (this.#speed > 0) this.#since = { system: systemNow(), world: to }
    })
  }

  /** Runs `work` while the world stands still. */
  exclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work)
    this.#last = result.catch(() => {})
    return result
  }

  /** What is due next, if anything is. */
  async next(): Promise<NextDue | undefined> {
    return this.#next(await this.#readDue(), Number.NEGATIVE_INFINITY)
  }

  /** An advance ends at the time that it has reached. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.setSpeed(0)
    await this.#last
  }

  async #tick(): Promise<void> {
    if (this.#isTicking) return
    this.#isTicking = true
    const { system, world } = this.#since
    const speed = this.#speed
    await this.exclusively(async () => {
      if (speed > 0 && speed === this.#speed && world === this.#since.world)
        await this.#advance(
          Math.max(this.#dependencies.clock.now(), Math.floor(world + (systemNow() - system) * speed)),
        )
    }).finally(() => {
      this.#isTicking = false
    })
  }

  async #advance(to: number): Promise<void> {
    const { clock, worker } = this.#dependencies
    await this.#doDue()
    for (let steps = 1; ; steps += 1) {
      // What is overdue and still there cannot change yet.
      const next = this.#next(await this.#readDue(), clock.now())
      if (this.#isStopped) return
      if (!next || next.at > to) break
      clock.set(next.at)
      await this.#doDue()
      if (clock.now() - this.#purgedAt >= purgeMilliseconds) await this.#purge(false)
      if (steps % stepsBetweenRequests === 0) await yieldToEventLoop()
    }
    const hasPassed = to > clock.now()
    clock.set(to)
    await worker.flush()
    if (hasPassed && to - this.#purgedAt >= finalPurgeMilliseconds) await this.#purge(true)
  }

  /** Repeats until nothing more is due at the present time. */
  async #doDue(): Promise<void> {
    const { clock, store, worker, maintenance, webhooks } = this.#dependencies
    const now = clock.now()
    for (let pass = 0; pass < passesMax; pass += 1) {
      const before = store.commits
      if (store.takeNotified().has('cancellations')) await worker.interruptCancelled()
      const due = await this.#readDue()
      const isDue = (at: number | null) => at !== null && at <= now
      // What waits for an event is 1, which is a time in the past.
      if (Object.entries(due).some(([name, at]) => !ofOthers.has(name) && isDue(at)))
        await maintenance.once({ isPurging: false, isMeasuring: false })
      if ((await this.#readDue()).hasReady) await worker.claim()
      if (worker.due <= now) await worker.work()
      if (isDue((await this.#readDue()).delivery)) {
        const sending = webhooks.once().then(() => webhooks.idle())
        const ended = () => {
          this.#sending = undefined
          return true
        }
        this.#sending = sending.then(ended, ended)
        await sending
      }
      if (store.commits === before && worker.due > now) return
    }
  }

  /**
   * Erases what is old, and adds finished runs to the statistics.
   *
   * @param isMeasuring whether what accounts store is measured: the time that this takes grows with the number of runs.
   */
  async #purge(isMeasuring: boolean): Promise<void> {
    const { clock, store, maintenance } = this.#dependencies
    this.#purgedAt = clock.now()
    for (let pass = 0; pass < passesMax; pass += 1) {
      const before = store.commits
      await maintenance.once({ isPurging: true, isMeasuring })
      if (store.commits === before) return
    }
  }

  async #readDue(): Promise<DueTimes> {
    const { store, maintenance } = this.#dependencies
    if (this.#due?.commits !== store.commits) this.#due = { commits: store.commits, times: await maintenance.readDue() }
    return this.#due.times
  }

  #next(times: DueTimes, after: number): NextDue | undefined {
    const at = (kind: DueKind) => (kind === 'attempt' ? this.#dependencies.worker.due : times[kind])
    let next: NextDue | undefined
    for (const kind of Object.keys(dueKinds) as DueKind[]) {
      const time = at(kind)
      if (time === null || time === Number.POSITIVE_INFINITY || time <= after) continue
      if (!next || time < next.at) next = { at: time, kind }
    }
    return next
  }
}
