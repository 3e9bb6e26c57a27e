/**
 * How runs that can be started are handed out. In the embedded store their rows are the queue. In PostgreSQL each has a
 * job of pg-boss, made in the transaction that writes the run: it gives the job to one worker alone, without one
 * waiting for another, gives it to another when it is lost, and keeps what was lost too often as a dead letter.
 */
import type { ActiveJob, Job, Jobs, Store, Transaction } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables.ts'
import type { QueueHead } from './fair-scheduling.ts'

/** What a run is handed out by. */
export interface Dispatch {
  runId: string
  jobId: string | null
  jobRetryCount: number | null
}

export type ReadyRun = Pick<RunsTable, 'id' | 'account_id' | 'workflow_id' | 'priority' | 'job_id'>

/** For a RETURNING clause. */
export const readyColumns = 'id, account_id, workflow_id, priority, job_id'

export type AttemptedRun = Pick<RunsTable, 'id' | 'account_id' | 'workflow_id' | 'job_id' | 'job_retry_count'>

export const attemptedColumns = 'id, account_id, workflow_id, job_id, job_retry_count'

/** What was taken by the ticket, and is not started. */
export function attemptedBy(
  { account_id, workflow_id }: QueueHead,
  { runId, jobId, jobRetryCount }: Dispatch,
): AttemptedRun {
  return { id: runId, account_id, workflow_id, job_id: jobId, job_retry_count: jobRetryCount }
}

export interface Dispatcher {
  /** To be called before a transaction in which runs of these accounts and workflows are entered or taken. */
  open(runs: readonly Pick<ReadyRun, 'account_id' | 'workflow_id'>[]): Promise<void>
  /** The id of the job of a run that is about to be entered. */
  jobIdOf(runId: string): string | null
  /** The runs are new. Those that are parked cannot be started yet. */
  enter(tx: Transaction, runs: readonly (ReadyRun & { isParked: boolean })[]): Promise<void>
  /** Takes a run of the head's account and workflow; whether it can be started still has to be seen. */
  take(tx: Transaction, head: QueueHead): Promise<Dispatch | undefined>
  /** The attempts are still under way. */
  touch(tx: Transaction, runs: readonly AttemptedRun[]): Promise<void>
  /** What was taken cannot be started now, or not again yet, or never. */
  park(tx: Transaction, run: AttemptedRun): Promise<void>
  /** What was parked can be started, in its old place. */
  unpark(tx: Transaction, runs: readonly ReadyRun[]): Promise<void>
  /** The run has finished. */
  end(tx: Transaction, run: AttemptedRun): Promise<void>
  /** The attempt was lost with its worker. @param isLast whether the run has failed by that. */
  lose(tx: Transaction, run: AttemptedRun & ReadyRun, isLast: boolean): Promise<void>
  /** The run has ended without having been started; not within a transaction. */
  withdraw(run: AttemptedRun): Promise<void>
}

export function dispatcherFor({ jobs }: Store): Dispatcher {
  return jobs ? new JobDispatcher(jobs) : rowDispatcher
}

const nothing = async () => {}

const rowTicket = ({ id }: QueueHead): Dispatch => ({ runId: id, jobId: null, jobRetryCount: null })

const rowDispatcher: Dispatcher = {
  open: nothing,
  jobIdOf: () => null,
  enter: nothing,
  take: async (_, head) => rowTicket(head),
  touch: nothing,
  park: nothing,
  unpark: nothing,
  end: nothing,
  lose: nothing,
  withdraw: nothing,
}

/**
 * A run has one job for all its life, with its own id. One that was written without has none, and is taken by its row.
 * Of runs with the same priority the one that was entered first goes first; those that were entered together are equals.
 */
class JobDispatcher implements Dispatcher {
  readonly #jobs: Jobs

  constructor(jobs: Jobs) {
    this.#jobs = jobs
  }

  async open(runs: readonly Pick<ReadyRun, 'account_id' | 'workflow_id'>[]): Promise<void> {
    await this.#jobs.open(runs.map(queueOf))
  }

  jobIdOf(runId: string): string {
    return runId
  }

  async enter(tx: Transaction, runs: readonly (ReadyRun & { isParked: boolean })[]): Promise<void> {
    for (const [queue, entered] of byQueue(runs)) {
      await this.#jobs.add(tx, queue, entered.map(jobOf))
      const parked = entered.filter(({ isParked }) => isParked)
      if (parked.length > 0) await this.#jobs.suspend(tx, queue, parked.map(jobOf))
    }
  }

  async take(tx: Transaction, head: QueueHead): Promise<Dispatch | undefined> {
    if (head.job_id === null) return rowTicket(head)
    const [job] = await this.#jobs.fetch(tx, queueOf(head), 1)
    return job && { runId: job.id, jobId: job.id, jobRetryCount: job.retryCount }
  }

  async touch(tx: Transaction, runs: readonly AttemptedRun[]): Promise<void> {
    for (const [queue, attempted] of byQueue(runs)) {
      const jobs = attempted.flatMap(takenJobOf)
      if (jobs.length > 0) await this.#jobs.touch(tx, queue, jobs)
    }
  }

  async park(tx: Transaction, run: AttemptedRun): Promise<void> {
    const jobs = takenJobOf(run)
    if (jobs.length > 0) await this.#jobs.suspend(tx, queueOf(run), jobs)
  }

  async unpark(tx: Transaction, runs: readonly ReadyRun[]): Promise<void> {
    const withJobs = runs.filter(({ job_id }) => job_id !== null)
    for (const [queue, ready] of byQueue(withJobs)) await this.#jobs.resume(tx, queue, ready.map(jobOf))
  }

  async end(tx: Transaction, run: AttemptedRun): Promise<void> {
    const jobs = takenJobOf(run)
    if (jobs.length > 0) await this.#jobs.complete(tx, queueOf(run), jobs)
  }

  async lose(tx: Transaction, run: AttemptedRun & ReadyRun, isLast: boolean): Promise<void> {
    const [job] = takenJobOf(run)
    if (job) await this.#jobs.fail(tx, queueOf(run), { ...job, priority: run.priority }, isLast)
  }

  async withdraw(run: AttemptedRun): Promise<void> {
    if (run.job_id !== null) await this.#jobs.remove(queueOf(run), [run.job_id])
  }
}

/** Of each account and workflow, so that accounts can take turns and no worker is given what it does not have. */
function queueOf({ account_id, workflow_id }: Pick<ReadyRun, 'account_id' | 'workflow_id'>): string {
  return `${account_id}/${workflow_id}`
}

function byQueue<Run extends Pick<ReadyRun, 'account_id' | 'workflow_id'>>(runs: readonly Run[]): Map<string, Run[]> {
  return Map.groupBy(runs, queueOf)
}

function jobOf({ id, priority }: ReadyRun): Job {
  return { id, priority }
}

function takenJobOf({ job_id, job_retry_count }: AttemptedRun): ActiveJob[] {
  return job_id === null || job_retry_count === null ? [] : [{ id: job_id, retryCount: job_retry_count }]
}
