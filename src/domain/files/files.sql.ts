/** References of runs and schedules to files, in the transactions that store them. */
import { parseId } from '../../storage/statement-values.ts'
import { statement, type Transaction } from '../../storage/store.ts'
import type { FileVariable, VariableError } from '../workflows/workflows.ts'

/** A condition on `files`: a run or a schedule refers to the file. */
export const isReferred = `(EXISTS (SELECT 1 FROM run_files WHERE file_id = files.id)
  OR EXISTS (SELECT 1 FROM schedule_files WHERE file_id = files.id))`

/** A condition on `files`, with the time as its value. */
export const isVisible = `status = 'ready' AND (expires_at > ? OR ${isReferred})`

/** Locks the file, so that it is neither deleted nor expires before the transaction has ended. */
const renewFile = statement<
  { id: string },
  [expiresAt: number, sameExpiresAt: number, id: string, accountId: string, now: number]
>(
  `UPDATE files SET expires_at = CASE WHEN expires_at < ? THEN CAST(? AS BIGINT) ELSE expires_at END
    WHERE id = ? AND account_id = ? AND ${isVisible} RETURNING id`,
)
const insertRunFile = statement<object, [runId: string, id: string]>(
  `INSERT INTO run_files (run_id, file_id) SELECT CAST(? AS TEXT), id FROM files WHERE id = ? AND status = 'ready'
    ON CONFLICT DO NOTHING`,
)

/** When a file expires that is used now. */
export interface FileExpiry {
  now: number
  retentionMilliseconds: number
}

const noSuchFile = 'names no file of this account'

/**
 * Renews the files that are about to be referred to.
 *
 * @returns the variables that name no file of the account, with the detail of an error.
 */
export async function renewFiles<Variable extends FileVariable>(
  tx: Transaction,
  accountId: string,
  files: readonly Variable[],
  { now, retentionMilliseconds }: FileExpiry,
): Promise<(Variable & VariableError)[]> {
  const expiresAt = now + retentionMilliseconds
  const found = new Set<string>()
  // In order, as all transactions lock files, which prevents deadlocks.
  for (const id of [...new Set(files.map((each) => each.id))].sort()) {
    if (parseId(id) === undefined) continue
    const [row] = await tx.all(renewFile, [expiresAt, expiresAt, id, accountId, now])
    if (row) found.add(id)
  }
  return files.flatMap((each) => (found.has(each.id) ? [] : { ...each, detail: noSuchFile }))
}

/** Refers to the files from runs, which are stored. An attempt of a run whose file is missing fails. */
export async function insertRunFiles(
  tx: Transaction,
  runs: readonly { id: string; files?: readonly FileVariable[] }[],
): Promise<void> {
  for (const { id, files = [] } of runs)
    for (const fileId of new Set(files.map((each) => each.id))) await tx.all(insertRunFile, [id, fileId])
}

/** Replaces the references of a schedule. */
export async function setScheduleFiles(
  tx: Transaction,
  scheduleId: string,
  files: readonly FileVariable[],
): Promise<void> {
  await tx.query.deleteFrom('schedule_files').where('schedule_id', '=', scheduleId).execute()
  const ids = new Set(files.map(({ id }) => id))
  if (ids.size === 0) return
  const rows = [...ids].map((file_id) => ({ schedule_id: scheduleId, file_id }))
  await tx.query.insertInto('schedule_files').values(rows).execute()
}
