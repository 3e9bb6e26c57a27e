/**
 * Dispatches ready runs to workers. In SQLite the rows of runs are the queue, and every method here does nothing. In
 * PostgreSQL each run has a job of pg-boss, changed in the transaction that changes the run: pg-boss assigns each job
 * to one worker without blocking the others, and keeps jobs that were lost too often as dead letters.
 */
import type { QueueHead, RunJob } from '../../storage/run-statements.ts'
import type { ActiveJob, Job, Jobs, Store, Transaction } from '../../storage/store.ts'
import type { NewRun } from './enqueue-batcher.ts'

/** A run that a worker may try to claim, and its job, if it has one. */
export interface Dispatch {
  runId: string
  jobId: string | null
  jobRetryCount: number | null
}

type Queued = Pick<RunJob, 'account_id' | 'workflow_id'>

/**
 * Each run has one job with the run's id, which keeps its place in the queue. Runs of the same priority are dispatched
 * in the order of the transactions that enqueued them. A run without a job is dispatched by its row.
 */
export class Dispatcher {
  readonly #jobs: Jobs | undefined

  constructor({ jobs }: Pick<Store, 'jobs'>) {
    this.#jobs = jobs
  }

  /** Whether `createQueues` must know all runs of a transaction before it begins. */
  get hasQueues(): boolean {
    return this.#jobs !== undefined
  }

  /** Call this before a transaction that enqueues or takes runs of these accounts and workflows. */
  async createQueues(runs: readonly Queued[]): Promise<void> {
    await this.#jobs?.open(runs.map(queueName))
  }

  jobIdFor(runId: string): string | null {
    return this.#jobs ? runId : null
  }

  /** Adds the jobs of new runs. A run that is delayed or waits for its browser context is parked. */
  async enqueue(tx: Transaction, runs: readonly NewRun[]): Promise<void> {
    if (!this.#jobs) return
    for (const [queue, queued] of Map.groupBy(runs, queueName)) {
      await this.#jobs.add(tx, queue, queued.map(toJob))
      const parked = queued.filter(({ delayed, waits_for_context }) => delayed === 1 || waits_for_context === 1)
      if (parked.length > 0) await this.#jobs.suspend(tx, queue, parked.map(toJob))
    }
  }

  /** Takes the next run of the head's account and workflow. Claiming it may still fail. */
  async take(tx: Transaction, head: QueueHead): Promise<Dispatch | undefined> {
    if (!this.#jobs || head.job_id === null) return { runId: head.id, jobId: null, jobRetryCount: null }
    const [job] = await this.#jobs.fetch(tx, queueName(head), 1)
    return job && { runId: job.id, jobId: job.id, jobRetryCount: job.retryCount }
  }

  async touch(tx: Transaction, runs: readonly RunJob[]): Promise<void> {
    for (const [queue, running] of Map.groupBy(runs, queueName)) {
      const jobs = running.flatMap(activeJob)
      if (jobs.length > 0) await this.#jobs?.touch(tx, queue, jobs)
    }
  }

  /** Excludes the run from dispatch until it is unparked. */
  async park(tx: Transaction, run: RunJob): Promise<void> {
    const jobs = activeJob(run)
    if (jobs.length > 0) await this.#jobs?.suspend(tx, queueName(run), jobs)
  }

  /** Makes parked runs ready again, in their former queue positions. */
  async unpark(tx: Transaction, runs: readonly RunJob[]): Promise<void> {
    const withJobs = runs.filter(({ job_id }) => job_id !== null)
    for (const [queue, ready] of Map.groupBy(withJobs, queueName)) {
      await this.#jobs?.resume(tx, queue, ready.map(toJob))
    }
  }

  async complete(tx: Transaction, run: RunJob): Promise<void> {
    const jobs = activeJob(run)
    if (jobs.length > 0) await this.#jobs?.complete(tx, queueName(run), jobs)
  }

  /** Fails the job of an attempt whose worker was lost. @param isLast whether the run has failed. */
  async fail(tx: Transaction, run: RunJob, isLast: boolean): Promise<void> {
    const [job] = activeJob(run)
    if (job) await this.#jobs?.fail(tx, queueName(run), { ...job, priority: run.priority }, isLast)
  }

  /** Removes the job of a run that ended without starting. Call it outside transactions. */
  async remove(run: RunJob): Promise<void> {
    if (run.job_id !== null) await this.#jobs?.remove(queueName(run), [run.job_id])
  }
}

/** One queue per account and workflow: fair scheduling needs it, and a worker may not have every workflow. */
function queueName({ account_id, workflow_id }: Queued): string {
  return `${account_id}/${workflow_id}`
}

function toJob({ id, priority }: Job): Job {
  return { id, priority }
}

function activeJob({ job_id, job_retry_count }: RunJob): ActiveJob[] {
  return job_id === null || job_retry_count === null ? [] : [{ id: job_id, retryCount: job_retry_count }]
}
