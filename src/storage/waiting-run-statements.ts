/** SQL statements of queued runs that the queue skips: they wait for their concurrency group or browser context. */
import { statement } from './store.ts'

export const waitingRunStatements = {
  // Runs that wait for their concurrency group

  countRunningOfGroup: statement<{ count: number }, [group: string]>(
    "SELECT COUNT(*) AS count FROM runs WHERE status = 'running' AND concurrency_group = ?",
  ),

  waitForGroup: statement<object, [id: string]>('UPDATE runs SET waits_for_context = 2 WHERE id = ?'),

  /** Makes the first run that waits for the group ready. */
  resumeNextOfGroup: statement<object, [group: string]>(
    `UPDATE runs SET waits_for_context = 0 WHERE id = (SELECT id FROM runs
      WHERE status = 'queued' AND waits_for_context = 2 AND concurrency_group = ?
      ORDER BY priority DESC, id LIMIT 1) AND waits_for_context = 2`,
  ),

  /**
   * Groups with waiting runs after a group, in the order of their ids, by a few index look-ups for each. The rate is
   * `null` unless the group is at it.
   */
  waitingGroups: statement<
    { id: string; running: number; limit_count: number | null; period_seconds: number | null },
    [after: string, countMax: number]
  >(`WITH RECURSIVE page AS (SELECT CAST(? AS TEXT) AS after, CAST(? AS INTEGER) AS count_max),
    waited (id, number) AS (
      SELECT (SELECT MIN(concurrency_group) FROM runs
        WHERE status = 'queued' AND waits_for_context = 2 AND concurrency_group > page.after), 1 FROM page
      UNION ALL
      SELECT (SELECT MIN(concurrency_group) FROM runs
        WHERE status = 'queued' AND waits_for_context = 2 AND concurrency_group > waited.id), number + 1
      FROM waited CROSS JOIN page WHERE id IS NOT NULL AND number < count_max)
    SELECT waited.id, (SELECT COUNT(*) FROM runs
        WHERE status = 'running' AND concurrency_group = waited.id) AS running, limit_count, period_seconds
      FROM waited LEFT JOIN throttles ON throttles.id = waited.id WHERE waited.id IS NOT NULL ORDER BY waited.id`),

  // Runs that wait for a browser context

  waitForContext: statement<object, [id: string]>('UPDATE runs SET waits_for_context = 1 WHERE id = ?'),

  /** Makes the first run that waits for the context ready. */
  resumeNextForContext: statement<object, [contextId: string]>(
    `UPDATE runs SET waits_for_context = 0 WHERE id = (SELECT id FROM runs
      WHERE status = 'queued' AND waits_for_context = 1 AND browser_context_id = ?
      ORDER BY priority DESC, id LIMIT 1) AND waits_for_context = 1`,
  ),

  /** Makes all runs that wait for the context ready. */
  resumeAllForContext: statement<object, [contextId: string]>(
    `UPDATE runs SET waits_for_context = 0 WHERE status = 'queued' AND waits_for_context = 1
      AND browser_context_id = ?`,
  ),

  /**
   * Contexts that runs wait for although no run leases them: they were deleted, or the next run has not started yet.
   * One index look-up for each context: for SELECT DISTINCT, SQLite reads every run that waits.
   */
  freeContexts: statement<{ id: string; deleted: number }, []>(`WITH RECURSIVE waited (id) AS (
      SELECT MIN(browser_context_id) FROM runs WHERE status = 'queued' AND waits_for_context = 1
      UNION ALL
      SELECT (SELECT MIN(browser_context_id) FROM runs
        WHERE status = 'queued' AND waits_for_context = 1 AND browser_context_id > waited.id)
      FROM waited WHERE id IS NOT NULL)
    SELECT waited.id, browser_contexts.id IS NULL AS deleted FROM waited
    LEFT JOIN browser_contexts ON browser_contexts.id = waited.id AND deleted_at IS NULL
    WHERE waited.id IS NOT NULL AND held_by_run_id IS NULL LIMIT 100`),
}
