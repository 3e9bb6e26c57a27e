/** Deployments of workflows, their activations, and the deployment that each run is pinned to. */
import type { ColumnTypes } from './migrations.ts'

// Runs have no foreign key: a finished run may outlive its deployment. Nor do deployments refer to `runs`, whose
// unfinished rows are searched by id when a superseded deployment is about to be deleted.
export const script = ({ text, blob, autoIncrementKey }: ColumnTypes) => `
-- The files are the last column, so that SQLite reads the others without them.
CREATE TABLE deployments (
  id ${text} PRIMARY KEY, account_id ${text} REFERENCES accounts (id), created_at BIGINT NOT NULL,
  workflows ${text} NOT NULL, size_bytes INTEGER NOT NULL, files ${blob} NOT NULL);

-- The newest activation of an account, or of the installation (NULL), says which deployment is current.
CREATE TABLE deployment_activations (
  id ${autoIncrementKey}, account_id ${text}, deployment_id ${text} NOT NULL REFERENCES deployments (id),
  kind ${text} NOT NULL, directory ${text}, at BIGINT NOT NULL);
CREATE INDEX deployment_activations_by_account ON deployment_activations (account_id, id);
CREATE INDEX deployment_activations_by_deployment ON deployment_activations (deployment_id, id);

ALTER TABLE runs ADD COLUMN deployment_id ${text};
ALTER TABLE runs ADD COLUMN deployment_problem ${text}`
