/** Creates, reads, lists, changes, tests and deletes the notification rules of accounts. */
import { v7 as uuid } from 'uuid'
import { requireValid } from '../../contract/value-checks.ts'
import type { Cursors, PageRequest } from '../../storage/cursors.ts'
import type { Encryption } from '../../storage/encryption.ts'
import { eraseRest } from '../../storage/purge-target.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import type { NotificationRulesTable } from '../../storage/tables/notification-tables.ts'
import type { WebhookDeliveriesTable } from '../../storage/tables/tables.ts'
import { findEnvironmentName } from '../accounts/accounts.sql.ts'
import { type Actor, type ApiKeyUse, recordAudit, toActor } from '../audit-log/audit-log.ts'
import { newDelivery } from '../webhooks/webhook-deliveries.ts'
import { createSecret, eraseDeliveries } from '../webhooks/webhook-endpoints.ts'
import { type Channel, linksTo, type NotificationEventType, toTestMessage } from './notification-message.ts'
import { findRule, lastMessages, targetAad } from './notifications.sql.ts'

export const rulesMax = 20

export const ruleDefaults = { notStartedSeconds: 900, failurePercent: 50 }

/** Between two tests of a rule. */
const testMilliseconds = 60_000

export interface NotificationRule {
  id: string
  name: string
  events: NotificationEventType[]
  channel: Channel
  recipients: string[]
  /** Of the webhook's address; `null` for email. */
  host: string | null
  /** Empty for all. */
  workflowIds: string[]
  notStartedSeconds: number
  failurePercent: number
  enabled: boolean
  /** Whether messages have errors, tags and key figures of runs, and questions of waits. */
  details: boolean
  /** Whether messages about waits have a link by which a reader answers. */
  answerLinks: boolean
  createdAt: number
  lastMessage: WebhookDeliveriesTable | null
}

export interface RuleChange {
  name?: string | undefined
  events?: readonly NotificationEventType[] | undefined
  recipients?: readonly string[] | undefined
  url?: string | undefined
  workflowIds?: readonly string[] | undefined
  notStartedSeconds?: number | undefined
  failurePercent?: number | undefined
  enabled?: boolean | undefined
  details?: boolean | undefined
  /** The links have the rights of who sets it. */
  answerLinks?: boolean | undefined
}

export type NewRule = RuleChange & { name: string; events: readonly NotificationEventType[]; channel: Channel }

/** The encrypted part of a rule. */
export interface RuleTarget {
  url: string
  /** `undefined` for Slack. */
  secret?: string | undefined
}

export interface NotificationDependencies {
  store: Store
  encryption: Encryption
  cursors: Cursors
  /** Where links of messages lead. Known when the service listens. */
  dashboard: { url: string }
  now?: () => number
}

export class NotificationRules {
  readonly #dependencies: NotificationDependencies
  readonly #now: () => number

  constructor(dependencies: NotificationDependencies) {
    this.#dependencies = dependencies
    this.#now = dependencies.now ?? Date.now
  }

