/** Fewer indexes of queued runs: lists read an index of queued runs, one of running runs, or those of finished runs. */

// A queued run has entries in `runs_queued` and in the index of the queue that it is in. Those of lists of finished runs
// are written when it finishes, so that queueing a run writes two indexes less, and a change of status does not move
// an entry. Their condition has no other column than they have: SQLite counts and lists without reading the rows.
export const script = () => `
CREATE INDEX runs_queued ON runs (account_id, id, workflow_id) WHERE status = 'queued';
CREATE INDEX runs_finished_by_status ON runs (account_id, status, id)
  WHERE status <> 'queued' AND status <> 'running';
DROP INDEX runs_finished_by_workflow;
CREATE INDEX runs_finished_by_workflow ON runs (account_id, workflow_id, status, id)
  WHERE status <> 'queued' AND status <> 'running';
DROP INDEX runs_by_account;
DROP INDEX runs_by_workflow;
DROP INDEX runs_by_status`
