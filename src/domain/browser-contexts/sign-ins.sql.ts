/** Statements of the sign-ins of browser contexts and of their history, and their encrypted column. */
import type { EncryptedColumn } from '../../storage/encrypted-columns.ts'
import { resumeForSession } from '../../storage/runs/sign-in-statements.ts'
import { statement, type Transaction } from '../../storage/store.ts'
import type { ContextSignInEntriesTable, ContextSignInsTable } from '../../storage/tables/tables.ts'

/** Locks the row in both stores until the transaction ends. */
const lockSignInSql = statement<ContextSignInsTable, [browserContextId: string]>(
  'UPDATE context_sign_ins SET run_id = run_id WHERE browser_context_id = ? RETURNING *',
)

export async function lockSignIn(tx: Transaction, contextId: string): Promise<ContextSignInsTable | undefined> {
  const [row] = await tx.all(lockSignInSql, [contextId])
  return row
}

export async function findSignIn(
  { query }: Transaction,
  accountId: string,
  contextId: string,
): Promise<ContextSignInsTable | undefined> {
  const rows = query.selectFrom('context_sign_ins').selectAll().where('browser_context_id', '=', contextId)
  return rows.where('account_id', '=', accountId).executeTakeFirst()
}

/** A step that is further ahead was used by a clock that was wrong. */
const stepsAheadMax = 20

const useStep = statement<{ id: string }, [step: number, contextId: string, runId: string, step: number, step: number]>(
  `UPDATE context_sign_ins SET totp_step = ? WHERE browser_context_id = ? AND run_id = ?
      AND (totp_step < CAST(? AS BIGINT) OR totp_step > CAST(? AS BIGINT) + ${stepsAheadMax})
    RETURNING browser_context_id AS id`,
)

/** Stores the time step of a one-time code. Returns false if the code, or a later one, was used before. */
export async function useTotpStep(tx: Transaction, contextId: string, runId: string, step: number): Promise<boolean> {
  return (await tx.all(useStep, [step, contextId, runId, step, step])).length > 0
}

/** Entries that are kept of each browser context. */
export const entriesMax = 50

const insertEntry = statement<object>(
  `INSERT INTO context_sign_in_entries (id, browser_context_id, run_id, kind, cause, caused_by_run_id, actor, started_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
)
const deleteOldEntries = statement<object, [contextId: string, sameContextId: string]>(
  `DELETE FROM context_sign_in_entries WHERE browser_context_id = ? AND id < (SELECT MIN(id) FROM (
    SELECT id FROM context_sign_in_entries WHERE browser_context_id = ? ORDER BY id DESC LIMIT ${entriesMax}) AS kept)`,
)

export type NewEntry = Pick<
  ContextSignInEntriesTable,
  'id' | 'browser_context_id' | 'run_id' | 'kind' | 'cause' | 'caused_by_run_id' | 'actor' | 'started_at'
>

export async function addEntry(tx: Transaction, entry: NewEntry): Promise<void> {
  const { id, browser_context_id, run_id, kind, cause, caused_by_run_id, actor, started_at } = entry
  await tx.all(insertEntry, [id, browser_context_id, run_id, kind, cause, caused_by_run_id, actor, started_at])
  await tx.all(deleteOldEntries, [browser_context_id, browser_context_id])
}

/** What a check has found, before its run ends. */
export const setCheckOutcome = statement<object, [outcome: 'signedOut', runId: string]>(
  'UPDATE context_sign_in_entries SET outcome = ? WHERE run_id = ?',
)

/** How many browser contexts of all accounts need a person, and when the one was signed in whose session is the oldest. */
export const countSignIns = statement<{ needed: number; oldest: number | null }, []>(
  `SELECT (SELECT COUNT(*) FROM context_sign_ins WHERE status = 'needsSignIn') AS needed,
    (SELECT MIN(signed_in_at) FROM context_sign_ins WHERE status = 'signedIn') AS oldest`,
)

/** Binds encrypted secrets to their browser context. */
export function signInAad(accountId: string, contextId: string): string {
  return `${accountId}/browser-contexts/${contextId}/sign-in`
}

export const encryptedInSignIns: readonly EncryptedColumn[] = [
  {
    table: 'context_sign_ins',
    key: ['browser_context_id'],
    column: 'secrets',
    aadColumns: ['account_id', 'browser_context_id'],
    aad: signInAad,
  },
]

const acceptState = statement<{ id: string }, [version: number, at: number, contextId: string]>(
  `UPDATE context_sign_ins SET status = 'unknown', signed_in_version = ?, needs_sign_in_since = NULL, error = NULL,
      next_check_at = CAST(? AS BIGINT) + 1000 * CAST(check_every_seconds AS BIGINT)
    WHERE browser_context_id = ? AND run_id IS NULL RETURNING browser_context_id AS id`,
)

/** A caller or a user has stored a state, which may have a session: runs that wait for one try it. */
export async function acceptGivenState(tx: Transaction, contextId: string, version: number, at: number): Promise<void> {
  const accepted = await tx.all(acceptState, [version, at, contextId])
  if (accepted.length > 0) await resumeForSession(tx, contextId, at)
}
