/**
 * Jobs by pg-boss: who takes one, that it is lost when its taker says nothing any more, that it is taken again, and
 * that it becomes a dead letter when it was lost too often. Its tables are in a schema of their own.
 */

import type { Pool } from 'pg'
import { PgBoss } from 'pg-boss'
import type { Job, Jobs, Session, TakenJob } from '../store.ts'
import { prepared, schema } from './connections.ts'
import { asUnavailable } from './failures.ts'

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
export const jobRunners = new WeakMap<Session, Runner>()

/** No job has it. */
const nobody = '00000000-0000-0000-0000-000000000000'

export class PostgresJobs implements Jobs {
  readonly #boss: PgBoss
  readonly #opened = new Set<string>()

  constructor(pool: Pool) {
    this.#boss = new PgBoss({ db: executing(pool), schema: jobsSchema, schedule: false, maintenanceIntervalSeconds })
    // Its maintenance fails while the database is away, and is done again later.
    this.#boss.on('error', () => {})
  }

  /** Makes or migrates its tables where needed; from then on it maintains them. */
  async start(): Promise<void> {
    await this.#boss.start()
    await this.#boss.createQueue(deadLetters, { retentionSeconds, deleteAfterSeconds: 0 })
  }

  async stop(): Promise<void> {
    await this.#boss.stop({ graceful: false, close: false })
  }

  async open(queues: readonly string[]): Promise<void> {
    for (const queue of queues) {
      if (this.#opened.has(queue)) continue
      const times = { expireInSeconds, heartbeatSeconds, deleteAfterSeconds, retentionSeconds }
      await unlessUnavailable(this.#boss.createQueue(queue, { retryLimit, retryDelay: 0, ...times }))
      // What pg-boss knows of a queue it asks for at the first use, on another connection than the transaction's: if
      // all of them were at it, none would go on.
      await unlessUnavailable(this.#boss.touch(queue, [nobody]))
      this.#opened.add(queue)
    }
  }

  async add(session: Session, queue: string, jobs: readonly Job[]): Promise<void> {
    const inserts = jobs.map(({ id, priority }) => ({ id, priority, data: {} }))
    await unlessUnavailable(this.#boss.insert(queue, inserts, within(session)))
  }

  async take(session: Session, queue: string, count: number): Promise<TakenJob[]> {
    if (!this.#opened.has(queue)) return []
    const jobs = await unlessUnavailable(this.#boss.fetch(queue, { batchSize: count, ...within(session) }))
    return jobs.map(({ id, retryCount }) => ({ id, retryCount }))
  }

  async touch(session: Session, queue: string, jobs: readonly TakenJob[]): Promise<void> {
    await unlessUnavailable(this.#boss.touch(queue, [...jobs], within(session)))
  }

  async park(session: Session, queue: string, jobs: readonly (Job | TakenJob)[]): Promise<void> {
    const [taken, waiting] = [jobs.filter(isTaken), jobs.filter((job) => !isTaken(job))]
    if (taken.length > 0) await unlessUnavailable(this.#boss.cancel(queue, taken, within(session)))
    if (waiting.length > 0) await unlessUnavailable(this.#boss.cancel(queue, waiting.map(idOf), within(session)))
  }

  async unpark(session: Session, queue: string, jobs: readonly Job[]): Promise<void> {
    const resumed = await unlessUnavailable(this.#boss.resume(queue, jobs.map(idOf), within(session)))
    // It says so, if not in its types.
    const { affected = 0 } = resumed as { affected?: number }
    // It forgets what has been parked for long; those that it knows are left as they are.
    if (affected < jobs.length) await this.add(session, queue, jobs)
  }

  async complete(session: Session, queue: string, jobs: readonly TakenJob[]): Promise<void> {
    await unlessUnavailable(this.#boss.complete(queue, [...jobs], null, within(session)))
  }

  async lose(session: Session, queue: string, job: TakenJob, isLast: boolean): Promise<void> {
    if (!isLast) {
      await unlessUnavailable(this.#boss.fail(queue, job, { reason: 'workerLost' }, within(session)))
      return
    }
    await this.complete(session, queue, [job])
    const letter = { data: { runId: job.id, queue, taken: job.retryCount + 1 } }
    await unlessUnavailable(this.#boss.insert(deadLetters, [letter], within(session)))
  }

  async remove(queue: string, ids: readonly string[]): Promise<void> {
    await unlessUnavailable(this.#boss.cancel(queue, [...ids]))
  }
}

function isTaken(job: Job | TakenJob): job is TakenJob {
  return 'retryCount' in job
}

function idOf({ id }: Job | TakenJob): string {
  return id
}

/** What is said for every run: giving a job out, entering, settling and touching it. */
const isHot = /^\s*(WITH|INSERT INTO \S+\.job)/

function executing(runner: Runner) {
  const executeSql = (text: string, values?: unknown[]) =>
    isHot.test(text) ? runner.query({ ...prepared(text), values: values ?? [] }) : runner.query(text, values)
  return { executeSql }
}

function within(session: Session) {
  const runner = jobRunners.get(session)
  if (!runner) throw new Error('Jobs are changed in a transaction.')
  return { db: executing(runner) }
}

async function unlessUnavailable<Result>(done: Promise<Result>): Promise<Result> {
  try {
    return await done
  } catch (error) {
    throw asUnavailable(error)
  }
}
