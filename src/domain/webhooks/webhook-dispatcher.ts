/**
 * Delivers webhooks and messages of notification rules, in any number of processes on one store. An attempt leases its delivery for a minute; if the process
 * dies, another one repeats the attempt. A slow endpoint occupies only its account's share of the requests.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Encryption } from '../../storage/encryption.ts'
import { type Store, StoreUnavailable } from '../../storage/store.ts'
import type { WebhookDeliveriesTable, WebhookEndpointsTable } from '../../storage/tables/tables.ts'
import { recordNotification } from '../notifications/notifications.sql.ts'
import type { WebhookRequest, WebhookResult } from './send-webhook.ts'
import { readBodies, retryMilliseconds } from './webhook-deliveries.ts'
import type { DisabledReason } from './webhook-endpoints.ts'
import { nextAttemptAt, signedHeaders } from './webhook-event.ts'
import { claimDeliveries, disableEndpoint, findDueEndpoints, recordAttempt, secretAad } from './webhooks.sql.ts'

export interface WebhookDispatcherDependencies {
  store: Store
  encryption: Encryption
  sender: { send(request: WebhookRequest, signal: AbortSignal): Promise<WebhookResult>; close(): Promise<void> }
  log: Logger
  /** Where else to send deliveries, with the same leases and repetitions. */
  others?: readonly DeliverySource[]
  observe?: ObserveWebhook
  now?: () => number
  simulated?: SimulatedDispatch | undefined
  /** How long a stopping process waits for responses. */
  stopMilliseconds?: number
}

/** What has deliveries: a webhook endpoint, or where else they go. */
export interface DeliveryTarget {
  id: string
  account_id: string
  send(request: { row: WebhookDeliveriesTable; body: string; at: Date; signal: AbortSignal }): Promise<SentDelivery>
  /** Called when the receiver wants nothing any more, or deliveries have failed for three days. */
  disable?(reason: DisabledReason, since: number): Promise<void>
}

export interface SentDelivery extends WebhookResult {
  /** For the record. */
  address: string
  /** Whether another attempt would be in vain. */
  isFinal?: boolean
}

export interface DeliverySource {
  /** The targets with deliveries that are due. */
  findDue(now: number): Promise<DeliveryTarget[]>
}

/** For a simulator: only calls of `once` send what is due. */
export interface SimulatedDispatch {
  /** The time in signatures, which receivers compare with their own clock. */
  signedAt(): number
}

/** Called for each request that was recorded. */
export type ObserveWebhook = (outcome: 'delivered' | 'retried' | 'failed', seconds: number) => void

/** Maximum requests in flight. An account may have `reserved` even if the process has reached its maximum. */
const concurrency = { endpoint: 20, account: 40, process: 1000, reserved: 2 }

/** Lease of an attempt: if its process dies, it is repeated after this time. Longer than a request may take. */
const leaseMilliseconds = 60_000

/** Maintenance notifies dispatchers of deliveries that are due later, and of those of a process that was killed. */
const ownTimersMillisecondsMax = 10_000

/** Until a query that failed is repeated. */
const failedQueryMilliseconds = 1000

/** Minimum time between two queries, so that runs that end together share one: after one that found something, and another. */
const pauseMilliseconds = { found: 5, nothing: 25 }

export class WebhookDispatcher {
  readonly #dependencies: WebhookDispatcherDependencies
  readonly #now: () => number
  readonly #requests = new Map<string, number>()
  readonly #attempts = new Set<Promise<void>>()
  readonly #stopping = new AbortController()
  #stopListening = () => {}
  #running: Promise<void> | undefined
  #again = false
  #stopped = false

  constructor(dependencies: WebhookDispatcherDependencies) {
    this.#dependencies = dependencies
    this.#now = dependencies.now ?? Date.now
  }

  start(): void {
    this.#stopListening = this.#dependencies.store.listen('runs', () => this.#wake())
    this.#wake()
  }

