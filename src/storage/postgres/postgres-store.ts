/** The store for several machines: a PostgreSQL database that any number of processes share. */
import type { Pool, PoolClient } from 'pg'
import { type Commit, type Store, StoreUnavailable, type Transaction, type WriteOptions } from '../store.ts'
import { createTransaction, openPool, runnerOnPool, withConnection } from './postgres-connections.ts'
import { PostgresCounters } from './postgres-counters.ts'
import { isRetryable, isStalePlan, toStoreError } from './postgres-errors.ts'
import { PostgresNotifications } from './postgres-notifications.ts'
import { prepareDatabase, toDatabaseError } from './postgres-schema.ts'

export { DatabaseBusy, DatabaseError } from './postgres-schema.ts'

const defaults = {
  /** Size of this process's pool. One more connection listens for notifications. */
  connectionsMax: 10,
  /** Interval of a notification on every topic, for those lost with a connection. */
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
  const pool = openPool(url, connectionsMax)
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

function createStore(pool: Pool, notifications: PostgresNotifications, counters: PostgresCounters): Store {
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
async function runTransaction<Result>(pool: Pool, attemptTransaction: () => Promise<Result>): Promise<Result> {
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

function transactionOf<Result>(pool: Pool, work: Work<Result>, options: WriteOptions = {}): () => Promise<Result> {
  const run = async (client: PoolClient) => {
    await client.query(beginSql(options))
    const result = await work(transactionOn(client))
    const { command } = await client.query('COMMIT')
    // PostgreSQL answers COMMIT with ROLLBACK after an error that the work has ignored.
    if (command !== 'COMMIT') throw new Error('The work continued after a failed statement.')
    return result
  }
  return () => withConnection(pool, run, (client) => client.query('ROLLBACK'))
}

const transactions = new WeakMap<PoolClient, Transaction>()

function transactionOn(client: PoolClient): Transaction {
  let tx = transactions.get(client)
  if (!tx) {
    tx = createTransaction(client)
    transactions.set(client, tx)
  }
  return tx
}
