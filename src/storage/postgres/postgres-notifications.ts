/** Bells between processes by LISTEN and NOTIFY, on a connection of its own that is opened anew whenever it is lost. */
import { randomUUID } from 'node:crypto'
import type { Client, Pool } from 'pg'
import { type Topic, topics } from '../store.ts'
import { connect } from './postgres-connections.ts'

const channel = 'execution_service'
const retryMilliseconds = { first: 100, most: 5000 }
/** A connection that is lost without a word is noticed by then. */
const probeMilliseconds = 10_000

export class PostgresNotifications {
  readonly #url: string
  readonly #pool: Pool
  /** Told with each ring, so that a process does not hear its own twice. */
  readonly #self = randomUUID()
  readonly #listeners = new Map<Topic, Set<() => void>>(topics.map((bell) => [bell, new Set()]))
  readonly #rung = new Set<Topic>()
  readonly #fallback: NodeJS.Timeout
  #ringing: Promise<void> | undefined
  #client: Client | undefined
  #retry: NodeJS.Timeout | undefined
  #probe: NodeJS.Timeout | undefined
  #closed = false

  /** @param fallbackMilliseconds rings this often without being rung, for what was lost with a connection. */
  constructor(url: string, pool: Pool, fallbackMilliseconds: number) {
    this.#url = url
    this.#pool = pool
    this.#fallback = setInterval(() => this.#tellAll(), fallbackMilliseconds).unref()
  }

  /** Resolves when it listens. @throws when the database cannot be reached. */
  async open(): Promise<void> {
    const client = await connect(this.#url)
    try {
      client.on('notification', ({ payload = '' }) => {
        const [bell, sender] = payload.split(' ')
        if (sender !== this.#self) this.#tell(bell as Topic)
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

  /** Once for all calls of this turn of the event loop, and for those that come while the last ring is on its way. */
  notify(bell: Topic): void {
    this.#rung.add(bell)
    this.#ringing ??= this.#flush()
  }

  listen(bell: Topic, listener: () => void): () => void {
    const listeners = this.#listeners.get(bell)
    listeners?.add(listener)
    return () => listeners?.delete(listener)
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#fallback)
    clearInterval(this.#probe)
    clearTimeout(this.#retry)
    await this.#ringing
    await this.#client?.end().catch(() => {})
  }

  /** Not in the transaction that is told of: whoever notifies commits one after the other in all of the server. */
  async #flush(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#rung.size > 0) {
      const rung = [...this.#rung]
      this.#rung.clear()
      for (const bell of rung) this.#tell(bell)
      const told = rung.map((bell) => `${bell} ${this.#self}`)
      const sql = 'SELECT pg_notify($1, told) FROM unnest($2::text[]) AS told'
      // Whoever is not told looks by itself after a while.
      if (!this.#pool.ended)
        await this.#pool.query({ name: 'ring', text: sql, values: [channel, told] }).catch(() => {})
    }
    this.#ringing = undefined
  }

  #reopen(lost: Client): void {
    if (this.#closed || this.#client !== lost) return
    this.#client = undefined
    clearInterval(this.#probe)
    void lost.end().catch(() => {})
    const again = (wait: number) => {
      if (this.#closed) return
      this.#retry = setTimeout(() => {
        this.open().then(
          // What was rung meanwhile was not heard.
          () => this.#tellAll(),
          () => again(Math.min(wait * 2, retryMilliseconds.most)),
        )
      }, wait).unref()
    }
    again(retryMilliseconds.first)
  }

  #tellAll(): void {
    for (const bell of topics) this.#tell(bell)
  }

  #tell(bell: Topic): void {
    for (const listener of this.#listeners.get(bell) ?? []) listener()
  }
}
