/** The statements of runs for SQLite. Write transactions never overlap, so none of them takes a lock. */
import { claimableCondition, claimStatement, type RunStatements, sharedRunStatements } from '../run-statements.ts'
import { statement } from '../store.ts'

export const sqliteRunStatements = {
  ...sharedRunStatements,
  lockAccount: statement('SELECT id FROM accounts WHERE id = ?'),
  findClaimable: statement(
    `SELECT id, browser_context_id, persist_context, (${claimableCondition}) AS claimable FROM runs WHERE id = ?`,
  ),
  claimRun: claimStatement(claimableCondition),
  claimRunWithoutContext: claimStatement(`${claimableCondition} AND browser_context_id IS NULL`),
  lockLeasedRun: statement("SELECT * FROM runs WHERE id = ? AND attempts = ? AND worker_id = ? AND status = 'running'"),
  lockLostRuns: statement("SELECT * FROM runs WHERE status = 'running' AND lease_expires_at <= ? LIMIT 500"),
  appendEvent: statement(`INSERT INTO run_events (run_id, sequence, at, type, data)
    SELECT ?, COALESCE(MAX(sequence), 0) + 1, ?, ?, ? FROM run_events WHERE run_id = ?`),
  eventsAfter: statement(
    'SELECT sequence, at, type, data FROM run_events WHERE run_id = ? AND sequence > ? ORDER BY sequence LIMIT ?',
  ),
} satisfies RunStatements
