/** Claims runs while it has free slots, renews its leases, and returns unfinished runs to the queue when it stops. */
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import type { StorageUsage } from '../domain/accounts/storage-usage.ts'
import type { ContextVersions } from '../domain/browser-contexts/context-versions.ts'
import type { Claim, Lease } from '../domain/runs/attempts.ts'
import type { RunQueue } from '../domain/runs/run-queue.ts'
import { noRetry } from '../domain/runs/run-state.ts'
import type { Workers } from '../domain/runs/workers.ts'
import type { Workflow } from '../domain/workflows/workflow.ts'
import { Workflows } from '../domain/workflows/workflows.ts'
import type { Maintenance } from '../maintenance/maintenance.ts'
import type { Encryption } from '../storage/encryption.ts'
import type { Store } from '../storage/store.ts'
import { Attempt, type AttemptDependencies } from './attempt.ts'
import { type AttemptObserver, type ObserveAttempt, observeWithAll } from './attempt-observer.ts'
import type { BrowserHost } from './browser/browser-host.ts'
import type { ExecutorPool } from './executor-pool.ts'
import type { ExecutorProcess } from './executor-process.ts'
import { retryUntilAvailable } from './reporter.ts'

interface WorkerDependencies {
  store: Store
  queue: RunQueue
  workers: Workers
  maintenance: Maintenance
  encryption: Encryption
  contextVersions: ContextVersions
  usage: StorageUsage
  executors: ExecutorPool
  browser: BrowserHost
  observers: readonly ObserveAttempt[]
  log: Logger
  /** Called when the worker cannot execute runs any more. Its process must be replaced. */
  onFatal(error: unknown): void
}

export interface WorkerSettings {
  id: string
  /** How many attempts it executes at the same time. */
  slots: number
  /** A worker without a heartbeat for this long has lost its runs. */
  leaseSeconds: number
  abortGraceSeconds: number
}

export class Worker {
  readonly #dependencies: WorkerDependencies
  readonly #settings: WorkerSettings
  readonly #queue: RunQueue
  readonly #log: Logger
  readonly #startedAt = Date.now()
  /** Attempts that have an executor, by run and attempt number. */
  readonly #attempts = new Map<string, Attempt>()
  /** Leases on cancelled runs. Their attempts may not have an executor yet. */
  readonly #cancelled = new Set<string>()
  /** Claims whose attempts are not completed, each with a promise of its completion. */
  readonly #claims = new Map<Claim, Promise<unknown>>()
  /** Claims that take a slot: those that have, or wait for, an executor. */
  readonly #executing = new Set<Claim>()
  #attemptDependencies: AttemptDependencies | undefined
  #unsubscribe: (() => void)[] = []
  #heartbeatTimer: NodeJS.Timeout | undefined
  #claiming: Promise<void> | undefined
  #isClaiming = false
  #claimAgain = false
  #stopping = false
  /** The grace period of a stop is over: attempts that begin now are interrupted at once. */
  #interrupting = false

  constructor(dependencies: WorkerDependencies, settings: WorkerSettings) {
    this.#dependencies = dependencies
    this.#settings = settings
    this.#queue = dependencies.queue
    this.#log = dependencies.log
  }

