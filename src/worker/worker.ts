/** Claims runs while it has free slots, keeps its leases, and hands back what it cannot finish when it stops. */
import type { Logger } from 'pino'
import { v7 as uuid } from 'uuid'
import { ContextVersions } from '../domain/browser-contexts/context-versions.ts'
import type { Claim, Lease } from '../domain/runs/claim.ts'
import { RunQueue } from '../domain/runs/run-queue.ts'
import { noRetry } from '../domain/runs/run-state.ts'
import { loadSecondsMax as defaultLoadSecondsMax, type Workflow } from '../domain/workflows/workflow.ts'
import { Workflows } from '../domain/workflows/workflows.ts'
import { Maintenance } from '../maintenance/maintenance.ts'
import type { Encryption } from '../storage/encryption.ts'
import type { Store } from '../storage/store.ts'
import { Attempt, type AttemptDependencies } from './attempt.ts'
import { BrowserHost } from './browser/browser-host.ts'
import { ExecutorPool } from './executor-pool.ts'
import type { ExecutorProcess } from './executor-process.ts'
import { Heartbeat } from './presence.ts'
import { untilAvailable } from './reporter.ts'
import { type AttemptWatch, watchedBy } from './watch.ts'
import type { WorkerOptions } from './worker-options.ts'

export class Worker {
  readonly #id = uuid()
  readonly #store: Store
  readonly #encryption: Encryption
  readonly #options: WorkerOptions
  readonly #log: Logger
  readonly #queue: RunQueue
  readonly #presence: Heartbeat
  readonly #upkeep: Maintenance
  readonly #pool: ExecutorPool
  readonly #browser: BrowserHost
  /** Attempts that have their executor, by run and attempt. */
  readonly #attempts = new Map<string, Attempt>()
  /** What has been claimed, until it is settled, and when it is. */
  readonly #claims = new Map<Claim, Promise<unknown>>()
  readonly #onFatal: (error: unknown) => void
  #parts: AttemptDependencies | undefined
  #stopListening: (() => void)[] = []
  #renewal: NodeJS.Timeout | undefined
  #claiming: Promise<void> | undefined
  #isClaiming = false
  #again = false
  #stopping = false
  /** From now on attempts are handed back, those that are about to begin among them. */
  #handingBack = false

  /** @param onFatal told when no run can be executed any more; the process is to be replaced then. */
  constructor(
    store: Store,
    encryption: Encryption,
    options: WorkerOptions,
    log: Logger,
    onFatal: (error: unknown) => void,
  ) {
    this.#onFatal = onFatal
    this.#encryption = encryption
    this.#store = store
    this.#options = options
    this.#log = log.child({ workerId: this.#id })
    const { accountConcurrency = 0, observer } = options
    this.#queue = new RunQueue(store, { accountConcurrency, ...(observer && { observer }) })
    const { slots, leaseSeconds } = options
    this.#presence = new Heartbeat(store, { id: this.#id, slots, leaseSeconds }, this.#log)
    const failed = (error: unknown) => this.#log.warn({ err: error }, 'upkeep failed; it is tried again')
    this.#upkeep = new Maintenance(store, options.retention, failed, Date.now, observer)
    const { workflowsDirectory: directory, memoryMegabytesMax, loadSecondsMax = defaultLoadSecondsMax } = options
    this.#browser = new BrowserHost(options.browser, this.#log)
    this.#pool = new ExecutorPool({ directory, memoryMegabytesMax, loadSecondsMax }, options.slots)
  }

