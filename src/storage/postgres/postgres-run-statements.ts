/**
 * The statements of runs for PostgreSQL, where write transactions may overlap: `FOR UPDATE` locks the rows that they
 * depend on.
 */
import { claimableCondition, claimStatement, type RunStatements, sharedRunStatements } from '../run-statements.ts'
import { statement } from '../store.ts'

/** CASE hides the condition, so that the planner cannot pick the partial index of ready runs instead of the primary key. */
const isClaimable = `CASE WHEN ${claimableCondition} THEN 1 ELSE 0 END`

export const postgresRunStatements = {
  ...sharedRunStatements,
  // Also waits for uncommitted runs of the account: their foreign key locks its row.
  lockAccount: statement('SELECT id FROM accounts WHERE id = ? FOR UPDATE'),
  findClaimable: statement(
    `SELECT id, browser_context_id, persist_context, ${isClaimable} AS claimable FROM runs WHERE id = ? FOR UPDATE`,
  ),
  claimRun: claimStatement(`${isClaimable} = 1`),
  claimRunWithoutContext: claimStatement(`${isClaimable} = 1 AND browser_context_id IS NULL`),
  lockLeasedRun: statement(
    "SELECT * FROM runs WHERE id = ? AND attempts = ? AND worker_id = ? AND status = 'running' FOR UPDATE",
  ),
  lockLostRuns: statement("SELECT * FROM runs WHERE status = 'running' AND lease_expires_at <= ? LIMIT 500 FOR UPDATE"),
  // Parameters in a SELECT list have no type of their own.
  appendEvent: statement(`INSERT INTO run_events (run_id, sequence, at, type, data)
    SELECT CAST(? AS TEXT), COALESCE(MAX(sequence), 0) + 1, CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT)
    FROM run_events WHERE run_id = ?`),
  // A caller may send any number as Last-Event-ID, beyond the column's INTEGER too.
  eventsAfter: statement(`SELECT sequence, at, type, data FROM run_events
    WHERE run_id = ? AND sequence > CAST(? AS BIGINT) ORDER BY sequence LIMIT ?`),
} satisfies RunStatements
