/**
 * What an account has used by workflow and day: finished runs, their execution, browsers and artifacts. A run counts once, on
 * the day in UTC on which it finished, with all of its attempts. Maintenance adds runs up, so that completing a run writes
 * nothing for it; the rows outlive the runs.
 */
import { dayMilliseconds } from '../../storage/purge-target.ts'
import type { UsedRow } from '../../storage/runs/run-maintenance.ts'
import { statement, type Transaction } from '../../storage/store.ts'
import { findDeployment } from '../deployments/deployments.sql.ts'
import { noRuns, type OutcomeCounts, outcomes } from './outcome-counts.ts'

/** A day in UTC, such as `2026-11-27`. */
export function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

/** How long rows are kept: three years. */
const keptMilliseconds = 3 * 366 * dayMilliseconds

export interface WorkflowUsage {
  day: string
  workflowId: string
  counts: OutcomeCounts
  attempts: number
  executedMilliseconds: number
  /** The part of the execution in runs of workflows that use a browser. */
  browserMilliseconds: number
  /** Of the artifacts that the runs had when they were counted. */
  artifactBytes: number
}

type Sums = [number, number, number, number, number, number, number, number, number]

const addRow = statement<object, [accountId: string, day: string, workflowId: string, ...Sums]>(
  `INSERT INTO run_usage (account_id, day, workflow_id, succeeded, failed, timed_out, cancelled, expired, attempts, executed_ms,
      browser_ms, artifact_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (account_id, day, workflow_id) DO UPDATE SET ${[
      ...['succeeded', 'failed', 'timed_out', 'cancelled', 'expired'],
      ...['attempts', 'executed_ms', 'browser_ms', 'artifact_bytes'],
    ]
      .map((column) => `${column} = run_usage.${column} + excluded.${column}`)
      .join(', ')}`,
)

const deleteRows = statement<object, [before: string]>('DELETE FROM run_usage WHERE day < ?')
const deleteStorage = statement<object, [before: string]>('DELETE FROM storage_days WHERE day < ?')

/** Knows which workflows of which deployments use a browser. */
export class BrowserWorkflows {
  readonly #byDeployment = new Map<string, ReadonlySet<string>>()

  /** Whether an attempt of the run had a place for a browser. A deployment outlives its runs by far more than a minute. */
  async has(tx: Transaction, { deployment_id: id, workflow_id, browser_context_id }: UsedRow): Promise<boolean> {
    if (browser_context_id !== null) return true
    if (id === null) return false
    const known = this.#byDeployment.get(id)
    if (known) return known.has(workflow_id)
    const deployment = await findDeployment(tx, id)
    const found = new Set(deployment?.workflows.filter(({ usesBrowser }) => usesBrowser).map((each) => each.id))
    // Thousands of deployments of one account are rare: the sets are found again.
    if (this.#byDeployment.size >= 1000) this.#byDeployment.clear()
    this.#byDeployment.set(id, found)
    return found.has(workflow_id)
  }
}

/** Adds runs that have not been added before. A run that has been deleted has been added by its deletion. */
export async function addUsage(tx: Transaction, runs: readonly UsedRow[], browsers: BrowserWorkflows): Promise<void> {
  const sums = new Map<string, WorkflowUsage & { accountId: string }>()
  for (const run of runs) {
    const outcome = outcomes.find((each) => each === run.status)
    if (!outcome) continue
    const day = dayOf(run.finished_at)
    const key = [run.account_id, day, run.workflow_id].join()
    const sum = sums.get(key) ?? newSum(run.account_id, day, run.workflow_id)
    sums.set(key, sum)
    sum.counts[outcome] += 1
    sum.attempts += run.attempts
    sum.executedMilliseconds += run.total_executed_ms
    if (await browsers.has(tx, run)) sum.browserMilliseconds += run.total_executed_ms
    sum.artifactBytes += run.artifact_bytes
  }
  for (const { accountId, day, workflowId, ...sum } of sums.values()) {
    const { succeeded, failed, timedOut, cancelled, expired } = sum.counts
    const { attempts, executedMilliseconds, browserMilliseconds, artifactBytes } = sum
    const counts = [succeeded, failed, timedOut, cancelled, expired] as const
    const amounts = [attempts, executedMilliseconds, browserMilliseconds, artifactBytes] as const
    await tx.all(addRow, [accountId, day, workflowId, ...counts, ...amounts])
  }
}

function newSum(accountId: string, day: string, workflowId: string) {
  const amounts = { attempts: 0, executedMilliseconds: 0, browserMilliseconds: 0, artifactBytes: 0 }
  return { accountId, day, workflowId, counts: noRuns(), ...amounts }
}

/** Deletes rows that are older than three years. */
export async function deleteOldUsage(tx: Transaction, now: number): Promise<void> {
  const before = dayOf(now - keptMilliseconds)
  await tx.all(deleteRows, [before])
  await tx.all(deleteStorage, [before])
}
