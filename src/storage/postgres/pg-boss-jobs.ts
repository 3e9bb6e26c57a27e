/**
 * Job queues on pg-boss, which fetches jobs, detects lost consumers, retries, and keeps dead letters. Its tables are in
 * a separate schema.
 */
import { createRequire } from 'node:module'
import type { Pool } from 'pg'
import { PgBoss } from 'pg-boss'
import type { ActiveJob, Job, Jobs, Transaction } from '../store.ts'
import { prepared, type Runner, schema } from './postgres-connections.ts'
import { toStoreError } from './postgres-errors.ts'

const jobsSchema = `${schema}_jobs`

/** The dead letter queue: jobs whose consumers were lost too often, with the run's id as data. For operators. */
const deadLetters = 'lost-runs'

/** Effectively none: the service limits how often a run is lost, and does not count runs that workers returned. */
const retryLimit = 1_000_000
/** Longer than the leases of runs, which detect a lost worker first. */
const heartbeatSeconds = 1800
/** pg-boss's maximum. Attempts have their own time limits. */
const expireInSeconds = 24 * 60 * 60
const deleteAfterSeconds = 60 * 60
const maintenanceIntervalSeconds = 10 * 60
/** Effectively unlimited: a run may wait for a worker with its workflow. pg-boss requires a number. */
const retentionSeconds = 10 * 365 * 24 * 60 * 60

/** The connections of transactions. */
export const jobRunners = new WeakMap<Transaction, Runner>()

const unusedId = '00000000-0000-0000-0000-000000000000'

/** A comment on the schema of pg-boss that records which version has migrated it. */
const { version } = createRequire(import.meta.url)('pg-boss/package.json') as { version: string }
const migratedBy = `pg-boss ${version}`
const migratedBySql = "SELECT obj_description(to_regnamespace($1), 'pg_namespace') AS version"

export class PostgresJobs implements Jobs {
  readonly #pool: Pool
  readonly #boss: PgBoss
  readonly #opened = new Set<string>()
  #started: Promise<unknown> | undefined

  constructor(pool: Pool) {
    this.#pool = pool
    this.#boss = new PgBoss({ db: database(pool), schema: jobsSchema, schedule: false, maintenanceIntervalSeconds })
    // Maintenance fails while the database is unreachable, and is repeated later.
    this.#boss.on('error', () => {})
  }

  /** Creates or migrates the tables of pg-boss where needed. */
  async prepare(): Promise<void> {
    const { rows } = await this.#pool.query(migratedBySql, [jobsSchema])
    if (rows[0]?.version === migratedBy) return
    await this.#start()
    await this.#boss.createQueue(deadLetters, { retentionSeconds, deleteAfterSeconds: 0 })
    await this.#pool.query(`COMMENT ON SCHEMA ${jobsSchema} IS '${migratedBy}'`)
  }

  async stop(): Promise<void> {
    await this.#started?.catch(() => {})
    await this.#boss.stop({ graceful: false, close: false })
  }

