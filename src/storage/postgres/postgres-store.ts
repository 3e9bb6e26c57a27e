/** The store beyond one machine: a PostgreSQL database that any number of processes share. */
import type { Pool, PoolClient } from 'pg'
import { type Commit, type Store, StoreUnavailable, type Transaction, type WriteOptions } from '../store.ts'
import { jobRunners, PostgresJobs } from './pg-boss-jobs.ts'
import { createTransaction, openPool, runnerOnPool, withConnection } from './postgres-connections.ts'
import { PostgresCounters } from './postgres-counters.ts'
import { isRetryable, isStalePlan, toStoreError } from './postgres-errors.ts'
import { PostgresNotifications } from './postgres-notifications.ts'
import { prepareDatabase, toDatabaseError } from './postgres-schema.ts'

export { DatabaseError } from './postgres-schema.ts'

export interface PostgresOptions {
  /** Of this process; one more listens. */
  connectionsMax: number
  /** Bells ring this often by themselves, for what was lost with a connection. */
  fallbackNotifyMilliseconds: number
}

const defaults: PostgresOptions = { connectionsMax: 10, fallbackNotifyMilliseconds: 1000 }

/** Of a work that others were in the way of. */
const runsMax = 10

/**
 * Opens the store in the database of `url`, making and migrating it first where needed.
 *
 * @throws {DatabaseError} naming DATABASE_URL, when the database cannot be used.
 */
export async function openPostgresStore(url: string, options: Partial<PostgresOptions> = {}): Promise<Store> {
  const { connectionsMax, fallbackNotifyMilliseconds: fallbackRingMilliseconds } = { ...defaults, ...options }
  const pool = openPool(url, connectionsMax)
  const jobs = new PostgresJobs(pool)
  const counters = new PostgresCounters(pool)
  const bells = new PostgresNotifications(url, pool, fallbackRingMilliseconds)
  try {
    await prepareDatabase(url, async () => {
      await jobs.prepare()
      await counters.prepare()
    })
    await bells.open()
    return storeOn(pool, bells, jobs, counters)
  } catch (error) {
    await bells.close()
    await jobs.stop()
    await pool.end()
    throw toDatabaseError(error, url)
  }
}

function storeOn(pool: Pool, bells: PostgresNotifications, jobs: PostgresJobs, counters: PostgresCounters): Store {
  /** Those under way, for whoever closes the store. */
  const writing = new Set<Promise<unknown>>()
  let closed = false
  let observer: (commit: Commit) => void = () => {}
  return {
    read: createTransaction(runnerOnPool(pool)),
    counters,
    write(work, options) {
      if (closed) return Promise.reject(new StoreUnavailable('The store is closed.'))
      const written = inTransaction(pool, work, options)
      writing.add(written)
      const begun = performance.now()
      const ended = (unavailable: boolean) => {
        writing.delete(written)
        observer({ writes: options?.batchSize ?? 1, seconds: (performance.now() - begun) / 1000, unavailable })
      }
      written.then(
        () => ended(false),
        (error) => (error instanceof StoreUnavailable ? ended(true) : writing.delete(written)),
      )
      return written
    },
    notify: (bell) => bells.notify(bell),
    listen: (bell, listener) => bells.listen(bell, listener),
    // Nothing that PostgreSQL could be told: its vacuum, its log and its replicas take their time.
    scrub: async () => {},
    check: async () => {
      const { rows } = await runnerOnPool(pool)
        .query('SELECT pg_is_in_recovery() AS reads_only')
        .catch((error: unknown) => {
          throw toStoreError(error)
        })
      if (rows[0]?.reads_only) throw new StoreUnavailable('The database only reads.')
    },
    observe: (told) => {
      observer = told
    },
    close: async () => {
      closed = true
      await Promise.allSettled(writing)
      await bells.close()
      await jobs.stop()
      await pool.end()
    },
    jobs,
  }
}

type Work<Result> = (tx: Transaction) => Promise<Result>

/** Of no meaning but that every write takes the first: alone, or beside others that share it. */
const locks = { write: 7_361_024_519, claim: 7_361_024_520, maintenance: 7_361_024_521 }

function beginOf({ concurrent: overlapping = false, exclusive: turn }: WriteOptions): string {
  if (!overlapping) return `BEGIN; SELECT pg_advisory_xact_lock(${locks.write})`
  const shared = `BEGIN; SELECT pg_advisory_xact_lock_shared(${locks.write})`
  return turn ? `${shared}; SELECT pg_advisory_xact_lock(${locks[turn]})` : shared
}

async function inTransaction<Result>(pool: Pool, work: Work<Result>, options: WriteOptions = {}): Promise<Result> {
  const begin = beginOf(options)
  let outdated = 0
  for (let run = 1; ; run += 1) {
    try {
      return await once(pool, work, begin)
    } catch (error) {
      // Each connection may be, and is given up then: it was in nobody's way.
      if (isStalePlan(error) && outdated++ < pool.options.max) run -= 1
      else if (!isRetryable(error) || run === runsMax) throw toStoreError(error)
    }
  }
}

function once<Result>(pool: Pool, work: Work<Result>, begin: string): Promise<Result> {
  const transaction = async (client: PoolClient) => {
    await client.query(begin)
    const result = await work(sessionOf(client))
    const { command } = await client.query('COMMIT')
    // A statement has failed, and the work has made nothing of it.
    if (command !== 'COMMIT') throw new Error('The work went on after a statement that had failed.')
    return result
  }
  return withConnection(pool, transaction, (client) => client.query('ROLLBACK'))
}

const sessions = new WeakMap<PoolClient, Transaction>()

function sessionOf(client: PoolClient): Transaction {
  let session = sessions.get(client)
  if (!session) {
    session = createTransaction(client)
    sessions.set(client, session)
    jobRunners.set(session, client)
  }
  return session
}
