/** Renews a worker's leases, and interrupts attempts whose lease is lost or whose run is cancelled. */
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import type { Lease } from '../domain/runs/attempts.ts'
import type { RunQueue } from '../domain/runs/run-queue.ts'
import type { Workers } from '../domain/runs/workers.ts'
import type { Attempt } from './attempt.ts'

interface WorkerLeasesDependencies {
  queue: RunQueue
  workers: Workers
  log: Logger
}

interface WorkerIdentity {
  id: string
  slots: number
  leaseSeconds: number
}

export class WorkerLeases {
  readonly #dependencies: WorkerLeasesDependencies
  readonly #worker: WorkerIdentity
  readonly #leases: () => readonly Lease[]
  readonly #startedAt = Date.now()
  /** Attempts that have an executor, by run and attempt number. */
  readonly #attempts = new Map<string, Attempt>()
  /** Leases on cancelled runs. Their attempts may not have an executor yet. */
  readonly #cancelled = new Set<string>()
  #timer: NodeJS.Timeout | undefined
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
  }

  /** Removes the worker from the list of workers. */
  async signOff(): Promise<void> {
    const { workers, log } = this.#dependencies
    await workers.leave(this.#worker.id).catch((error: unknown) => {
      log.warn({ err: error }, 'worker sign-off failed; it counts as alive until its lease ends')
    })
  }

  /** Interrupts the attempt if its lease is lost or its run is cancelled, also when that was before this call. */
  watch(lease: Lease, attempt: Attempt): void {
    this.#attempts.set(keyOf(lease), attempt)
    if (this.#interrupting) attempt.interrupt('workerStopped')
    if (this.#cancelled.has(keyOf(lease))) attempt.interrupt('cancelled')
  }

  unwatch(lease: Lease): void {
    this.#attempts.delete(keyOf(lease))
  }

  /** Call it when the attempt of the lease is completed. */
  forget(lease: Lease): void {
    this.#cancelled.delete(keyOf(lease))
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
    // Attempts claimed during the renewal are not in its result.
    const before = [...this.#attempts]
    try {
      const renewed = new Set((await queue.renew(id, leases, leaseSeconds)).map(keyOf))
      for (const [key, attempt] of before) if (!renewed.has(key)) attempt.interrupt('leaseLost')
      await this.interruptCancelled()
    } catch (error) {
      log.warn({ err: error }, 'lease renewal failed; retrying')
    }
  }
}

function keyOf({ runId, attempt }: Lease): string {
  return `${runId}/${attempt}`
}
