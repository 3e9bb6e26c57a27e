/**
 * How runs that can be started are handed out. In the embedded store their rows are the queue. In PostgreSQL each has a
 * job of pg-boss, made in the transaction that makes the run ready: it gives the job to one worker alone, without one
 * waiting for another, and keeps what was lost too often as a dead letter.
 */
import { v7 as uuid } from 'uuid'
import type { Jobs, Session, Store } from '../storage/store.ts'
import type { RunsTable } from '../storage/tables.ts'
import { lossesMax } from './state.ts'
import type { Head } from './turns.ts'

/** What a run is handed out by. */
export interface Ticket {
  runId: string
  jobId: string | null
  jobRetryCount: number | null
}

export type ReadyRun = Pick<RunsTable, 'id' | 'account_id' | 'workflow_id' | 'priority' | 'losses'>

/** For a RETURNING clause. */
export const readyColumns = 'id, account_id, workflow_id, priority, losses'

export type AttemptedRun = Pick<RunsTable, 'id' | 'account_id' | 'workflow_id' | 'job_id' | 'job_retry_count'>

export const attemptedColumns = 'id, account_id, workflow_id, job_id, job_retry_count'

export interface Handout {
  /** To be called before a transaction in which runs of these accounts and workflows become ready. */
  open(runs: readonly { accountId: string; workflowId: string }[]): Promise<void>
  /** The id of the job of a run that is about to be written. */
  newJobId(): string | null
  /** Runs that are ready, with their jobs' ids. */
  offer(session: Session, runs: readonly (ReadyRun & { job_id: string | null })[]): Promise<void>
  /** Runs that have become ready again. */
  offerAgain(session: Session, runs: readonly ReadyRun[]): Promise<void>
  /** Takes a run of the head's account and workflow; whether it can be started still has to be seen. */
  take(session: Session, head: Head): Promise<Ticket | undefined>
  /** What was taken is of no use. */
  discard(session: Session, head: Head, ticket: Ticket): Promise<void>
  /** The attempts are still under way. */
  touch(session: Session, runs: readonly AttemptedRun[]): Promise<void>
  /** The attempt has ended. */
  end(session: Session, run: AttemptedRun): Promise<void>
  /** The attempt was lost with its worker; the run is ready again unless that has happened too often. */
  lose(session: Session, run: AttemptedRun): Promise<void>
  /** The run has ended without having been started; not within a transaction. */
  withdraw(run: AttemptedRun): Promise<void>
}

export function handoutOf({ jobs }: Store): Handout {
  return jobs ? new JobHandout(jobs) : rowHandout
}

const nothing = async () => {}

const rowTicket = ({ id }: Head): Ticket => ({ runId: id, jobId: null, jobRetryCount: null })

const rowHandout: Handout = {
  open: nothing,
  newJobId: () => null,
  offer: nothing,
  offerAgain: nothing,
  take: async (_, head) => rowTicket(head),
  discard: nothing,
  touch: nothing,
  end: nothing,
  lose: nothing,
  withdraw: nothing,
}

const setJobSql = 'UPDATE runs SET job_id = ? WHERE id = ?'

class JobHandout implements Handout {
  readonly #jobs: Jobs

  constructor(jobs: Jobs) {
    this.#jobs = jobs
  }

  async open(runs: readonly { accountId: string; workflowId: string }[]): Promise<void> {
    await this.#jobs.open(runs.map(({ accountId, workflowId }) => queueOf(accountId, workflowId)))
  }

  newJobId(): string {
    return uuid()
  }

  async offer(session: Session, runs: readonly (ReadyRun & { job_id: string | null })[]): Promise<void> {
    for (const [queue, ready] of byQueue(runs)) {
      const jobs = ready.map(({ id, job_id, priority, losses }) => ({
        id: job_id ?? uuid(),
        runId: id,
        priority,
        lossesMax: Math.max(1, lossesMax - losses),
      }))
      await this.#jobs.add(session, queue, jobs)
    }
  }

  async offerAgain(session: Session, runs: readonly ReadyRun[]): Promise<void> {
    const offered = runs.map((run) => ({ ...run, job_id: uuid() }))
    for (const { id, job_id } of offered) await session.all(setJobSql, [job_id, id])
    await this.offer(session, offered)
  }

  async take(session: Session, head: Head): Promise<Ticket | undefined> {
    const { account_id, workflow_id, job_id } = head
    // Written by something that knows of no jobs, such as a copy from an embedded store.
    if (job_id === null) return rowTicket(head)
    const [job] = await this.#jobs.take(session, queueOf(account_id, workflow_id), 1)
    return job && { runId: job.runId, jobId: job.id, jobRetryCount: job.retryCount }
  }

  async discard(session: Session, { account_id, workflow_id }: Head, { jobId, jobRetryCount }: Ticket): Promise<void> {
    if (jobId === null || jobRetryCount === null) return
    await this.#jobs.complete(session, queueOf(account_id, workflow_id), [{ id: jobId, retryCount: jobRetryCount }])
  }

  async touch(session: Session, runs: readonly AttemptedRun[]): Promise<void> {
    for (const [queue, attempted] of byQueue(runs)) await this.#jobs.touch(session, queue, attempted.flatMap(jobOf))
  }

  async end(session: Session, run: AttemptedRun): Promise<void> {
    await this.#jobs.complete(session, queueOf(run.account_id, run.workflow_id), jobOf(run))
  }

  async lose(session: Session, run: AttemptedRun): Promise<void> {
    const [job] = jobOf(run)
    if (job) await this.#jobs.lose(session, queueOf(run.account_id, run.workflow_id), job)
  }

  async withdraw({ account_id, workflow_id, job_id }: AttemptedRun): Promise<void> {
    if (job_id !== null) await this.#jobs.remove(queueOf(account_id, workflow_id), [job_id])
  }
}

/** Of each account and workflow, so that accounts can take turns and no worker is given what it does not have. */
function queueOf(accountId: string, workflowId: string): string {
  return `${accountId}/${workflowId}`
}

function byQueue<Run extends { account_id: string; workflow_id: string }>(runs: readonly Run[]): Map<string, Run[]> {
  return Map.groupBy(runs, ({ account_id, workflow_id }) => queueOf(account_id, workflow_id))
}

function jobOf({ job_id, job_retry_count }: AttemptedRun): { id: string; retryCount: number }[] {
  return job_id === null || job_retry_count === null ? [] : [{ id: job_id, retryCount: job_retry_count }]
}