  /**
   * Returns the rule with the secret of its signatures, which is not shown again; `undefined` when the account has
   * `rulesMax`, and `repeated` when the id was used before.
   *
   * @throws {Problem} if the document does not allow a member; `update` does, too.
   */
  async create(accountId: string, given: NewRule, by: Actor | ApiKeyUse, id = uuid()) {
    requireValidRule(given)
    const secret = given.channel === 'webhook' ? createSecret() : null
    const target = given.url === undefined ? null : { url: given.url, ...(secret !== null && { secret }) }
    const row: NotificationRulesTable = {
      id,
      account_id: accountId,
      name: given.name,
      channel: given.channel,
      checked_until: 0,
      created_at: this.#now(),
      ...toColumns(given),
      ...toLinkCreator(given.answerLinks ?? false, by),
      ...this.#toTarget(accountId, id, target),
    }
    const result = await this.#dependencies.store.write(async (tx) => {
      const same = tx.query.selectFrom('notification_rules').select('id').where('id', '=', id)
      if (await same.executeTakeFirst()) return 'repeated'
      const ids = tx.query.selectFrom('notification_rules').select('id').where('account_id', '=', accountId)
      if ((await ids.execute()).length >= rulesMax) return 'tooMany'
      await tx.query.insertInto('notification_rules').values(row).execute()
      await audit(tx, row, 'notificationRule.created', by)
      return 'created'
    })
    if (result === 'tooMany') return undefined
    return result === 'repeated' ? result : { rule: toRule(row, undefined), secret }
  }

  async get(accountId: string, id: string): Promise<NotificationRule | undefined> {
    const row = await findRule(this.#dependencies.store.read, accountId, id)
    return row && toRule(row, (await this.#lastMessages(accountId)).get(row.id))
  }

  /** A page, newest first; `undefined` for a cursor of another list. */
  async list(accountId: string, request: PageRequest) {
    const { store, cursors } = this.#dependencies
    const all = store.read.query.selectFrom('notification_rules').selectAll().where('account_id', '=', accountId)
    const page = await cursors.page(['notification-rules', accountId], request, (after, limit) => {
      const rows = after === undefined ? all : all.where('id', '<', after)
      return rows.orderBy('id', 'desc').limit(limit).execute()
    })
    if (!page) return undefined
    const messages = page.rows.length === 0 ? undefined : await this.#lastMessages(accountId)
    return { rules: page.rows.map((row) => toRule(row, messages?.get(row.id))), nextCursor: page.nextCursor }
  }

  async #lastMessages(accountId: string): Promise<Map<string, WebhookDeliveriesTable>> {
    const rows = await this.#dependencies.store.read.all(lastMessages, [accountId])
    return new Map(rows.map((row) => [row.endpoint_id, row]))
  }

  /** Returns `undefined` if there is no such rule. */
  async update(accountId: string, id: string, change: RuleChange, by: Actor | ApiKeyUse) {
    const { store, encryption } = this.#dependencies
    requireValidRule(change)
    const changed = await store.write(async (tx) => {
      const row = await findRule(tx, accountId, id)
      if (!row) return undefined
      const before = row.target && JSON.parse(encryption.decrypt(row.target, targetAad(accountId, row.id)))
      const target = change.url === undefined ? {} : this.#toTarget(accountId, row.id, { ...before, url: change.url })
      // Runs that began to wait while the rule was disabled are not reported.
      const restart = change.enabled && row.enabled === 0 ? { checked_until: 0 } : {}
      const links = change.answerLinks === undefined ? {} : toLinkCreator(change.answerLinks, by)
      const set = { ...toColumns({ ...toRule(row, undefined), ...defined(change) }), ...links, ...target, ...restart }
      const name = change.name ?? row.name
      await tx.query
        .updateTable('notification_rules')
        .set({ ...set, name })
        .where('id', '=', row.id)
        .execute()
      await audit(tx, { ...row, name }, 'notificationRule.changed', by, change)
      return row.id
    })
    return changed === undefined ? undefined : this.get(accountId, changed)
  }

  /** Erases the rule with its messages. Returns whether it existed. */
  async delete(accountId: string, id: string, by: Actor | ApiKeyUse): Promise<boolean> {
    const { store } = this.#dependencies
    const deleted = await store.write(async (tx) => {
      const row = await findRule(tx, accountId, id)
      if (!row) return undefined
      await tx.query.deleteFrom('notification_rules').where('id', '=', row.id).execute()
      await tx.query.deleteFrom('notification_groups').where('rule_id', '=', row.id).execute()
      await audit(tx, row, 'notificationRule.deleted', by)
      return row.id
    })
    if (deleted === undefined) return false
    await eraseRest(store, true, (tx) => eraseDeliveries(tx, deleted))
    return true
  }

  /** Queues a test message, or returns the one of the last minute; `undefined` if there is no such rule. */
  async sendTest(accountId: string, id: string, by: Actor | ApiKeyUse): Promise<WebhookDeliveriesTable | undefined> {
    const { store, dashboard } = this.#dependencies
    const at = this.#now()
    const message = await store.write(async (tx) => {
      const rule = await findRule(tx, accountId, id)
      if (!rule) return undefined
      const sent = tx.query.selectFrom('webhook_deliveries').selectAll().where('endpoint_id', '=', rule.id)
      const recent = sent.where('event', '=', 'notification.test').where('created_at', '>', at - testMilliseconds)
      const repeated = await recent.orderBy('id', 'desc').limit(1).executeTakeFirst()
      if (repeated) return repeated
      const link = linksTo(dashboard.url, await findEnvironmentName(tx, accountId))
      const body = JSON.stringify(toTestMessage(rule, link, at))
      const row = newDelivery({ endpointId: rule.id, accountId, event: 'notification.test', at, body })
      await tx.query.insertInto('webhook_deliveries').values(row).execute()
      await audit(tx, rule, 'notificationRule.tested', by, { messageId: row.id })
      return row
    })
    if (message) store.notify('runs')
    return message
  }

  /** The newest messages of the rule, at most 50. */
  async messages(accountId: string, id: string): Promise<WebhookDeliveriesTable[]> {
    const rows = this.#dependencies.store.read.query.selectFrom('webhook_deliveries').selectAll()
    const ofRule = rows.where('endpoint_id', '=', id).where('account_id', '=', accountId)
    return ofRule.orderBy('id', 'desc').limit(50).execute()
  }

  #toTarget(accountId: string, id: string, target: RuleTarget | null) {
    if (!target) return { target: null, host: null }
    const encrypted = this.#dependencies.encryption.encrypt(JSON.stringify(target), targetAad(accountId, id))
    return { target: encrypted, host: new URL(target.url).host }
  }
}

