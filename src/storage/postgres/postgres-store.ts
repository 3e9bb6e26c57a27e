/** The store for several machines: a PostgreSQL database that any number of processes share. */

import { randomUUID } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type { Client, PoolClient, QueryConfig } from 'pg'
import {
  type Commit,
  type Count,
  type Counters,
  expiryIntervalMilliseconds,
  reliableFactor,
  type Store,
  StoreUnavailable,
  type Topic,
  type Transaction,
  topics,
  type WriteOptions,
} from '../store.ts'
import {
  connect,
  createTransaction,
  openPool,
  type Runner,
  runnerOnPool,
  withConnection,
} from './postgres-connections.ts'
import { isRetryable, isStalePlan, toStoreError } from './postgres-errors.ts'
import { prepareDatabase, toDatabaseError } from './postgres-schema.ts'
import type { WatchedPool } from './watched-pool.ts'

export { DatabaseBusy, DatabaseError } from './postgres-schema.ts'

const defaults = {
  /** Size of this process's pool. One more connection listens for notifications. */
  connectionsMax: 10,
  /** Interval of a notification on every topic while there is no connection that listens. */
  fallbackNotifyMilliseconds: 1000,
}

/** Attempts of a transaction that conflicts with others. */
const attemptsMax = 10

/**
 * Opens the store in the database of `url`, and creates or migrates it where needed.
 *
 * @throws {DatabaseError} naming DATABASE_URL, when the database cannot be used.
 * @throws {DatabaseBusy} when it accepts no connection at this moment.
 */
export async function openPostgresStore(url: string, options: Partial<typeof defaults> = {}): Promise<Store> {
  const { connectionsMax, fallbackNotifyMilliseconds } = { ...defaults, ...options }
  const pool = await openPool(url, connectionsMax).catch((error: unknown) => {
    throw toDatabaseError(error, url)
  })
  const counters = new PostgresCounters(pool)
  const notifications = new PostgresNotifications(url, pool, fallbackNotifyMilliseconds)
  try {
    await prepareDatabase(url, () => counters.prepare())
    await notifications.open()
    return createStore(pool, notifications, counters)
  } catch (error) {
    await notifications.close()
    await pool.end()
    throw toDatabaseError(error, url)
  }
}

function createStore(pool: WatchedPool, notifications: PostgresNotifications, counters: PostgresCounters): Store {
  /** Writes in progress, which `close` waits for. */
  const writes = new Set<Promise<unknown>>()
  let isClosed = false
  let observer: (commit: Commit) => void = () => {}
  const runner = runnerOnPool(pool)
  const withoutTransaction = createTransaction(runner)
  return {
    isRemote: true,
    read: createTransaction(runner),
    counters,
    write(work, options) {
      if (isClosed) return Promise.reject(new StoreUnavailable('The store is closed.'))
      const startedAt = performance.now()
      const observe = (unavailable: boolean) =>
        observer({ writes: options?.batchSize ?? 1, seconds: (performance.now() - startedAt) / 1000, unavailable })
      const write = runTransaction(
        pool,
        options?.oneStatement ? () => work(withoutTransaction) : transactionOf(pool, work, options),
      )
      writes.add(write)
      write
        .then(
          () => observe(false),
          (error) => error instanceof StoreUnavailable && observe(true),
        )
        .finally(() => writes.delete(write))
      return write
    },
    notify: (topic) => notifications.notify(topic),
    listen: (topic, listener) => notifications.listen(topic, listener),
    // Clients cannot control when vacuum, WAL and replicas discard old data.
    scrub: async () => {},
    check: async () => {
      const { rows } = await runner.query('SELECT pg_is_in_recovery() AS is_read_only').catch((error: unknown) => {
        throw toStoreError(error)
      })
      if (rows[0]?.is_read_only) throw new StoreUnavailable('The database is read-only.')
    },
    observe: (callback) => {
      observer = callback
    },
    close: async () => {
      isClosed = true
      await Promise.allSettled(writes)
      await notifications.close()
      await pool.end()
    },
  }
}

type Work<Result> = (tx: Transaction) => Promise<Result>

/** Ids of advisory locks. Every write takes `write`: exclusively, or shared if it is concurrent. */
const locks = { write: 7_361_024_519, claim: 7_361_024_520, maintenance: 7_361_024_521 }

function beginSql({ concurrent = false, exclusive }: WriteOptions): string {
  if (!concurrent) return `BEGIN; SELECT pg_advisory_xact_lock(${locks.write})`
  const shared = `BEGIN; SELECT pg_advisory_xact_lock_shared(${locks.write})`
  return exclusive ? `${shared}; SELECT pg_advisory_xact_lock(${locks[exclusive]})` : shared
}

/** Repeats a transaction that conflicts with others. */
async function runTransaction<Result>(pool: WatchedPool, attemptTransaction: () => Promise<Result>): Promise<Result> {
  let stale = 0
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await attemptTransaction()
    } catch (error) {
      // Each connection of the pool may be stale, and is discarded then. That is not a conflict.
      if (isStalePlan(error) && stale++ < pool.options.max) attempt -= 1
      else if (!isRetryable(error) || attempt === attemptsMax) throw toStoreError(error)
    }
  }
}

