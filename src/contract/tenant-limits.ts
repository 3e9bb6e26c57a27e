/**
 * Bounds what one tenant takes from the others: requests in flight, bytes of large bodies and responses in memory, and
 * time on the event loop. Requests with small bodies and responses are only counted.
 */
import type { ServerResponse } from 'node:http'
import { ClientGone, largeBytesMin } from './body.ts'
import { Problem } from './problem.ts'

export const tenantLimits = {
  /** Requests of a tenant in flight, event streams included. */
  requestsMax: 1000,
  /** Bytes of a tenant's large bodies and responses in flight. A single one may be larger. */
  largeBytesMax: 24 * 1024 * 1024,
  /** How long a large body or response waits for others before it is refused. */
  waitMillisecondsMax: 10_000,
  /** Between two large requests, the process serves other tenants for this many times the duration of the first. */
  pauseFactor: 4,
  pauseMillisecondsMax: 2000,
  /** Without a request of another tenant in this time, there is no pause. */
  othersMilliseconds: 1000,
}

type Limits = typeof tenantLimits

interface Tenant {
  name: string
  requests: number
  /** Bytes of large bodies and responses. */
  bytes: number
  waiting: Waiter[]
}

interface Waiter {
  bytes: number
  proceed(): void
}

/** Resolves when granted; `undefined` when granted at once. @throws {Problem | ClientGone} */
type Granted = Promise<void> | undefined

export type Reserve = (bytes: number) => Granted

/** For one process: all its surfaces share the limits. */
export class TenantLimits {
  readonly limits: Limits
  readonly processing: ProcessingLock
  readonly #tenants = new Map<string, Tenant>()

  constructor(limits: Partial<Limits> = {}) {
    this.limits = { ...tenantLimits, ...limits }
    this.processing = new ProcessingLock(this.limits)
  }

  /** Counts a request until its response has left the process. @throws {Problem} when the tenant has too many. */
  begin(name: string, response: ServerResponse): TenantRequest {
    const tenant = this.#tenants.get(name) ?? { name, requests: 0, bytes: 0, waiting: [] }
    const { requestsMax } = this.limits
    if (tenant.requests >= requestsMax)
      throw tooMany(`This account has ${requestsMax} requests in flight. Try again when one has ended.`)
    const request = new TenantRequest(this, tenant)
    if (response.destroyed) {
      // Its client has gone, and `close` has been emitted.
      request.end()
      return request
    }
    if (tenant.requests++ === 0) this.#tenants.set(name, tenant)
    this.processing.note(name)
    response.once('close', () => {
      request.end()
      if (--tenant.requests === 0) this.#tenants.delete(name)
    })
    return request
  }
}

export class TenantRequest {
  readonly #limits: Limits
  readonly #processing: ProcessingLock
  readonly #tenant: Tenant
  #bytes = 0
  #unlockProcessing: (() => void) | undefined
  #cancelWait: (() => void) | undefined
  #isOver = false

  constructor({ limits, processing }: TenantLimits, tenant: Tenant) {
    this.#limits = limits
    this.#processing = processing
    this.#tenant = tenant
  }

  get hasReservedBytes(): boolean {
    return this.#bytes > 0
  }