  /** Resolves with the loaded workflows once the worker claims runs. */
  async start(): Promise<readonly Workflow[]> {
    const { store, encryption, contextVersions: versions, browser: host, maintenance, usage } = this.#dependencies
    const workflows = await this.#loadWorkflows()
    const { abortGraceSeconds, leaseSeconds, slots } = this.#settings
    const browser = { host, versions, usage }
    this.#attemptDependencies = { queue: this.#queue, encryption, workflows, abortGraceSeconds, browser, usage }
    this.#unsubscribe = [
      store.listen('queue', () => this.#wake()),
      store.listen('cancellations', () => this.#interruptCancelled()),
    ]
    maintenance.start()
    void this.#heartbeat()
    this.#heartbeatTimer = setInterval(() => this.#renew(), (leaseSeconds * 1000) / 3)
    this.#wake()
    this.#log.info({ workflows: workflows.list().map(({ id }) => id), slots }, 'worker ready')
    return workflows.list()
  }

  /** Claims no more runs, lets attempts finish for `graceSeconds`, and returns the others to the queue. */
  async stop(graceSeconds: number): Promise<void> {
    const { workers, maintenance, executors, browser } = this.#dependencies
    this.#stopping = true
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    await maintenance.stop()
    await this.#claiming
    const timer = setTimeout(() => {
      this.#interrupting = true
      for (const attempt of this.#attempts.values()) attempt.interrupt('workerStopped')
    }, graceSeconds * 1000)
    await Promise.all(this.#claims.values())
    clearTimeout(timer)
    clearInterval(this.#heartbeatTimer)
    executors.close()
    await browser.close()
    await workers.leave(this.#settings.id).catch((error: unknown) => {
      this.#log.warn({ err: error }, 'worker sign-off failed; it counts as alive until its lease ends')
    })
    this.#log.info('worker stopped')
  }

  async #loadWorkflows(): Promise<Workflows> {
    const { executors } = this.#dependencies
    try {
      return new Workflows(await executors.open())
    } catch (error) {
      executors.close()
      throw error
    }
  }

  #wake(): void {
    this.#claimAgain = true
    if (!this.#isClaiming) this.#claiming = this.#claim()
  }

  async #claim(): Promise<void> {
    this.#isClaiming = true
    const dependencies = this.#attemptDependencies
    const { id, slots, leaseSeconds } = this.#settings
    while (this.#claimAgain && !this.#stopping && dependencies) {
      this.#claimAgain = false
      const free = slots - this.#executing.size
      if (free === 0) break
      try {
        const claims = await this.#queue.claim(id, dependencies.workflows.list(), free, leaseSeconds)
        for (const claim of claims) this.#begin(claim, dependencies)
      } catch (error) {
        this.#log.warn({ err: error }, 'claiming runs failed; retrying at the next notification')
      }
    }
    // Synchronously after the last test of #claimAgain: a wake-up between the two would be lost.
    this.#isClaiming = false
  }

  #begin(claim: Claim, dependencies: AttemptDependencies): void {
    const observer = observeWithAll(this.#dependencies.observers, claim)
    this.#executing.add(claim)
    const log = this.#log.child({ runId: claim.runId, workflowId: claim.workflowId, attempt: claim.attempt })
    const ended: Promise<unknown> = observer
      .within(() => this.#execute(claim, dependencies, observer))
      .catch((error) => {
        log.error({ err: error }, 'attempt failed in the worker')
        return false
      })
      .then(async (completed) => completed || this.#release(claim))
      .catch((error: unknown) => log.error({ err: error }, 'attempt could not be ended'))
      .finally(() => {
        this.#attempts.delete(keyOf(claim))
        this.#cancelled.delete(keyOf(claim))
        this.#claims.delete(claim)
      })
    this.#claims.set(claim, ended)
  }

  /** Returns whether the outcome is stored. */
  async #execute(
    claim: Claim,
    dependencies: AttemptDependencies,
    observer: Required<AttemptObserver>,
  ): Promise<boolean> {
    let executor: ExecutorProcess | undefined
    let attempt: Attempt | undefined
    // Before the outcome is stored, so that the claim of the next run shares its commit.
    const freeSlot = () => {
      if (!this.#executing.delete(claim)) return
      if (executor) this.#dependencies.executors.release(executor, attempt?.reusable ?? false)
      this.#wake()
    }
    try {
      executor = await this.#acquireExecutor(claim)
      attempt = new Attempt(dependencies, claim, executor, observer)
      this.#attempts.set(keyOf(claim), attempt)
      const executed = attempt.execute(freeSlot)
      if (this.#interrupting) attempt.interrupt('workerStopped')
      if (this.#cancelled.has(keyOf(claim))) attempt.interrupt('cancelled')
      return await executed
    } finally {
      freeSlot()
      observer.ended(attempt?.end)
    }
  }

  /** Ends an attempt without outcome, so that its run need not wait for the lease to expire. A lost lease stays lost. */
  #release(claim: Claim): Promise<boolean> {
    return retryUntilAvailable(() => this.#queue.complete(claim, { kind: 'workerLost' }, noRetry))
  }

  async #acquireExecutor(claim: Claim): Promise<ExecutorProcess> {
    try {
      return await this.#dependencies.executors.acquire(claim.accountId)
    } catch (error) {
      this.#stopping = true
      try {
        await this.#queue.complete(claim, { kind: 'workerStopped' }, noRetry)
      } finally {
        this.#dependencies.onFatal(error)
      }
      throw error
    }
  }

  /** Extends this worker's entry in the list of workers, which is informational: runs depend on their leases only. */
  async #heartbeat(): Promise<void> {
    const { id, slots, leaseSeconds } = this.#settings
    const worker = { id, host: hostname(), slots, startedAt: this.#startedAt }
    await this.#dependencies.workers.announce(worker, leaseSeconds).catch((error: unknown) => {
      this.#log.warn({ err: error }, 'worker heartbeat failed; retrying')
    })
  }

  async #renew(): Promise<void> {
    // Not awaited, so that it shares a commit with the renewal.
    void this.#heartbeat()
    if (this.#claims.size === 0) return
    // Attempts claimed during the renewal are not in its result.
    const before = [...this.#attempts]
    try {
      const leases = [...this.#claims.keys()]
      const { id, leaseSeconds } = this.#settings
      const renewed = new Set((await this.#queue.renew(id, leases, leaseSeconds)).map(keyOf))
      for (const [key, attempt] of before) if (!renewed.has(key)) attempt.interrupt('leaseLost')
      await this.#interruptCancelled()
    } catch (error) {
      this.#log.warn({ err: error }, 'lease renewal failed; retrying')
    }
  }

  async #interruptCancelled(): Promise<void> {
    if (this.#claims.size === 0 && !this.#isClaiming) return
    try {
      for (const lease of await this.#queue.cancelRequested(this.#settings.id)) {
        this.#cancelled.add(keyOf(lease))
        this.#attempts.get(keyOf(lease))?.interrupt('cancelled')
      }
    } catch (error) {
      this.#log.warn({ err: error }, 'reading cancellations failed; retrying')
    }
  }
}

function keyOf({ runId, attempt }: Lease): string {
  return `${runId}/${attempt}`
}