function transactionOf<Result>(
  pool: WatchedPool,
  work: Work<Result>,
  options: WriteOptions = {},
): () => Promise<Result> {
  const run = async (client: PoolClient) => {
    const { tx, begin } = transactionOn(client)
    begin(beginSql(options))
    const result = await work(tx)
    const { command } = await client.query('COMMIT')
    // PostgreSQL answers COMMIT with ROLLBACK after an error that the work has ignored.
    if (command !== 'COMMIT') throw new Error('The work continued after a failed statement.')
    return result
  }
  return () => withConnection(pool, run, (client) => client.query('ROLLBACK'))
}

interface ClientTransaction {
  tx: Transaction
  begin(sql: string): void
}

const transactions = new WeakMap<PoolClient, ClientTransaction>()

function transactionOn(client: PoolClient): ClientTransaction {
  let transaction = transactions.get(client)
  if (!transaction) {
    transaction = createClientTransaction(client)
    transactions.set(client, transaction)
  }
  return transaction
}

type Query = (statement: { text: string } | string) => Promise<unknown>

/**
 * Sends BEGIN together with the first statement if that only reads, as one that locks a row does. A statement that writes
 * would take effect without a transaction if BEGIN failed.
 */
function createClientTransaction(client: PoolClient): ClientTransaction {
  const send = client.query.bind(client) as unknown as Query
  let begun: Promise<unknown> | undefined
  /** Statements wait for BEGIN, and so do those after them. */
  let isWaiting = false
  const query: Query = async (statement) => {
    if (!begun) return send(statement)
    const text = typeof statement === 'string' ? statement : statement.text
    isWaiting ||= !text.startsWith('SELECT ')
    if (isWaiting) await begun
    return (await Promise.all([begun, send(statement)]))[1]
  }
  const begin = (sql: string) => {
    const beginning = send(sql)
    begun = beginning
    isWaiting = false
    const end = () => {
      if (begun === beginning) begun = undefined
    }
    beginning.then(end, () => {})
  }
  return { tx: createTransaction({ query: query as unknown as Runner['query'] }), begin }
}

// Counters in PostgreSQL: an unlogged table, whose commits do not wait for the disk.

const createSql = 'CREATE UNLOGGED TABLE IF NOT EXISTS counters (name text PRIMARY KEY, count int, ends_at bigint)'

/** The server's clock, so that clocks of machines need not agree. */
const now = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

/** A window that ends later than one starting now was started before the clock was set back. */
const isOpen = 'it.ends_at > excluded.ends_at - $3 AND it.ends_at <= excluded.ends_at'

/** GREATEST: the window may end while the statement waits for a lock. */
const addSql = `INSERT INTO counters AS it (name, count, ends_at) VALUES ($1, GREATEST(0, $2::int), ${now} + $3::bigint)
  ON CONFLICT (name) DO UPDATE SET
    count = GREATEST(0, $2::int + CASE WHEN ${isOpen} THEN it.count ELSE 0 END),
    ends_at = CASE WHEN ${isOpen} THEN it.ends_at ELSE excluded.ends_at END
  RETURNING count, GREATEST(1, LEAST($3::bigint, ends_at - ${now})) AS "millisecondsLeft"`

const deleteExpiredSql = `DELETE FROM counters WHERE name IN
  (SELECT name FROM counters WHERE ends_at <= ${now} FOR UPDATE SKIP LOCKED)`

class PostgresCounters implements Counters {
  readonly #pool: WatchedPool
  readonly #runner: Runner
  #expiredAt = Number.NEGATIVE_INFINITY

  constructor(pool: WatchedPool) {
    this.#pool = pool
    this.#runner = runnerOnPool(pool)
  }

  /** Creates the table where needed. The caller prevents concurrent calls. */
  async prepare(): Promise<void> {
    await this.#pool.query(createSql)
  }

  async add(name: string, amount: number, windowMilliseconds: number): Promise<Count> {
    if (performance.now() - this.#expiredAt >= expiryIntervalMilliseconds) {
      this.#expiredAt = performance.now()
      // Best effort: another process or a later call deletes the rest.
      this.#runner.query(deleteExpiredSql).catch(() => {})
    }
    const values = [name, amount, windowMilliseconds]
    try {
      const { rows } = await this.#runner.query<Count>({ name: 'count', text: addSql, values })
      return rows[0] as Count
    } catch (error) {
      throw toStoreError(error)
    }
  }
}

// Notifications between processes by LISTEN and NOTIFY, on a dedicated connection that reconnects when it is lost.

const channel = 'execution_service'
/** How long a change of a run waits for others before listeners are notified. */
const runsMilliseconds = 5
const retryMilliseconds = { min: 100, max: 5000 }
/** Interval of the queries that detect a lost connection. */
const probeMilliseconds = 10_000
/** A connection that does not reply in this time is lost. */
const probeMillisecondsMax = 3000

const notifySql = 'SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload'

class PostgresNotifications {
  readonly #url: string
  readonly #pool: WatchedPool
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

  /** @param fallbackMilliseconds interval of a notification on every topic while there is no connection that listens. */
  constructor(url: string, pool: WatchedPool, fallbackMilliseconds: number) {
    this.#url = url
    this.#pool = pool
    let intervals = 0
    const fallBack = () => {
      intervals += 1
      if (!this.#client || intervals % reliableFactor === 0) this.#notifyListeners(topics)
    }
    this.#fallback = setInterval(fallBack, fallbackMilliseconds).unref()
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
      client
        .query({ text: 'SELECT 1', query_timeout: probeMillisecondsMax } as QueryConfig)
        .catch(() => this.#reopen(client))
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
      if (!this.#pool.ended)
        await runnerOnPool(this.#pool)
          .query(query)
          .catch(() => {})
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
