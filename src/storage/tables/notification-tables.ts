/** Row types of notification rules. Their messages are rows of `webhook_deliveries`. */
import type { Generated } from 'kysely'
import type { Flag, Json, Milliseconds } from './tables.ts'

export interface NotificationRulesTable {
  id: string
  account_id: string
  name: string
  events: Json
  /** Empty for all. */
  workflow_ids: Json
  channel: 'email' | 'slack' | 'webhook'
  /** Email addresses; empty for other channels. */
  recipients: Json
  /** Of the webhook's address; `null` for email. */
  host: string | null
  not_started_seconds: number
  failure_percent: number
  enabled: Flag
  /** Whether messages say what happened, or only where to look. */
  details: Flag
  /** Who has turned on links by which readers of messages answer: the links have the rights of this key or user. */
  links_key_id: string | null
  links_user_id: string | null
  /** Runs that were ready before it have been checked for `run.notStarted`. */
  checked_until: Milliseconds
  created_at: Milliseconds
  /** The address and the secret of the webhook as JSON, encrypted; `null` for email. */
  target: Uint8Array | null
}

export const jsonOfRules: readonly (keyof NotificationRulesTable)[] = ['events', 'workflow_ids', 'recipients']

/** What happened since the last message of the rule for the workflow: ids only. */
export interface NotificationEventsTable {
  /** A UUIDv7. */
  id: string
  rule_id: string
  event: string
  /** Empty for events without a workflow. */
  workflow_id: string
  run_id: string | null
  /** The name of the wait, the percentage of failed runs, or the id of the endpoint, schedule or browser context. */
  subject: string | null
  created_at: Milliseconds
}

export interface NotificationGroupsTable {
  rule_id: string
  workflow_id: string
  /** When the next message may be created. */
  next_at: Generated<Milliseconds>
  /** 1 while the failure rate of the workflow is above the limit of the rule, which has been reported. */
  is_failing: Generated<Flag>
}

export interface RunFollowersTable {
  run_id: string
  user_id: string
  account_id: string
  created_at: Milliseconds
}