  /** Resolves with its workflows when it is ready to execute runs. */
  async start(): Promise<readonly Workflow[]> {
    const workflows = await this.#openPool()
    const { abortGraceSeconds, contextVersionsKept } = this.#options
    const versions = new ContextVersions(this.#store, this.#encryption, contextVersionsKept)
    const browser = { host: this.#browser, versions }
    this.#parts = { queue: this.#queue, encryption: this.#encryption, workflows, abortGraceSeconds, browser }
    this.#stopListening = [
      this.#store.listen('queue', () => this.#wake()),
      this.#store.listen('cancellations', () => this.#endCancelled()),
    ]
    this.#upkeep.start()
    void this.#presence.announce()
    this.#renewal = setInterval(() => this.#renew(), (this.#options.leaseSeconds * 1000) / 3)
    this.#wake()
    this.#log.info({ workflows: workflows.list().map(({ id }) => id), slots: this.#options.slots }, 'worker ready')
    return workflows.list()
  }

  /** Claims nothing more, lets attempts finish for `graceSeconds`, and hands the others back. */
  async stop(graceSeconds: number): Promise<void> {
    this.#stopping = true
    for (const stop of this.#stopListening) stop()
    await this.#upkeep.stop()
    await this.#claiming
    const timer = setTimeout(() => {
      this.#handingBack = true
      for (const attempt of this.#attempts.values()) attempt.interrupt('workerStopped')
    }, graceSeconds * 1000)
    await Promise.all(this.#claims.values())
    clearTimeout(timer)
    clearInterval(this.#renewal)
    this.#pool.close()
    await this.#browser.close()
    await this.#presence.leave()
    this.#log.info('worker stopped')
  }

  async #openPool(): Promise<Workflows> {
    try {
      return new Workflows(await this.#pool.open())
    } catch (error) {
      this.#pool.close()
      throw error
    }
  }

  #wake(): void {
    this.#again = true
    if (!this.#isClaiming) this.#claiming = this.#claim()
  }

  async #claim(): Promise<void> {
    this.#isClaiming = true
    const parts = this.#parts
    while (this.#again && !this.#stopping && parts) {
      this.#again = false
      const slots = this.#options.slots - this.#claims.size
      if (slots === 0) break
      try {
        const claims = await this.#queue.claim(this.#id, parts.workflows.list(), slots, this.#options.leaseSeconds)
        for (const claim of claims) this.#begin(claim, parts)
      } catch (error) {
        // The store is unavailable; the next ring of the bell tries again.
        this.#log.warn({ err: error }, 'claiming failed; it is tried again')
      }
    }
    // In the turn of the last look at `#again`: a wake-up between the two would be slept through.
    this.#isClaiming = false
  }

  #begin(claim: Claim, parts: AttemptDependencies): void {
    const key = keyOf(claim)
    const watch = watchedBy(this.#options.watches ?? [], claim)
    const log = this.#log.child({ runId: claim.runId, workflowId: claim.workflowId, attempt: claim.attempt })
    const ended: Promise<unknown> = watch
      .within(() => this.#execute(claim, parts, watch))
      .catch((error) => {
        log.error({ err: error }, 'the attempt was not carried through')
        return false
      })
      .then(async (settled) => settled || this.#letGo(claim))
      .catch((error: unknown) => log.error({ err: error }, 'the attempt was not ended'))
      .finally(() => {
        this.#attempts.delete(key)
        this.#claims.delete(claim)
        this.#wake()
      })
    this.#claims.set(claim, ended)
  }

  /** Returns whether the outcome is written down. */
  async #execute(claim: Claim, parts: AttemptDependencies, watch: Required<AttemptWatch>): Promise<boolean> {
    let executor: ExecutorProcess | undefined
    let attempt: Attempt | undefined
    try {
      executor = await this.#takeExecutor(claim)
      attempt = new Attempt(parts, claim, executor, watch)
      this.#attempts.set(keyOf(claim), attempt)
      const executed = attempt.execute()
      if (this.#handingBack) attempt.interrupt('workerStopped')
      const [settled] = await Promise.all([executed, this.#endCancelled()])
      return settled
    } finally {
      if (executor) this.#pool.release(executor, attempt?.reusable ?? false)
      watch.ended(attempt?.end)
    }
  }

  /**
   * Ends an attempt whose outcome could not be written down, so that the run need not wait until its lease has run out.
   * A lease that is lost already is not touched.
   */
  #letGo(claim: Claim): Promise<boolean> {
    return untilAvailable(() => this.#queue.complete(claim, { kind: 'workerLost' }, noRetry))
  }

  async #takeExecutor(claim: Claim): Promise<ExecutorProcess> {
    try {
      return await this.#pool.take()
    } catch (error) {
      this.#stopping = true
      await this.#queue.complete(claim, { kind: 'workerStopped' }, noRetry)
      this.#onFatal(error)
      throw error
    }
  }

  async #renew(): Promise<void> {
    // In the same turn, so that both share a commit.
    void this.#presence.announce()
    if (this.#claims.size === 0) return
    // What is claimed while the leases are renewed is not among those that come back.
    const before = [...this.#attempts]
    try {
      const leases = [...this.#claims.keys()]
      const held = new Set((await this.#queue.renew(this.#id, leases, this.#options.leaseSeconds)).map(keyOf))
      for (const [key, attempt] of before) if (!held.has(key)) attempt.interrupt('leaseLost')
      await this.#endCancelled()
    } catch (error) {
      this.#log.warn({ err: error }, 'leases could not be renewed; it is tried again')
    }
  }

  async #endCancelled(): Promise<void> {
    if (this.#attempts.size === 0) return
    try {
      for (const lease of await this.#queue.cancelRequested(this.#id)) {
        this.#attempts.get(keyOf(lease))?.interrupt('cancelled')
      }
    } catch (error) {
      this.#log.warn({ err: error }, 'cancellations could not be read; it is tried again')
    }
  }
}

function keyOf({ runId, attempt }: Lease): string {
  return `${runId}/${attempt}`
}