  /** Waits for responses, and aborts the requests that take too long. Their deliveries are sent again. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#stopListening()
    await this.#running
    const { stopMilliseconds = 2000 } = this.#dependencies
    const ended = new AbortController()
    await Promise.race([
      Promise.all(this.#attempts).then(() => ended.abort()),
      delay(stopMilliseconds, undefined, { signal: ended.signal }).catch(() => {}),
    ])
    this.#stopping.abort()
    await Promise.all(this.#attempts)
    await this.#dependencies.sender.close()
  }

  #wake(): void {
    if (this.#dependencies.simulated) return
    this.#again = true
    this.#running ??= this.#work().finally(() => {
      this.#running = undefined
    })
  }

  #wakeAfter(milliseconds: number): void {
    setTimeout(() => !this.#stopped && this.#wake(), milliseconds).unref()
  }

  async #work(): Promise<void> {
    while (this.#again && !this.#stopped) {
      this.#again = false
      const due = await this.once().catch((err: unknown) => {
        this.#dependencies.log.warn({ err }, 'reading webhook deliveries failed; retrying')
        this.#wakeAfter(failedQueryMilliseconds)
        return 0
      })
      await delay(due > 0 ? pauseMilliseconds.found : pauseMilliseconds.nothing)
    }
  }

  /** Starts the attempts that are due and for which there is capacity. Returns the number of endpoints that have any. */
  async once(): Promise<number> {
    const { store, others = [] } = this.#dependencies
    const now = this.#now()
    const [endpoints, ...further] = await Promise.all([
      store.read.all(findDueEndpoints, [now]),
      ...others.map((source) => source.findDue(now)),
    ])
    const due = [...endpoints.map((endpoint) => this.#toTarget(endpoint)), ...further.flat()]
    await Promise.all(due.map((target) => this.#claim(target)))
    return due.length
  }

  #toTarget(endpoint: WebhookEndpointsTable): DeliveryTarget {
    const { id, account_id, url } = endpoint
    return {
      id,
      account_id,
      send: async ({ row, body, at, signal }) => {
        const headers = signedHeaders(row.id, at, body, this.#secrets(endpoint))
        return { ...(await this.#dependencies.sender.send({ url, headers, body }, signal)), address: url }
      },
      disable: (reason, since) => this.#disable(endpoint, reason, since),
    }
  }

  /** Resolves when the attempts that have started are recorded, and those for which their end has made room. */
  async idle(): Promise<void> {
    do {
      await this.#running
      await Promise.all(this.#attempts)
    } while (this.#running || this.#attempts.size > 0)
  }

  async #claim(endpoint: DeliveryTarget): Promise<void> {
    const countMax = this.#capacity(endpoint)
    if (countMax <= 0) return
    // Counted before the claim, because claims overlap.
    this.#count(endpoint, countMax)
    const now = this.#now()
    const values = [now + leaseMilliseconds, endpoint.id, now, countMax, now] as const
    const options = { concurrent: true, oneStatement: true, durableLater: true }
    const { store } = this.#dependencies
    const claim = async () => {
      const rows = await store.write((tx) => tx.all(claimDeliveries, [...values]), options)
      return { rows, bodies: await readBodies(store.read, rows) }
    }
    const { rows, bodies } = await claim().catch((error: unknown) => {
      this.#count(endpoint, -countMax)
      throw error
    })
    this.#count(endpoint, rows.length - countMax)
    for (const row of rows) {
      const attempt = this.#attempt(endpoint, row, bodies.get(row.id)).finally(() => {
        this.#attempts.delete(attempt)
        this.#count(endpoint, -1)
        if (!this.#stopped) this.#wake()
      })
      this.#attempts.add(attempt)
    }
  }

  #capacity({ id, account_id }: DeliveryTarget): number {
    const of = (key: string) => this.#requests.get(key) ?? 0
    const ofAccount = of(account_id)
    const rest = Math.max(concurrency.process - of(''), concurrency.reserved - ofAccount)
    return Math.min(concurrency.endpoint - of(id), concurrency.account - ofAccount, rest)
  }

  #count({ id, account_id }: DeliveryTarget, change: number): void {
    for (const key of [id, account_id, '']) {
      const count = (this.#requests.get(key) ?? 0) + change
      if (count > 0) this.#requests.set(key, count)
      else this.#requests.delete(key)
    }
  }

  /** Never rejects. */
  async #attempt(endpoint: DeliveryTarget, row: WebhookDeliveriesTable, body: string | undefined): Promise<void> {
    const { log, simulated } = this.#dependencies
    try {
      const startedAt = performance.now()
      const at = this.#now()
      if (body === undefined) throw new Error(`Run ${row.run_id} was erased while its event was read.`)
      const signedAt = new Date(simulated?.signedAt() ?? at)
      const result = await endpoint.send({ row, body, at: signedAt, signal: this.#stopping.signal })
      const milliseconds = performance.now() - startedAt
      await this.#record(endpoint, row, { ...result, responseBody: result.body, at, body, milliseconds })
    } catch (err) {
      // The delivery is sent again when its lease expires.
      log.warn({ err, deliveryId: row.id }, 'delivering a webhook failed; retrying')
    }
  }

  #secrets({ id, account_id, ...row }: WebhookEndpointsTable): string[] {
    const overlaps = row.previous_secret !== null && (row.previous_secret_expires_at ?? 0) > this.#now()
    const values = overlaps && row.previous_secret ? [row.secret, row.previous_secret] : [row.secret]
    return values.map((value) => this.#dependencies.encryption.decrypt(value, secretAad(account_id, id)))
  }

  async #record(endpoint: DeliveryTarget, row: WebhookDeliveriesTable, attempt: Attempt): Promise<void> {
    const { store } = this.#dependencies
    const { milliseconds, error } = attempt
    const now = this.#now()
    const next = error === null || attempt.isFinal ? undefined : this.#nextAttempt(row, now)
    const status = error === null ? 'delivered' : next === undefined ? 'failed' : 'pending'
    const values = [
      status,
      next ?? null,
      attempt.at,
      Math.round(milliseconds),
      attempt.address,
      attempt.body,
      attempt.status,
      attempt.responseBody,
      error,
      row.id,
      row.attempts,
    ] as const
    const write = () =>
      store.write((tx) => tx.all(recordAttempt, [...values]), { concurrent: true, oneStatement: true })
    await write().catch(async (error: unknown) => {
      if (!(error instanceof StoreUnavailable)) throw error
      await delay(pauseMilliseconds.found)
      await write()
    })
    const isSoon = next !== undefined && next - now < ownTimersMillisecondsMax
    if (isSoon && !this.#dependencies.simulated) this.#wakeAfter(next - now)
    this.#dependencies.observe?.(status === 'pending' ? 'retried' : status, milliseconds / 1000)
    if (attempt.status === 410) await endpoint.disable?.('gone', now + 1)
    else if (status === 'failed') await endpoint.disable?.('deliveriesFailed', row.deadline - retryMilliseconds)
  }

  #nextAttempt(row: WebhookDeliveriesTable, now: number): number | undefined {
    if (this.#stopping.signal.aborted) return now
    return nextAttemptAt(now, row.deadline - retryMilliseconds, row.deadline)
  }

  /** @param since an endpoint that has accepted a delivery since then stays enabled. */
  async #disable({ id, account_id }: WebhookEndpointsTable, reason: DisabledReason, since: number): Promise<void> {
    const { store, log } = this.#dependencies
    const disabled = await store.write(async (tx) => {
      const rows = await tx.all(disableEndpoint, [reason, id, id, since])
      const event = { event: 'webhookEndpoint.disabled', accountId: account_id, subject: id, at: this.#now() } as const
      if (rows.length > 0) await recordNotification(tx, event)
      return rows
    })
    if (disabled.length > 0) log.warn({ endpointId: id, accountId: account_id, reason }, 'webhook endpoint disabled')
  }
}

interface Attempt extends Omit<SentDelivery, 'body'> {
  at: number
  milliseconds: number
  /** The request's body. */
  body: string
  responseBody: string | null
}
