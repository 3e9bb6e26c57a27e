/**
 * Claims runs while it has free slots, executes each by its own deployment, and returns unfinished runs to the queue when
 * it stops.
 */

import { hostname } from 'node:os'
import type { Logger } from 'pino'
import type { ReadValues } from '../domain/account-values/declared-values.ts'
import { DeploymentUnavailable } from '../domain/deployments/deployment-files.ts'
import type { Deployments } from '../domain/deployments/deployments.ts'
import { FileMissing } from '../domain/files/file-of-run.ts'
import type { Claim, Claimable, Lease } from '../domain/queue/attempts.ts'
import type { ClaimableWorkflows, OwnAttempts } from '../domain/queue/claim.ts'
import type { RunQueue } from '../domain/queue/run-queue.ts'
import type { Workers } from '../domain/queue/workers.ts'
import { noRetry, type Outcome, type RetryPolicy } from '../domain/runs/run-state.ts'
import type { Workflows } from '../domain/workflows/workflows.ts'
import type { Maintenance } from '../maintenance/maintenance.ts'
import type { ValueEncryption } from '../storage/encryption.ts'
import type { Store } from '../storage/store.ts'
import { Attempt, type AttemptDependencies, type AttemptQueue, type CallerSlots } from './attempt/attempt.ts'
import type { AttemptBrowserDependencies } from './attempt/attempt-browser.ts'
import type { AttemptFiles, PreparedFiles } from './attempt/attempt-files.ts'
import {
  type AttemptEnd,
  type AttemptObserver,
  type ObserveAttempt,
  observeWithAll,
} from './attempt/attempt-observer.ts'
import { retryUntilAvailable } from './attempt/reporter.ts'
import type { BrowserHost } from './browser/browser-host.ts'
import { type Execution, type Executors, WorkflowNotLoaded } from './executors/executors.ts'
import { canInspectProcesses } from './executors/process-memory.ts'
import type { LiveViewSenders } from './live-view/live-view-senders.ts'
import { Slots } from './slots.ts'

const noProcesses =
  'no /proc: WORKFLOW_MEMORY_MB limits the heap of workflows only, and processes that they detach are not found'

/** Where a worker gets its runs: the queue, or the service over HTTP. */
export type WorkerQueue = AttemptQueue &
  Pick<RunQueue, 'claim' | 'renew' | 'cancelRequested' | 'handBack' | 'waitForValue'>

export interface WorkerDependencies {
  store: Pick<Store, 'listen'>
  queue: WorkerQueue
  workers: Pick<Workers, 'announce' | 'leave'>
  maintenance: Pick<Maintenance, 'start' | 'stop'>
  encryption: ValueEncryption
  runContexts: AttemptBrowserDependencies['contexts']
  usage: AttemptDependencies['usage']
  files: Pick<AttemptFiles, 'prepare' | 'close'>
  /** What the attempt gets of its account. */
  readDeclared(claim: Claim, workflows: Workflows): Promise<ReadValues>
  deployments: Pick<Deployments, 'listAll'> & { claimable(): ClaimableWorkflows }
  executors: Executors
  browser: Pick<BrowserHost, 'acquire' | 'release' | 'close'>
  liveViews: Pick<LiveViewSenders, 'add' | 'remove' | 'start' | 'stop'>
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

/** Until a claim that failed is tried again, unless a notification comes first. */
const claimRetryMilliseconds = 1000

/** How long a stop waits for a store that does not take the outcomes of attempts that have ended. */
const storeWaitSeconds = 5

export class Worker {
  readonly #dependencies: WorkerDependencies
  readonly #settings: WorkerSettings
  readonly #queue: WorkerQueue
  readonly #log: Logger
  readonly #leases: WorkerLeases
  /** Claims whose attempts are not completed, each with a promise of its completion. */
  readonly #claims = new Map<Claim, Promise<unknown>>()
  /** Of claims that have, or wait for, an executor. */
  readonly #slots: Slots<Claim>
  #attemptDependencies: AttemptDependencies | undefined
  #unsubscribe: (() => void)[] = []
  #claiming: Promise<void> | undefined
  #isClaiming = false
  #claimAgain = false
  #stopping = false

