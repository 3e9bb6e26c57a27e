/** Webhook endpoints, and the deliveries that the end of a run creates. */
import type { ColumnTypes } from './migrations.ts'

// The trigger covers every statement that ends a run, in the same transaction. Without an enabled endpoint in the
// account, it costs one look-up in the index of endpoints. A delivery's id is a UUIDv7 of the time at which the run
// ended, so that the index by id has the order of the list, of `since` and of the purge.
const selectDelivery = (id: string, run: string, matches: string) => `INSERT INTO webhook_deliveries
    (id, endpoint_id, account_id, event, run_id, run, status, attempts, created_at, next_attempt_at, deadline)
    SELECT ${id}, e.id, e.account_id, 'run.' || NEW.status, NEW.id, ${run}, 'pending', 0, NEW.finished_at,
      NEW.finished_at, NEW.finished_at + 259200000
    FROM webhook_endpoints AS e WHERE e.account_id = NEW.account_id AND e.disabled_reason IS NULL AND ${matches};`

const hasEndpoint =
  'EXISTS (SELECT 1 FROM webhook_endpoints WHERE account_id = NEW.account_id AND disabled_reason IS NULL)'

const runMembers = `'workflowId', NEW.workflow_id, 'status', NEW.status, 'reason', NEW.reason, 'attempts', NEW.attempts,
      'createdAt', NEW.created_at, 'finishedAt', NEW.finished_at`

const sqliteTrigger = `CREATE TRIGGER webhook_deliveries_of_run AFTER UPDATE OF status ON runs
  WHEN NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL AND ${hasEndpoint}
  BEGIN ${selectDelivery(
    `substr(printf('%012x', NEW.finished_at), 1, 8) || '-' || substr(printf('%012x', NEW.finished_at), 9) || '-7' ||
      lower(substr(hex(randomblob(2)), 1, 3) || '-8' || substr(hex(randomblob(2)), 1, 3) || '-' || hex(randomblob(6)))`,
    `json_object(${runMembers}, 'tags', json(COALESCE(NEW.tags, '[]')))`,
    `instr(e.events, '"run.' || NEW.status || '"') > 0
      AND (e.workflow_ids = '[]' OR EXISTS (SELECT 1 FROM json_each(e.workflow_ids) WHERE value = NEW.workflow_id))
      AND (e.tags = '[]' OR EXISTS (SELECT 1 FROM json_each(e.tags) AS wanted
        JOIN json_each(COALESCE(NEW.tags, '[]')) AS found ON found.value = wanted.value))`,
  )} END`

const postgresFunction = `CREATE FUNCTION add_webhook_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN IF ${hasEndpoint} THEN ${selectDelivery(
    `substr(lpad(to_hex(NEW.finished_at), 12, '0'), 1, 8) || '-' || substr(lpad(to_hex(NEW.finished_at), 12, '0'), 9)
      || '-7' || substr(gen_random_uuid()::text, 16)`,
    `json_build_object(${runMembers}, 'tags', COALESCE(NEW.tags, '[]')::json)::text`,
    `position('"run.' || NEW.status || '"' IN e.events) > 0
      AND (e.workflow_ids = '[]'
        OR EXISTS (SELECT 1 FROM json_array_elements_text(e.workflow_ids::json) AS w (id) WHERE w.id = NEW.workflow_id))
      AND (e.tags = '[]' OR EXISTS (SELECT 1 FROM json_array_elements_text(e.tags::json) AS wanted (tag)
        JOIN json_array_elements_text(COALESCE(NEW.tags, '[]')::json) AS found (tag) ON found.tag = wanted.tag))`,
  )} END IF; RETURN NULL; END $$`

const postgresTrigger = `CREATE TRIGGER webhook_deliveries_of_run AFTER UPDATE OF status ON runs FOR EACH ROW
  WHEN (NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL) EXECUTE FUNCTION add_webhook_deliveries()`

export const script = ({ text, blob, inPostgres, inSqlite }: ColumnTypes) => `
CREATE TABLE webhook_endpoints (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL, url ${text} NOT NULL, events ${text} NOT NULL,
  workflow_ids ${text} NOT NULL, tags ${text} NOT NULL, secret ${blob} NOT NULL, previous_secret ${blob},
  previous_secret_expires_at BIGINT, disabled_reason ${text}, created_at BIGINT NOT NULL
);
CREATE INDEX webhook_endpoints_by_account ON webhook_endpoints (account_id, id);
CREATE TABLE webhook_deliveries (
  id ${text} PRIMARY KEY, endpoint_id ${text} NOT NULL, account_id ${text} NOT NULL, event ${text} NOT NULL,
  run_id ${text}, run ${text} NOT NULL, status ${text} NOT NULL, attempts INTEGER NOT NULL, created_at BIGINT NOT NULL,
  next_attempt_at BIGINT, deadline BIGINT NOT NULL, last_attempt_at BIGINT, latency_ms INTEGER, request_url ${text},
  request_body ${text}, response_status INTEGER, response_body ${text}, error ${text}
);
CREATE INDEX webhook_deliveries_by_endpoint ON webhook_deliveries (endpoint_id, id);
CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (endpoint_id, status, id);
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (endpoint_id, next_attempt_at) WHERE status = 'pending'${inSqlite(`;
${sqliteTrigger}`)}${inPostgres(postgresFunction)}${inPostgres(postgresTrigger)}`
