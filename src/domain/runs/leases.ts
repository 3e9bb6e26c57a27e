/** The runs that a worker holds, by its id and their attempts: a lease that is lost finds none. */
import { inList } from '../../storage/statement-values.ts'
import type { Transaction } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables.ts'
import type { Lease } from './claim.ts'
import { type AttemptedRun, attemptedColumns } from './dispatcher.ts'

const heldSql = `SELECT * FROM runs WHERE id = ? AND attempts = ? AND worker_id = ? AND status = 'running'`

const cancelRequestedSql = `SELECT id, attempts FROM runs
  WHERE status = 'running' AND cancel_requested = 1 AND worker_id = ?`

/** The lease's run, locked until the transaction ends; undefined when the lease is lost. */
export async function heldRun(tx: Transaction, { runId, attempt, workerId }: Lease): Promise<RunsTable | undefined> {
  const [row] = await tx.all<RunsTable>(`${heldSql} ${tx.forUpdate}`, [runId, attempt, workerId])
  return row
}

/** Returns the runs of those leases that are still held. */
export function prolong(
  tx: Transaction,
  workerId: string,
  leases: readonly Lease[],
  until: number,
): Promise<(AttemptedRun & { attempts: number })[]> {
  const { marks, values } = inList(leases.map(({ runId }) => runId))
  const sql = `UPDATE runs SET lease_expires_at = ? WHERE status = 'running' AND worker_id = ? AND id IN (${marks})
    RETURNING attempts, ${attemptedColumns}`
  return tx.all(sql, [until, workerId, ...values])
}

/** The worker's leases on runs that a caller has cancelled. */
export async function cancelledLeases(tx: Transaction, workerId: string): Promise<Lease[]> {
  const rows = await tx.all<{ id: string; attempts: number }>(cancelRequestedSql, [workerId])
  return rows.map((row) => ({ runId: row.id, attempt: row.attempts, workerId }))
}
