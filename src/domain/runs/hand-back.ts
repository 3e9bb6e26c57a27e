/** Returns a claimed run to the queue because its worker cannot get the run's deployment. */
import { type Statement, statement, type Transaction } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables/run-tables.ts'
import { releaseContextLease } from '../browser-contexts/context-lease.ts'
import { type DeploymentProblem, toDeploymentProblem } from './run.ts'
import { deploymentUnavailable } from './run-state.ts'
import { appendStatus } from './runs.sql.ts'

/** A run is tried again after 1, 2, 4, … seconds, and at least this often. */
const delaySecondsMax = 300

/**
 * The attempt does not count: its workflow has not run. The next claim gives its number again, which is safe because a
 * lease is found by number and worker, and a worker that hands a run back has nothing else to write.
 */
const handBackRun: Statement<object, [availableAt: number, problem: string, id: string]> = statement(
  `UPDATE runs SET status = 'queued', reason = '${deploymentUnavailable}', worker_id = NULL, lease_expires_at = NULL,
    started_at = CASE WHEN attempts > 1 THEN started_at END, attempts = attempts - 1, delayed = 1, available_at = ?,
    deployment_problem = ? WHERE id = ?`,
)

/** @param row a locked run of a lease, which is not cancelled. */
export async function handBack(tx: Transaction, row: RunsTable, message: string, at: number): Promise<void> {
  const count = toDeploymentProblem(row).count + 1
  const delaySeconds = Math.min(delaySecondsMax, 2 ** Math.min(count - 1, 10))
  const problem: DeploymentProblem = { message, count }
  await tx.all(handBackRun, [at + delaySeconds * 1000, JSON.stringify(problem), row.id])
  await appendStatus(tx, { ...row, attempts: row.attempts - 1 }, 'queued', null, at)
  if (row.browser_context_id !== null && (await releaseContextLease(tx, row.browser_context_id, row.id))) {
    await tx.all(tx.statements.resumeNextForContext, [row.browser_context_id])
  }
  if (row.concurrency_group !== null) await tx.all(tx.statements.resumeNextOfGroup, [row.concurrency_group])
}
