/**
 * Jobs by pg-boss: who takes one, that it is lost when its taker says nothing any more, that it is taken again, and
 * that it becomes a dead letter when it was lost too often. Its tables are in a schema of their own.
 */

import { createRequire } from 'node:module'
import type { Pool } from 'pg'
import { PgBoss } from 'pg-boss'
import type { ActiveJob, Job, Jobs, Transaction } from '../store.ts'
import { prepared, schema } from './postgres-connections.ts'
import { toStoreError } from './postgres-errors.ts'

const jobsSchema = `${schema}_jobs`

/** What was lost too often, for whoever looks into it; its data names the run. */
const deadLetters = 'lost-runs'

/** Runs have a limit of their own, which does not count what was handed back. */
const retryLimit = 1_000_000
/** A net below the leases of runs, which are shorter: for what no process has noticed. */
const heartbeatSeconds = 1800
/** pg-boss's most: attempts have time limits of their own. */
const expireInSeconds = 24 * 60 * 60
const deleteAfterSeconds = 60 * 60
const maintenanceIntervalSeconds = 10 * 60
/** How long a run may wait for a worker that has its workflow; pg-boss wants a number. */
const retentionSeconds = 10 * 365 * 24 * 60 * 60

type Runner = Pick<Pool, 'query'>

/** The connections of sessions in a transaction. */
export const jobRunners = new WeakMap<Transaction, Runner>()

/** No job has it. */
const nobody = '00000000-0000-0000-0000-000000000000'

/** Written on its schema by whoever has brought that to the state which this version of pg-boss wants. */
const { version } = createRequire(import.meta.url)('pg-boss/package.json') as { version: string }
const mark = `pg-boss ${version}`
const markSql = "SELECT obj_description(to_regnamespace($1), 'pg_namespace') AS mark"

export class PostgresJobs implements Jobs {
  readonly #pool: Pool
  readonly #boss: PgBoss
  readonly #opened = new Set<string>()
  #started: Promise<unknown> | undefined

  constructor(pool: Pool) {
    this.#pool = pool
    this.#boss = new PgBoss({ db: executing(pool), schema: jobsSchema, schedule: false, maintenanceIntervalSeconds })
    // Its maintenance fails while the database is away, and is done again later.
    this.#boss.on('error', () => {})
  }

  /** Makes or migrates its tables, unless that was done. */
  async prepare(): Promise<void> {
    const { rows } = await this.#pool.query(markSql, [jobsSchema])
    if (rows[0]?.mark === mark) return
    await this.#start()
    await this.#boss.createQueue(deadLetters, { retentionSeconds, deleteAfterSeconds: 0 })
    await this.#pool.query(`COMMENT ON SCHEMA ${jobsSchema} IS '${mark}'`)
  }

  async stop(): Promise<void> {
    await this.#started?.catch(() => {})
    await this.#boss.stop({ graceful: false, close: false })
  }

  async open(queues: readonly string[]): Promise<void> {
    if (queues.every((queue) => this.#opened.has(queue))) return
    for (const queue of queues) {
      if (this.#opened.has(queue)) continue
      const times = { expireInSeconds, heartbeatSeconds, deleteAfterSeconds, retentionSeconds }
      await this.#with((boss) => boss.createQueue(queue, { retryLimit, retryDelay: 0, ...times }))
      // What pg-boss knows of a queue it asks for at the first use, on another connection than the transaction's: if
      // all of them were at it, none would go on.
      await this.#with((boss) => boss.touch(queue, [nobody]))
      this.#opened.add(queue)
    }
  }

  async #with<Result>(act: (boss: PgBoss) => Promise<Result>): Promise<Result> {
    try {
      await this.#start()
      return await act(this.#boss)
    } catch (error) {
      throw toStoreError(error)
    }
  }

  /** It maintains its tables from then on. Only where there is something to do: the operator's commands have no need. */
  async #start(): Promise<void> {
    this.#started ??= this.#boss.start()
    await this.#started.catch((error: unknown) => {
      this.#started = undefined
      throw error
    })
  }

  async add(tx: Transaction, queue: string, jobs: readonly Job[]): Promise<void> {
    const inserts = jobs.map(({ id, priority }) => ({ id, priority, data: {} }))
    await this.#with((boss) => boss.insert(queue, inserts, within(tx, queue)))
  }

