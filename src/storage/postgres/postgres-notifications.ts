/** Notifications between processes by LISTEN and NOTIFY, on a dedicated connection that reconnects when it is lost. */
import { randomUUID } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type { Client, Pool } from 'pg'
import { type Topic, topics } from '../store.ts'
import { connect } from './postgres-connections.ts'

const channel = 'execution_service'
/** How long a change of a run waits for others before listeners are notified. */
const runsMilliseconds = 5
const retryMilliseconds = { min: 100, max: 5000 }
/** Interval of the queries that detect a lost connection. */
const probeMilliseconds = 10_000

const notifySql = 'SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload'

export class PostgresNotifications {
  readonly #url: string
  readonly #pool: Pool
  /** Identifies this process in payloads, which it ignores when they return. */
  readonly #sender = randomUUID()
  readonly #listeners = new EventEmitter<Record<Topic, []>>().setMaxListeners(0)
  readonly #pending = new Set<Topic>()
  readonly #fallback: NodeJS.Timeout
  #flushing: Promise<void> | undefined
  #client: Client | undefined
  #delay: NodeJS.Timeout | undefined
  #retry: NodeJS.Timeout | undefined
  #probe: NodeJS.Timeout | undefined
  #closed = false

  /** @param fallbackMilliseconds interval of a notification on every topic, for those lost with a connection. */
  constructor(url: string, pool: Pool, fallbackMilliseconds: number) {
    this.#url = url
    this.#pool = pool
    this.#fallback = setInterval(() => this.#notifyListeners(topics), fallbackMilliseconds).unref()
  }

  /** Resolves once it listens. @throws when the database cannot be reached. */
  async open(): Promise<void> {
    const client = await connect(this.#url)
    try {
      client.on('notification', ({ payload = '' }) => {
        const [topic, sender] = payload.split(' ')
        if (sender !== this.#sender) this.#notifyListeners([topic as Topic])
      })
      await client.query(`LISTEN ${channel}`)
    } catch (error) {
      await client.end().catch(() => {})
      throw error
    }
    if (this.#closed) return client.end()
    this.#client = client
    client.once('end', () => this.#reopen(client))
    this.#probe = setInterval(() => {
      client.query('SELECT 1').catch(() => this.#reopen(client))
    }, probeMilliseconds).unref()
  }

  /**
   * Coalesces all calls in one iteration of the event loop, and those made while a NOTIFY is in progress. Followers of
   * runs wait a little longer, so that most runs notify them once.
   */
  notify(topic: Topic): void {
    this.#pending.add(topic)
    if (topic !== 'runs') this.#flushing ??= this.#flush()
    else if (!this.#flushing) this.#delay ??= setTimeout(() => this.#flushDelayed(), runsMilliseconds)
  }

  listen(topic: Topic, listener: () => void): () => void {
    this.#listeners.on(topic, listener)
    return () => void this.#listeners.off(topic, listener)
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#fallback)
    clearInterval(this.#probe)
    clearTimeout(this.#retry)
    if (this.#delay) this.#flushDelayed()
    await this.#flushing
    await this.#client?.end().catch(() => {})
  }

  #flushDelayed(): void {
    clearTimeout(this.#delay)
    this.#delay = undefined
    if (this.#pending.size > 0) this.#flushing ??= this.#flush()
  }

  /** Runs outside the caller's transaction, since PostgreSQL serializes the commits of transactions that notify. */
  async #flush(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#pending.size > 0) {
      const pending = [...this.#pending]
      this.#pending.clear()
      this.#notifyListeners(pending)
      const payloads = pending.map((topic) => `${topic} ${this.#sender}`)
      const query = { name: 'notify', text: notifySql, values: [channel, payloads] }
      // Best effort: the listeners' fallback replaces a lost notification.
      if (!this.#pool.ended) await this.#pool.query(query).catch(() => {})
    }
    this.#flushing = undefined
  }

  #reopen(lost: Client): void {
    if (this.#closed || this.#client !== lost) return
    this.#client = undefined
    clearInterval(this.#probe)
    void lost.end().catch(() => {})
    const retryAfter = (milliseconds: number) => {
      if (this.#closed) return
      this.#retry = setTimeout(() => {
        this.open().then(
          // Notifications were lost in the meantime.
          () => this.#notifyListeners(topics),
          () => retryAfter(Math.min(milliseconds * 2, retryMilliseconds.max)),
        )
      }, milliseconds).unref()
    }
    retryAfter(retryMilliseconds.min)
  }

  #notifyListeners(topics: readonly Topic[]): void {
    for (const topic of topics) this.#listeners.emit(topic)
  }
}
