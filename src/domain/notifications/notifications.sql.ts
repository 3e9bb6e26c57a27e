/** Statements of notification rules and their events, and their encrypted column. */
import { v7 as uuid } from 'uuid'
import type { EncryptedColumn } from '../../storage/encrypted-columns.ts'
import { parseId } from '../../storage/statement-values.ts'
import { statement, type Transaction } from '../../storage/store.ts'
import type { NotificationEventsTable, NotificationRulesTable } from '../../storage/tables/notification-tables.ts'
import type { WebhookDeliveriesTable } from '../../storage/tables/tables.ts'
import type { NotificationEventType } from './notification-message.ts'

export async function findRule(
  { query }: Transaction,
  accountId: string,
  id: string,
): Promise<NotificationRulesTable | undefined> {
  const parsed = parseId(id)
  if (parsed === undefined) return undefined
  const rows = query.selectFrom('notification_rules').selectAll().where('id', '=', parsed)
  return rows.where('account_id', '=', accountId).executeTakeFirst()
}

/** Rules with a message that is due. One index look-up for each rule. */
export const findDueRules = statement<NotificationRulesTable, [now: number]>(
  `SELECT * FROM notification_rules WHERE EXISTS (SELECT 1 FROM webhook_deliveries
    WHERE endpoint_id = notification_rules.id AND status = 'pending' AND next_attempt_at <= ?)`,
)

/** The newest message of each rule of the account. */
export const lastMessages = statement<WebhookDeliveriesTable, [accountId: string]>(
  `SELECT * FROM webhook_deliveries WHERE id IN
    (SELECT (SELECT MAX(id) FROM webhook_deliveries WHERE endpoint_id = r.id) FROM notification_rules AS r
      WHERE account_id = ?)`,
)

/** The rules and workflows that have events, in index order. */
export const findGroups = statement<{ rule_id: string; workflow_id: string; next_at: number | null }, []>(
  `SELECT e.rule_id, e.workflow_id, g.next_at FROM (SELECT DISTINCT rule_id, workflow_id FROM notification_events) AS e
    LEFT JOIN notification_groups AS g ON g.rule_id = e.rule_id AND g.workflow_id = e.workflow_id`,
)

export const takeEvents = statement<NotificationEventsTable, [ruleId: string, workflowId: string, limit: number]>(
  `DELETE FROM notification_events WHERE id IN (SELECT id FROM notification_events
    WHERE rule_id = ? AND workflow_id = ? ORDER BY id LIMIT ?) RETURNING *`,
)

export const setNextMessage = statement<object, [ruleId: string, workflowId: string, nextAt: number]>(
  `INSERT INTO notification_groups (rule_id, workflow_id, next_at) VALUES (?, ?, ?)
    ON CONFLICT (rule_id, workflow_id) DO UPDATE SET next_at = excluded.next_at`,
)

export const setFailing = statement<object, [ruleId: string, workflowId: string, isFailing: number]>(
  `INSERT INTO notification_groups (rule_id, workflow_id, is_failing) VALUES (?, ?, ?)
    ON CONFLICT (rule_id, workflow_id) DO UPDATE SET is_failing = excluded.is_failing`,
)

/** Binds the encrypted target to its rule. */
export function targetAad(accountId: string, ruleId: string): string {
  return `${accountId}/notification-rules/${ruleId}`
}

export const encryptedInNotifications: readonly EncryptedColumn[] = [
  { table: 'notification_rules', key: ['id'], column: 'target', aadColumns: ['account_id', 'id'], aad: targetAad },
]

export interface NewNotification {
  accountId: string
  event: NotificationEventType
  /** Absent for events without a workflow, which match the rules of every workflow. */
  workflowId?: string
  subject: string
  at: number
}

/**
 * Adds the event to each enabled rule of the account that wants it. Call it in the transaction that decides; maintenance makes
 * messages of it later. Ends of runs and waits for an answer are added by triggers of the schema instead.
 */
export async function recordNotification(
  { query }: Transaction,
  { accountId, event, workflowId = '', subject, at }: NewNotification,
): Promise<void> {
  const rules = query.selectFrom('notification_rules').select(['id', 'events', 'workflow_ids'])
  const enabled = await rules.where('account_id', '=', accountId).where('enabled', '=', 1).execute()
  const wanting = enabled.filter(({ events, workflow_ids }) => {
    const ids: string[] = JSON.parse(workflow_ids)
    const isListed = ids.length === 0 || workflowId === '' || ids.includes(workflowId)
    return isListed && (JSON.parse(events) as string[]).includes(event)
  })
  const common = { event, workflow_id: workflowId, run_id: null, subject, created_at: at }
  const rows = wanting.map(({ id }) => ({ ...common, id: uuid({ msecs: at }), rule_id: id }))
  if (rows.length > 0) await query.insertInto('notification_events').values(rows).execute()
}