  /**
   * Waits for memory and then for the processing lock. Call it before reading a response of this size. The first call
   * counts: a request with a large body may have a response of about the same size.
   */
  readonly reserve: Reserve = (bytes) => {
    if (!this.#counts(bytes)) return undefined
    const reserved = this.reserveBytes(bytes)
    return reserved ? reserved.then(() => this.lockProcessing()) : this.lockProcessing()
  }

  /** Waits until the tenant may have these bytes in memory. They are released when the request ends. The first call counts. */
  reserveBytes(bytes: number): Granted {
    if (!this.#counts(bytes)) return undefined
    const tenant = this.#tenant
    const take = () => {
      tenant.bytes += bytes
      this.#bytes = bytes
    }
    if (this.#isOver || tenant.waiting.length > 0 || !this.#fits(bytes)) return this.#wait(tenant.waiting, bytes, take)
    take()
    return undefined
  }

  #counts(bytes: number): boolean {
    return this.#bytes === 0 && bytes >= largeBytesMin
  }

  /** Large bodies and responses are processed one at a time, until `unlockProcessing` or the end of the request. */
  lockProcessing(): Granted {
    const take = () => {
      this.#unlockProcessing = this.#processing.lock()
    }
    if (this.#isOver || this.#processing.isLocked)
      return this.#wait(this.#processing.queueOf(this.#tenant.name), 0, take)
    take()
    return undefined
  }

  unlockProcessing(): void {
    this.#unlockProcessing?.()
    this.#unlockProcessing = undefined
  }

  end(): void {
    this.#isOver = true
    this.#cancelWait?.()
    this.unlockProcessing()
    const tenant = this.#tenant
    tenant.bytes -= this.#bytes
    this.#bytes = 0
    for (let next = tenant.waiting[0]; next && this.#fits(next.bytes); next = tenant.waiting[0]) {
      tenant.waiting.shift()
      next.proceed()
    }
  }

  #fits(bytes: number): boolean {
    return this.#tenant.bytes === 0 || this.#tenant.bytes + bytes <= this.#limits.largeBytesMax
  }

  #wait(queue: Waiter[], bytes: number, take: () => void): Promise<void> {
    if (this.#isOver) return Promise.reject(new ClientGone())
    const { waitMillisecondsMax } = this.#limits
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer)
        this.#cancelWait = undefined
      }
      const leave = (error: Error) => {
        queue.splice(queue.indexOf(waiter), 1)
        end()
        reject(error)
      }
      const waiter = {
        bytes,
        proceed: () => {
          end()
          take()
          resolve()
        },
      }
      const seconds = waitMillisecondsMax / 1000
      const detail = `This request has waited ${seconds} seconds for the account's other large bodies and responses. Send fewer at the same time.`
      const timer = setTimeout(() => leave(tooMany(detail)), waitMillisecondsMax)
      this.#cancelWait = () => leave(new ClientGone())
      queue.push(waiter)
    })
  }
}

/** Lets one large request at a time use the event loop, and rotates between the tenants. */
class ProcessingLock {
  readonly #limits: Limits
  /** In the order in which the tenants get the lock. */
  readonly #queues = new Map<string, Waiter[]>()
  #latestTenant = ''
  #changedAt = Number.NEGATIVE_INFINITY
  /** Also during the pause after a request has unlocked it. */
  isLocked = false

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** Notes a request, large or not. */
  note(tenant: string): void {
    if (tenant === this.#latestTenant) return
    this.#latestTenant = tenant
    this.#changedAt = performance.now()
  }

  queueOf(tenant: string): Waiter[] {
    const queue = this.#queues.get(tenant) ?? []
    this.#queues.set(tenant, queue)
    return queue
  }

  /** Returns the function that unlocks. */
  lock(): () => void {
    this.isLocked = true
    const startedAt = performance.now()
    return () => {
      const { pauseFactor, pauseMillisecondsMax, othersMilliseconds } = this.#limits
      const now = performance.now()
      const pause = Math.min(pauseFactor * (now - startedAt), pauseMillisecondsMax)
      const next = () => this.#next()
      if (now - this.#changedAt > othersMilliseconds) setImmediate(next)
      else setTimeout(next, pause)
    }
  }

  #next(): void {
    this.isLocked = false
    for (const [tenant, queue] of this.#queues) {
      this.#queues.delete(tenant)
      const waiter = queue.shift()
      if (queue.length > 0) this.#queues.set(tenant, queue)
      if (waiter) return waiter.proceed()
    }
  }
}

function tooMany(detail: string): Problem {
  return new Problem({ kind: 'too-many-concurrent-requests', detail }, { 'Retry-After': '1' })
}
