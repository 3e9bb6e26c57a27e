/** The tables of notification rules in the schema of version 0.2.0. */
import type { ColumnTypes } from './migrations.ts'
import { idInPostgres, idInSqlite, isOpenAnswer, isSignInNeeded, postgresFunction } from './trigger-parts.ts'

// A rule collects events, of which maintenance makes messages: rows of webhook_deliveries, with the rule as endpoint. A run
// that succeeds or is cancelled costs nothing. Another end, or a wait for an answer, costs one look-up in the index of rules
// in an account without rules.
export const notifications = ({ text, blob, inPostgres, inSqlite }: ColumnTypes) => `
CREATE TABLE notification_rules (
  id ${text} PRIMARY KEY, account_id ${text} NOT NULL, name ${text} NOT NULL, events ${text} NOT NULL,
  workflow_ids ${text} NOT NULL, channel ${text} NOT NULL, recipients ${text} NOT NULL, host ${text},
  not_started_seconds INTEGER NOT NULL, failure_percent INTEGER NOT NULL, enabled INTEGER NOT NULL,
  details INTEGER NOT NULL DEFAULT 1, links_key_id ${text}, links_user_id ${text},
  checked_until BIGINT NOT NULL, created_at BIGINT NOT NULL, target ${blob});
CREATE INDEX notification_rules_by_account ON notification_rules (account_id, id);

CREATE TABLE notification_events (
  id ${text} PRIMARY KEY, rule_id ${text} NOT NULL, event ${text} NOT NULL, workflow_id ${text} NOT NULL,
  run_id ${text}, subject ${text}, created_at BIGINT NOT NULL);
CREATE INDEX notification_events_by_rule ON notification_events (rule_id, workflow_id, id);

-- When the next message of a rule for a workflow may be created, and whether its failure rate has been reported.
CREATE TABLE notification_groups (
  rule_id ${text} NOT NULL, workflow_id ${text} NOT NULL, next_at BIGINT NOT NULL DEFAULT 0,
  is_failing INTEGER NOT NULL DEFAULT 0, CONSTRAINT notification_groups_key PRIMARY KEY (rule_id, workflow_id));

-- Users who get an email when the run ends.
CREATE TABLE run_followers (
  run_id ${text} NOT NULL, user_id ${text} NOT NULL, account_id ${text} NOT NULL, created_at BIGINT NOT NULL,
  CONSTRAINT run_followers_key PRIMARY KEY (run_id, user_id));
CREATE INDEX run_followers_by_user ON run_followers (user_id)${inSqlite(`;
${sources.map(inSqliteTrigger).join(';\n')}`)}${sources.flatMap(inPostgresTrigger).map(inPostgres).join('')};
`

interface Source {
  name: string
  change: string
  when: string
  event: string
  /** Default: that of the row. An event without one matches the rules of every workflow. */
  workflowId?: string
  runId: string
  subject: string
  at: string
}

const sources: Source[] = [
  {
    name: 'run',
    change: 'UPDATE OF status ON runs',
    when: "NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL AND NEW.status IN ('failed', 'timedOut', 'expired')",
    event: "'run.' || NEW.status",
    runId: 'NEW.id',
    subject: 'NULL',
    at: 'NEW.finished_at',
  },
  {
    name: 'wait',
    change: 'INSERT ON run_waits',
    when: isOpenAnswer,
    event: "'run.waiting'",
    runId: 'NEW.run_id',
    subject: 'NEW.name',
    at: 'NEW.reached_at',
  },
  {
    name: 'sign_in',
    change: 'UPDATE OF needs_sign_in_since ON context_sign_ins',
    when: isSignInNeeded,
    event: "'browserContext.needsSignIn'",
    workflowId: "''",
    runId: 'NULL',
    subject: 'NEW.browser_context_id',
    at: 'NEW.needs_sign_in_since',
  },
]

const hasRule = 'EXISTS (SELECT 1 FROM notification_rules WHERE account_id = NEW.account_id AND enabled = 1)'

const insertEvent = (
  { event, workflowId = 'NEW.workflow_id', runId, subject, at }: Source,
  id: string,
  isWanted: string,
  ids: string,
) => `INSERT INTO
    notification_events (id, rule_id, event, workflow_id, run_id, subject, created_at)
    SELECT ${id}, r.id, ${event}, ${workflowId}, ${runId}, ${subject}, ${at} FROM notification_rules AS r
    WHERE r.account_id = NEW.account_id AND r.enabled = 1 AND ${isWanted}
      AND (r.workflow_ids = '[]' OR ${workflowId} = '' OR EXISTS (SELECT 1 FROM ${ids} = ${workflowId}));`

function inSqliteTrigger(source: Source): string {
  const { name, change, when, event, at } = source
  const isWanted = `instr(r.events, '"' || ${event} || '"') > 0`
  const insert = insertEvent(source, idInSqlite(at), isWanted, 'json_each(r.workflow_ids) WHERE value')
  return `CREATE TRIGGER notifications_of_${name} AFTER ${change} WHEN ${when} AND ${hasRule}
  BEGIN ${insert} END`
}

function inPostgresTrigger(source: Source): string[] {
  const { name, change, when, event, at } = source
  const isWanted = `position('"' || ${event} || '"' IN r.events) > 0`
  const ids = 'json_array_elements_text(r.workflow_ids::json) AS w (id) WHERE w.id'
  const insert = insertEvent(source, idInPostgres(at), isWanted, ids)
  return [
    `CREATE FUNCTION add_notifications_of_${name}() RETURNS trigger ${postgresFunction} AS $$
  BEGIN IF ${hasRule} THEN ${insert} END IF; RETURN NULL; END $$`,
    `CREATE TRIGGER notifications_of_${name} AFTER ${change} FOR EACH ROW
  WHEN (${when}) EXECUTE FUNCTION add_notifications_of_${name}()`,
  ]
}