/** Responses have the host of the address, in ASCII, in place of the address. */
function requireValidRule(given: RuleChange): void {
  requireValid('CreateNotificationRuleRequest', given)
  if (given.url !== undefined) requireValid('NotificationRule', { host: new URL(given.url).host })
}

function defined(change: RuleChange): RuleChange {
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined))
}

function toColumns(given: Omit<RuleChange, 'url' | 'name'>) {
  return {
    events: JSON.stringify(given.events ?? []),
    recipients: JSON.stringify(given.recipients ?? []),
    workflow_ids: JSON.stringify(given.workflowIds ?? []),
    not_started_seconds: given.notStartedSeconds ?? ruleDefaults.notStartedSeconds,
    failure_percent: given.failurePercent ?? ruleDefaults.failurePercent,
    enabled: given.enabled === false ? 0 : 1,
    details: given.details === false ? 0 : 1,
  } as const
}

function toLinkCreator(isOn: boolean, by: Actor | ApiKeyUse) {
  const creator =
    'apiKeyId' in by ? { links_key_id: by.apiKeyId, links_user_id: null } : { links_key_id: null, links_user_id: by.id }
  return isOn ? creator : { links_key_id: null, links_user_id: null }
}

function toRule(row: NotificationRulesTable, lastMessage: WebhookDeliveriesTable | undefined): NotificationRule {
  return {
    id: row.id,
    name: row.name,
    events: JSON.parse(row.events),
    channel: row.channel,
    recipients: JSON.parse(row.recipients),
    host: row.host,
    workflowIds: JSON.parse(row.workflow_ids),
    notStartedSeconds: row.not_started_seconds,
    failurePercent: row.failure_percent,
    enabled: row.enabled === 1,
    details: row.details === 1,
    answerLinks: row.links_key_id !== null || row.links_user_id !== null,
    createdAt: row.created_at,
    lastMessage: lastMessage ?? null,
  }
}

type RuleAction = `notificationRule.${'created' | 'changed' | 'tested' | 'deleted'}`

async function audit(
  tx: Transaction,
  { id, account_id, name }: NotificationRulesTable,
  action: RuleAction,
  by: Actor | ApiKeyUse,
  details: object = {},
): Promise<void> {
  // The path of a webhook's URL is a credential.
  const shown = 'url' in details ? { ...details, url: new URL(String(details.url)).host } : { ...details }
  await recordAudit(tx, account_id, { action, by: await toActor(tx, by), subject: { id, name }, details: shown })
}
