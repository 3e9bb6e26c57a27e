/** Lists of the runs of a browser context. */

// Runs without a browser context, which are most, are in neither index. Both order the runs of one status by id, so that a
// list of some statuses reads only its own rows; the second keeps a list of a workflow that is rare in a context from
// reading the other runs. `orderOf` in run-list.ts says why they end with expressions.
export const script = () => `
CREATE INDEX runs_by_context ON runs (browser_context_id, status, (id || '')) WHERE browser_context_id IS NOT NULL;
CREATE INDEX runs_finished_by_context ON runs (browser_context_id, workflow_id, status, (workflow_id || id))
  WHERE browser_context_id IS NOT NULL AND finished_at IS NOT NULL`