  async fetch(tx: Transaction, queue: string, count: number): Promise<ActiveJob[]> {
    if (!this.#opened.has(queue)) return []
    const jobs = await this.#with((boss) => boss.fetch(queue, { batchSize: count, ...within(tx, queue) }))
    return jobs.map(({ id, retryCount }) => ({ id, retryCount }))
  }

  async touch(tx: Transaction, queue: string, jobs: readonly ActiveJob[]): Promise<void> {
    await this.#with((boss) => boss.touch(queue, [...jobs], within(tx, queue)))
  }

  async suspend(tx: Transaction, queue: string, jobs: readonly (Job | ActiveJob)[]): Promise<void> {
    const [taken, waiting] = [jobs.filter(isTaken), jobs.filter((job) => !isTaken(job))]
    if (taken.length > 0) await this.#with((boss) => boss.cancel(queue, taken, within(tx, queue)))
    if (waiting.length > 0) await this.#with((boss) => boss.cancel(queue, waiting.map(idOf), within(tx, queue)))
  }

  async resume(tx: Transaction, queue: string, jobs: readonly Job[]): Promise<void> {
    const resumed = await this.#with((boss) => boss.resume(queue, jobs.map(idOf), within(tx, queue)))
    // It forgets what has been parked for long; those that it knows are left as they are.
    if (affectedBy(resumed) < jobs.length) await this.add(tx, queue, jobs)
  }

  async complete(tx: Transaction, queue: string, jobs: readonly ActiveJob[]): Promise<void> {
    await this.#with((boss) => boss.complete(queue, [...jobs], null, within(tx, queue)))
  }

  async fail(tx: Transaction, queue: string, job: Job & ActiveJob, isLast: boolean): Promise<void> {
    if (!isLast) {
      const { id, retryCount } = job
      const reason = { reason: 'workerLost' }
      const failed = await this.#with((boss) => boss.fail(queue, { id, retryCount }, reason, within(tx, queue)))
      // pg-boss has lost it, too, and somebody may have taken it since and parked it.
      if (affectedBy(failed) === 0) await this.resume(tx, queue, [job])
      return
    }
    await this.complete(tx, queue, [job])
    const letter = { data: { runId: job.id, queue, taken: job.retryCount + 1 } }
    await this.#with((boss) => boss.insert(deadLetters, [letter], within(tx, deadLetters)))
  }

  async remove(queue: string, ids: readonly string[]): Promise<void> {
    await this.#with((boss) => boss.cancel(queue, [...ids]))
  }
}

/** How many jobs a command has changed: pg-boss says so, if not in its types. */
function affectedBy(response: unknown): number {
  return (response as { affected?: number }).affected ?? 0
}

function isTaken(job: Job | ActiveJob): job is ActiveJob {
  return 'retryCount' in job
}

function idOf({ id }: Job | ActiveJob): string {
  return id
}

/** What is said for every run: giving a job out, entering, settling and touching it. */
const isHot = /^\s*(WITH|INSERT INTO \S+\.job)/

/**
 * pg-boss counts and removes jobs in transactions of its own, planned each time, that read all of them: 300,000
 * finished ones in 0.3 s as they lie in the table, and in 0.8 s by an index.
 */
const readsAll = 'BEGIN; SET LOCAL enable_seqscan TO on; SET LOCAL enable_bitmapscan TO on;'

/** @param queue whose name pg-boss writes into its statements: each connection would prepare them for each queue. */
function executing(runner: Runner, queue?: string) {
  const executeSql = (text: string, values: unknown[] = []) => {
    if (!isHot.test(text)) return runner.query(text.replace(/^\s*BEGIN;/, readsAll), values)
    const general = text.replaceAll(`'${queue}'`, `$${values.length + 1}::text`)
    return runner.query({ ...prepared(general), values: general === text ? values : [...values, queue] })
  }
  return { executeSql }
}

function within(tx: Transaction, queue: string) {
  const runner = jobRunners.get(tx)
  if (!runner) throw new Error('Jobs are changed in a transaction.')
  return { db: executing(runner, queue) }
}