  constructor(dependencies: WorkerDependencies, settings: WorkerSettings) {
    this.#dependencies = dependencies
    this.#settings = settings
    this.#queue = dependencies.queue
    this.#log = dependencies.log
    this.#slots = new Slots(settings.slots, () => this.#wake())
    this.#leases = new WorkerLeases(dependencies, settings, () => [...this.#claims.keys()])
  }

  /** Resolves once the worker claims runs. It needs no deployment: those that follow serve within a second. */
  async start(): Promise<void> {
    const { store, encryption, runContexts: contexts, browser: host, maintenance, usage } = this.#dependencies
    const { deployments, executors, liveViews } = this.#dependencies
    const { abortGraceSeconds } = this.#settings
    const browser = { host, liveViews, contexts }
    const slots = this.#callerSlots()
    this.#attemptDependencies = { queue: this.#queue, slots, encryption, abortGraceSeconds, browser, usage }
    await executors.open(() => this.#wake())
    this.#unsubscribe = [
      store.listen('queue', () => this.#wake()),
      store.listen('cancellations', () => {
        if (this.#claims.size > 0 || this.#isClaiming) void this.#leases.interruptCancelled()
      }),
    ]
    liveViews.start()
    maintenance.start()
    this.#leases.open()
    this.#wake()
    const workflows = new Set(deployments.listAll().map(({ id }) => id))
    if (!canInspectProcesses()) this.#log.warn(noProcesses)
    this.#log.info({ workflows: [...workflows], slots: this.#settings.slots }, 'worker ready')
  }

  /** The workflows whose runs it claims now, for metrics. */
  workflows(): readonly Claimable[] {
    return this.#dependencies.deployments.listAll()
  }

  /**
   * Claims no more runs, lets attempts finish for `graceSeconds`, and returns the others to the queue. Runs that the store
   * does not take back, because it is unavailable, are retried when their leases end.
   */
  async stop(graceSeconds: number): Promise<void> {
    const { maintenance, executors, browser, liveViews } = this.#dependencies
    this.#stopping = true
    this.#slots.stop()
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    executors.drain()
    await maintenance.stop()
    await this.#claiming
    const timer = setTimeout(() => this.#leases.interruptAll(), graceSeconds * 1000)
    await this.#untilEnded(graceSeconds + this.#settings.abortGraceSeconds + storeWaitSeconds)
    clearTimeout(timer)
    this.#leases.stopRenewing()
    liveViews.stop()
    await executors.close()
    this.#dependencies.files.close()
    await browser.close()
    await this.#leases.signOff()
    this.#log.info('worker stopped')
  }

  /** Resolves when all attempts have ended, and otherwise after `secondsMax`. */
  async #untilEnded(secondsMax: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, secondsMax * 1000)
    })
    const ended = async () => {
      // A called run may start until its caller has ended.
      while (this.#claims.size > 0) await Promise.all(this.#claims.values())
    }
    await Promise.race([ended(), timeout])
    clearTimeout(timer)
    const runs = this.#claims.size
    if (runs > 0) this.#log.warn({ runs }, 'runs could not be returned; they are retried when their leases end')
  }

  #wake(): void {
    this.#claimAgain = true
    if (!this.#isClaiming) this.#claiming = this.#claim()
  }

  async #claim(): Promise<void> {
    this.#isClaiming = true
    const dependencies = this.#attemptDependencies
    const { id, leaseSeconds } = this.#settings
    while (this.#claimAgain && !this.#stopping && dependencies) {
      this.#claimAgain = false
      const free = () => this.#slots.free
      if (free() === 0) break
      try {
        const workflows = this.#dependencies.deployments.claimable()
        const claims = await this.#queue.claim(id, workflows, free, leaseSeconds, this.#own)
        for (const claim of claims) {
          this.#slots.claim(claim)
          void this.#begin(claim, dependencies)
        }
      } catch (error) {
        this.#log.warn({ err: error }, 'claiming runs failed; retrying')
        setTimeout(() => this.#wake(), claimRetryMilliseconds).unref()
      }
    }
    // Synchronously after the last test of #claimAgain: a wake-up between the two would be lost.
    this.#isClaiming = false
  }

  readonly #own: OwnAttempts = {
    ended: () => [...this.#claims.keys()].flatMap((claim) => (this.#slots.has(claim) ? [] : claim.accountId)),
    withinQuantum: () => this.#dependencies.executors.withinQuantum(),
    keeping: () => this.#dependencies.executors.keeping(),
    endQuantum: (accountId) => this.#dependencies.executors.endQuantum(accountId),
  }

  #callerSlots(): CallerSlots {
    const { leaseSeconds } = this.#settings
    const offer = (caller: Claim) => ({
      workflows: this.#dependencies.deployments.claimable(),
      leaseSeconds,
      start: (called: Claim) => {
        const returned = this.#slots.start(caller, called)
        return { ended: this.#begin(called, this.#attemptDependencies as AttemptDependencies), returned }
      },
      keep: () => this.#slots.keep(caller),
    })
    return { offer: (caller) => (this.#slots.offer(caller) ? offer(caller) : undefined) }
  }

  /** Resolves when the attempt has ended. */
  #begin(claim: Claim, dependencies: AttemptDependencies): Promise<unknown> {
    const observer = observeWithAll(this.#dependencies.observers, claim)
    this.#leases.begin(claim)
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
        this.#leases.forget(claim)
        this.#claims.delete(claim)
      })
    this.#claims.set(claim, ended)
    return ended
  }

  /** Returns whether the outcome is stored. */
  async #execute(
    claim: Claim,
    dependencies: AttemptDependencies,
    observer: Required<AttemptObserver>,
  ): Promise<boolean> {
    const { executors } = this.#dependencies
    let files: PreparedFiles | undefined
    let execution: Execution | undefined
    let attempt: Attempt | undefined
    let end: AttemptEnd
    // Before the outcome is stored, so that the claim of the next run shares its commit.
    let isFree = false
    const freeSlot = () => {
      if (isFree) return
      isFree = true
      if (execution) executors.release(execution, attempt?.reusable ?? false)
      this.#slots.end(claim)
    }
    try {
      execution = await executors.acquire(claim).catch((error: unknown) => this.#replace(claim, error))
      const { workflows } = execution
      const read = await retryUntilAvailable(() => this.#dependencies.readDeclared(claim, workflows))
      if (read.kind === 'missing') return await retryUntilAvailable(() => this.#queue.waitForValue(claim, read.wait))
      files = await this.#dependencies.files.prepare(claim, workflows, execution.executor.identity)
      attempt = new Attempt(dependencies, claim, execution, { declared: read.values, files }, observer)
      const executed = attempt.execute(freeSlot)
      this.#leases.watch(claim, attempt)
      return await executed.finally(() => {
        end = attempt?.end
      })
    } catch (error) {
      if (error instanceof DeploymentUnavailable) return await this.#handBack(claim, error)
      const failed = failureOf(error)
      if (!failed) throw error
      end = failed.outcome
      return await retryUntilAvailable(() => this.#queue.complete(claim, failed.outcome, failed.retry))
    } finally {
      freeSlot()
      files?.remove()
      this.#leases.unwatch(claim)
      observer.ended(end)
    }
  }

  /** Another worker may be able to execute the run, or this one later. */
  #handBack(claim: Claim, error: DeploymentUnavailable): Promise<boolean> {
    const { runId, workflowId, deploymentId } = claim
    this.#log.warn({ runId, workflowId, deploymentId, err: error }, 'deployment unavailable; run returned to the queue')
    return retryUntilAvailable(() => this.#queue.handBack(claim, error.message))
  }

  /** Ends an attempt without outcome, so that its run need not wait for the lease to expire. A lost lease stays lost. */
  #release(claim: Claim): Promise<boolean> {
    return retryUntilAvailable(() => this.#queue.complete(claim, { kind: 'workerLost' }, noRetry))
  }

  /** Without processes, the worker cannot execute any run: it returns this one, and its own process must be replaced. */
  async #replace(claim: Claim, error: unknown): Promise<never> {
    if (error instanceof DeploymentUnavailable || error instanceof WorkflowNotLoaded) throw error
    this.#stopping = true
    try {
      await this.#queue.complete(claim, { kind: 'workerStopped' }, noRetry)
    } finally {
      this.#dependencies.onFatal(error)
    }
    throw error
  }
}

/** The outcome of an attempt that could not begin because of its workflow or its run. */
function failureOf(error: unknown): { outcome: Outcome & { kind: 'failed' }; retry: RetryPolicy } | undefined {
  if (error instanceof WorkflowNotLoaded)
    return { outcome: { kind: 'failed', reason: 'workflowExited', error: error.end }, retry: error.retry }
  if (!(error instanceof FileMissing)) return undefined
  const { name, message } = error
  return { outcome: { kind: 'failed', reason: 'workflowFailed', error: { name, message } }, retry: noRetry }
}

// Renews a worker's leases, and interrupts attempts whose lease is lost or has ended, or whose run is cancelled.

/** A timer that fires this late was kept by a process that was stopped: it may still have its leases. */
const stoppedMilliseconds = 100
/** For how long such a process may renew leases that have ended. */
const lastRenewalMilliseconds = 1000

interface WorkerLeasesDependencies {
  queue: WorkerQueue
  workers: Pick<Workers, 'announce' | 'leave'>
  log: Logger
}

interface WorkerIdentity {
  id: string
  slots: number
  leaseSeconds: number
}

class WorkerLeases {
  readonly #dependencies: WorkerLeasesDependencies
  readonly #worker: WorkerIdentity
  readonly #leases: () => readonly Lease[]
  readonly #startedAt = Date.now()
  /** Attempts that have an executor, by run and attempt number. */
  readonly #attempts = new Map<string, Attempt>()
  /** When each lease ends unless it is renewed, by `performance.now()`. */
  readonly #ends = new Map<string, number>()
  /** Leases on cancelled runs. Their attempts may not have an executor yet. */
  readonly #cancelled = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #endTimer: NodeJS.Timeout | undefined
  /** The grace period of a stop is over: attempts that begin now are interrupted at once. */
  #interrupting = false

  /** @param leases the leases that the worker has now. */
  constructor(dependencies: WorkerLeasesDependencies, worker: WorkerIdentity, leases: () => readonly Lease[]) {
    this.#dependencies = dependencies
    this.#worker = worker
    this.#leases = leases
  }

  /** Announces the worker, and renews its leases three times in their duration. */
  open(): void {
    void this.#heartbeat()
    this.#timer = setInterval(() => this.#renew(), (this.#worker.leaseSeconds * 1000) / 3)
  }

  stopRenewing(): void {
    clearInterval(this.#timer)
    clearTimeout(this.#endTimer)
  }

  /** Removes the worker from the list of workers. */
  async signOff(): Promise<void> {
    const { workers, log } = this.#dependencies
    await workers.leave(this.#worker.id).catch((error: unknown) => {
      log.warn({ err: error }, 'worker sign-off failed; it counts as alive until its lease ends')
    })
  }

  /** Call it when a lease begins. */
  begin(lease: Lease & Pick<Claim, 'leaseEnd'>): void {
    this.#ends.set(keyOf(lease), lease.leaseEnd ?? performance.now() + this.#worker.leaseSeconds * 1000)
  }

  /** Interrupts the attempt if its lease is lost or its run is cancelled, also when that was before this call. */
  watch(lease: Lease, attempt: Attempt): void {
    this.#attempts.set(keyOf(lease), attempt)
    if (this.#interrupting) attempt.interrupt('workerStopped')
    if (this.#cancelled.has(keyOf(lease))) attempt.interrupt('cancelled')
    this.#watchEnds()
  }

  unwatch(lease: Lease): void {
    this.#attempts.delete(keyOf(lease))
  }

  /** Call it when the attempt of the lease is completed. */
  forget(lease: Lease): void {
    this.#cancelled.delete(keyOf(lease))
    this.#ends.delete(keyOf(lease))
  }

  /** Interrupts all attempts because the worker stops, and those that begin later. */
  interruptAll(): void {
    this.#interrupting = true
    for (const attempt of this.#attempts.values()) attempt.interrupt('workerStopped')
  }

  async interruptCancelled(): Promise<void> {
    const { queue, log } = this.#dependencies
    try {
      for (const lease of await queue.cancelRequested(this.#worker.id)) {
        this.#cancelled.add(keyOf(lease))
        this.#attempts.get(keyOf(lease))?.interrupt('cancelled')
      }
    } catch (error) {
      log.warn({ err: error }, 'reading cancellations failed; retrying')
    }
  }

  /** Extends this worker's entry in the list of workers, which is informational: runs depend on their leases only. */
  async #heartbeat(): Promise<void> {
    const { workers, log } = this.#dependencies
    const { id, slots, leaseSeconds } = this.#worker
    const worker = { id, host: hostname(), slots, startedAt: this.#startedAt }
    await workers.announce(worker, leaseSeconds).catch((error: unknown) => {
      log.warn({ err: error }, 'worker heartbeat failed; retrying')
    })
  }

  async #renew(): Promise<void> {
    // Not awaited, so that it shares a commit with the renewal.
    void this.#heartbeat()
    const leases = this.#leases()
    if (leases.length === 0) return
    const { queue, log } = this.#dependencies
    const { id, leaseSeconds } = this.#worker
    const askedAt = performance.now()
    // Attempts claimed during the renewal are not in its result.
    const before = [...this.#attempts.keys()]
    try {
      const renewed = new Set((await queue.renew(id, leases, leaseSeconds)).map(keyOf))
      const end = askedAt + leaseSeconds * 1000
      for (const key of renewed) if (this.#endOf(key) < end) this.#ends.set(key, end)
      this.#watchEnds()
      for (const key of before) if (!renewed.has(key)) this.#interruptLost(key)
      await this.interruptCancelled()
    } catch (error) {
      log.warn({ err: error }, 'lease renewal failed; retrying')
    }
  }

  /** Interrupts attempts whose lease ends without an answer to its renewal: another worker may execute their runs. */
  #watchEnds(extraMilliseconds = 0): void {
    clearTimeout(this.#endTimer)
    const first = Math.min(...[...this.#attempts.keys()].map((key) => this.#endOf(key))) + extraMilliseconds
    if (first === Number.POSITIVE_INFINITY) return
    const due = Math.max(first, performance.now())
    this.#endTimer = setTimeout(() => {
      const wasStopped = performance.now() - due > stoppedMilliseconds
      if (wasStopped && extraMilliseconds === 0)
        return this.#watchEnds(performance.now() - first + lastRenewalMilliseconds)
      for (const key of this.#attempts.keys()) if (this.#endOf(key) <= performance.now()) this.#interruptLost(key)
      this.#watchEnds()
    }, due - performance.now())
  }

  #endOf(key: string): number {
    return this.#ends.get(key) ?? Number.POSITIVE_INFINITY
  }

  #interruptLost(key: string): void {
    const attempt = this.#attempts.get(key)
    // An attempt that stores its outcome gives its lease back.
    if (!attempt || attempt.hasEnded) return
    this.#dependencies.log.warn({ lease: key }, 'lease lost; attempt stopped')
    this.#ends.delete(key)
    attempt.interrupt('leaseLost')
  }
}

function keyOf({ runId, attempt }: Lease): string {
  return `${runId}/${attempt}`
}