  async open(queues: readonly string[]): Promise<void> {
    for (const queue of queues) {
      if (this.#opened.has(queue)) continue
      const times = { expireInSeconds, heartbeatSeconds, deleteAfterSeconds, retentionSeconds }
      await this.#call((boss) => boss.createQueue(queue, { retryLimit, retryDelay: 0, ...times }))
      // Fills pg-boss's cache of the queue. Otherwise its first use reads the queue on a second connection, inside a
      // transaction: a pool whose connections all do so deadlocks.
      await this.#call((boss) => boss.touch(queue, [unusedId]))
      this.#opened.add(queue)
    }
  }

  async #call<Result>(act: (boss: PgBoss) => Promise<Result>): Promise<Result> {
    try {
      await this.#start()
      return await act(this.#boss)
    } catch (error) {
      throw toStoreError(error)
    }
  }

  /** Starts pg-boss with its maintenance on first use: most commands have no jobs. */
  async #start(): Promise<void> {
    this.#started ??= this.#boss.start()
    await this.#started.catch((error: unknown) => {
      this.#started = undefined
      throw error
    })
  }

  async add(tx: Transaction, queue: string, jobs: readonly Job[]): Promise<void> {
    const inserts = jobs.map(({ id, priority }) => ({ id, priority, data: {} }))
    await this.#call((boss) => boss.insert(queue, inserts, inTransaction(tx, queue)))
  }

  async fetch(tx: Transaction, queue: string, count: number): Promise<ActiveJob[]> {
    if (!this.#opened.has(queue)) return []
    const jobs = await this.#call((boss) => boss.fetch(queue, { batchSize: count, ...inTransaction(tx, queue) }))
    return jobs.map(({ id, retryCount }) => ({ id, retryCount }))
  }

  async touch(tx: Transaction, queue: string, jobs: readonly ActiveJob[]): Promise<void> {
    await this.#call((boss) => boss.touch(queue, [...jobs], inTransaction(tx, queue)))
  }

  async suspend(tx: Transaction, queue: string, jobs: readonly (Job | ActiveJob)[]): Promise<void> {
    const active = jobs.filter(isActive)
    const waiting = jobs.filter((job) => !isActive(job)).map(({ id }) => id)
    if (active.length > 0) await this.#call((boss) => boss.cancel(queue, active, inTransaction(tx, queue)))
    if (waiting.length > 0) await this.#call((boss) => boss.cancel(queue, waiting, inTransaction(tx, queue)))
  }

  async resume(tx: Transaction, queue: string, jobs: readonly Job[]): Promise<void> {
    const ids = jobs.map(({ id }) => id)
    const resumed = await this.#call((boss) => boss.resume(queue, ids, inTransaction(tx, queue)))
    // pg-boss deletes jobs that were cancelled long ago. Adding leaves existing ones unchanged.
    if (affectedRows(resumed) < jobs.length) await this.add(tx, queue, jobs)
  }

  async complete(tx: Transaction, queue: string, jobs: readonly ActiveJob[]): Promise<void> {
    await this.#call((boss) => boss.complete(queue, [...jobs], null, inTransaction(tx, queue)))
  }

  async fail(tx: Transaction, queue: string, job: Job & ActiveJob, isLast: boolean): Promise<void> {
    if (!isLast) {
      const { id, retryCount } = job
      const reason = { reason: 'workerLost' }
      const failed = await this.#call((boss) => boss.fail(queue, { id, retryCount }, reason, inTransaction(tx, queue)))
      // pg-boss has failed the job itself, and another worker may have fetched and suspended it since.
      if (affectedRows(failed) === 0) await this.resume(tx, queue, [job])
      return
    }
    await this.complete(tx, queue, [job])
    const letter = { data: { runId: job.id, queue, taken: job.retryCount + 1 } }
    await this.#call((boss) => boss.insert(deadLetters, [letter], inTransaction(tx, deadLetters)))
  }

  async remove(queue: string, ids: readonly string[]): Promise<void> {
    await this.#call((boss) => boss.cancel(queue, [...ids]))
  }
}

/** pg-boss returns this number, but its types omit it. */
function affectedRows(response: unknown): number {
  return (response as { affected?: number }).affected ?? 0
}

function isActive(job: Job | ActiveJob): job is ActiveJob {
  return 'retryCount' in job
}

/** Statements that run for every run: insert, fetch, touch and complete. */
const isFrequent = /^\s*(WITH|INSERT INTO \S+\.job)/

/**
 * pg-boss counts and deletes jobs in separate transactions that read all of them. 300,000 finished jobs took 0.3 s by a
 * sequential scan, and 0.8 s by an index.
 */
const beginFullScan = 'BEGIN; SET LOCAL enable_seqscan TO on; SET LOCAL enable_bitmapscan TO on;'

/**
 * The connection that pg-boss uses.
 *
 * @param queue pg-boss writes the queue's name into its statements; a parameter instead saves preparing them per queue.
 */
function database(runner: Runner, queue?: string) {
  const executeSql = (text: string, values: unknown[] = []) => {
    if (!isFrequent.test(text)) return runner.query(text.replace(/^\s*BEGIN;/, beginFullScan), values)
    const general = text.replaceAll(`'${queue}'`, `$${values.length + 1}::text`)
    return runner.query({ ...prepared(general), values: general === text ? values : [...values, queue] })
  }
  return { executeSql }
}

function inTransaction(tx: Transaction, queue: string) {
  const runner = jobRunners.get(tx)
  if (!runner) throw new Error('Jobs can be changed in a transaction only.')
  return { db: database(runner, queue) }
}
