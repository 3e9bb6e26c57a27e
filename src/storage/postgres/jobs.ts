/**
 * Jobs by pg-boss: who takes one, that it is lost when its taker says nothing any more, that it is taken again, and
 * that it becomes a dead letter when it was lost too often. Its tables are in a schema of their own.
 */

import type { Pool } from 'pg'
import { PgBoss } from 'pg-boss'
import type { Jobs, NewJob, Session, TakenJob } from '../store.ts'
import { schema } from './connections.ts'
import { asUnavailable } from './failures.ts'

const jobsSchema = `${schema}_jobs`

/** What was lost too often, for whoever looks into it; its data names the run. */
const deadLetters = 'lost-runs'

/** A net below the leases of runs, which are shorter: for what no process has noticed. */
const heartbeatSeconds = 1800
/** pg-boss's most: attempts have time limits of their own. */
const expireInSeconds = 24 * 60 * 60
const deleteAfterSeconds = 60 * 60
const maintenanceIntervalSeconds = 10 * 60
/** How long one may wait for a worker that has its workflow; pg-boss wants a number. */
const retentionSeconds = 10 * 365 * 24 * 60 * 60

type Runner = Pick<Pool, 'query'>

/** The connections of sessions in a transaction. */
export const jobRunners = new WeakMap<Session, Runner>()

interface Data {
  runId: string
}

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
      const deadLetter = deadLetters
      const options = { retryLimit: 0, retryDelay: 0, expireInSeconds, heartbeatSeconds, deleteAfterSeconds }
      await unlessUnavailable(this.#boss.createQueue(queue, { ...options, retentionSeconds, deadLetter }))
      this.#opened.add(queue)
    }
  }

  async add(session: Session, queue: string, jobs: readonly NewJob[]): Promise<void> {
    const inserts = jobs.map(({ id, runId, priority, lossesMax }) => ({
      id,
      data: { runId } satisfies Data,
      priority,
      retryLimit: lossesMax - 1,
    }))
    await unlessUnavailable(this.#boss.insert(queue, inserts, within(session)))
  }

  async take(session: Session, queue: string, count: number): Promise<TakenJob[]> {
    const fetched = this.#boss.fetch<Data>(queue, { batchSize: count, ...within(session) })
    const jobs = await unlessUnavailable(fetched)
    return jobs.map(({ id, retryCount, data }) => ({ id, retryCount, runId: data.runId }))
  }

  async touch(session: Session, queue: string, jobs: readonly Omit<TakenJob, 'runId'>[]): Promise<void> {
    await unlessUnavailable(this.#boss.touch(queue, jobs.map(attemptOf), within(session)))
  }

  async complete(session: Session, queue: string, jobs: readonly Omit<TakenJob, 'runId'>[]): Promise<void> {
    await unlessUnavailable(this.#boss.complete(queue, jobs.map(attemptOf), null, within(session)))
  }

  async lose(session: Session, queue: string, job: Omit<TakenJob, 'runId'>): Promise<void> {
    await unlessUnavailable(this.#boss.fail(queue, attemptOf(job), { reason: 'workerLost' }, within(session)))
  }

  async remove(queue: string, ids: readonly string[]): Promise<void> {
    await unlessUnavailable(this.#boss.cancel(queue, [...ids]))
  }
}

function executing(runner: Runner) {
  return { executeSql: (text: string, values?: unknown[]) => runner.query(text, values) }
}

function within(session: Session) {
  const runner = jobRunners.get(session)
  if (!runner) throw new Error('Jobs are changed in a transaction.')
  return { db: executing(runner) }
}

function attemptOf({ id, retryCount }: Omit<TakenJob, 'runId'>) {
  return { id, retryCount }
}

async function unlessUnavailable<Result>(done: Promise<Result>): Promise<Result> {
  try {
    return await done
  } catch (error) {
    throw asUnavailable(error)
  }
}
