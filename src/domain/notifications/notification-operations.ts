/** The Execution API's operations on notification rules. */
import type { BlockList } from 'node:net'
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import type { components } from '../../../generated/execution.v1/types.ts'
import { invalidRequest } from '../../contract/problem.ts'
import type { WebhookDeliveriesTable } from '../../storage/tables/tables.ts'
import type { Principal } from '../api-keys/api-key.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { notFound, toTimestamp, wrongCursor } from '../problems.ts'
import type { Waits } from '../run-api/waits.ts'
import { findUrlError } from '../webhooks/send-webhook.ts'
import { findUnknownWorkflows } from '../webhooks/webhook-operations.ts'
import type { Channel } from './notification-message.ts'
import { type NotificationRule, type NotificationRules, type RuleChange, rulesMax } from './notification-rules.ts'
import { findForbiddenAddress } from './send-mail.ts'

type Operations = Pick<
  ExecutionV1Handlers<Principal>,
  | 'listNotificationRules'
  | 'createNotificationRule'
  | 'getNotificationRule'
  | 'updateNotificationRule'
  | 'deleteNotificationRule'
  | 'testNotificationRule'
>

type Schemas = components['schemas']

const noRule = notFound('notification rule')

const mayNotAnswer: MemberError = {
  pointer: '/answerLinks',
  detail: 'must not be true: the API key lacks the scope waits:write, which its links need',
}

const tooManyRules = {
  status: 409,
  problem: {
    kind: 'too-many-notification-rules',
    detail: `This account has ${rulesMax} notification rules. Delete one to create another. Nothing was stored.`,
  },
} as const

export interface NotificationOperationsDependencies {
  workflows: WorkflowRegistry
  notificationRules: NotificationRules
  waits: Pick<Waits, 'mayAnswer'>
  /** Whether the operator has set an SMTP server. */
  sendsMail: boolean
  /** To whose addresses emails may be sent; `undefined` for all. */
  mailDomains?: readonly string[] | undefined
  /** Private addresses that webhooks may reach. */
  webhookPrivateAddresses: BlockList | undefined
}

export interface MemberError {
  pointer: string
  detail: string
}

type Members = Pick<RuleChange, 'recipients' | 'url'>

/** Members that the channel needs or cannot have. @param isNew whether those that it needs must be there. */
export function findChannelErrors(channel: Channel, { recipients, url }: Members, isNew: boolean): MemberError[] {
  const errors: MemberError[] = []
  const add = (pointer: string, detail: string) => errors.push({ pointer, detail })
  if (channel === 'email') {
    if (url !== undefined) add('/url', 'must be absent for the channel email')
    if (recipients?.length === 0 || (isNew && recipients === undefined))
      add('/recipients', 'must have at least one address for the channel email')
    return errors
  }
  if (recipients !== undefined && recipients.length > 0)
    add('/recipients', `must be absent or empty for the channel ${channel}`)
  if (url === undefined && isNew) add('/url', `is required for the channel ${channel}`)
  return errors
}

type Installation = Pick<NotificationOperationsDependencies, 'sendsMail' | 'mailDomains' | 'webhookPrivateAddresses'>

/** What this installation cannot send, or must not. */
export function findTargetErrors(
  channel: Channel,
  { url, recipients = [] }: Members,
  isNew: boolean,
  { sendsMail, mailDomains, webhookPrivateAddresses }: Installation,
): MemberError[] {
  if (channel === 'email') {
    const detail = 'must not be email: the operator has not set SMTP_URL'
    if (isNew && !sendsMail) return [{ pointer: '/channel', detail }]
    const forbidden = findForbiddenAddress(recipients, mailDomains)
    if (forbidden === undefined) return []
    return [
      { pointer: '/recipients', detail: `must not have ${forbidden}: the operator permits ${mailDomains?.join(', ')}` },
    ]
  }
  const error = url === undefined ? undefined : findUrlError(url, webhookPrivateAddresses)
  return error === undefined ? [] : [{ pointer: '/url', detail: error }]
}

export function notificationOperations(dependencies: NotificationOperationsDependencies): Operations {
  const { notificationRules: rules, workflows, waits } = dependencies
  const findInvalid = async (
    { accountId, apiKeyId }: Principal,
    channel: Channel,
    change: RuleChange,
    before: NotificationRule | undefined,
  ) => {
    const ids = findUnknownWorkflows(change, workflows.current(accountId), before?.workflowIds)
    const isNew = before === undefined
    const errors = [
      ...findChannelErrors(channel, change, isNew),
      ...findTargetErrors(channel, change, isNew, dependencies),
      ...ids,
      ...(change.answerLinks && !(await waits.mayAnswer({ apiKeyId })) ? [mayNotAnswer] : []),
    ]
    return errors.length > 0 ? invalidRequest(errors) : undefined
  }
  return {
    async listNotificationRules({ principal, query }) {
      const page = await rules.list(principal.accountId, query)
      if (!page) return wrongCursor
      return { status: 200, body: { data: page.rules.map(toResponse), nextCursor: page.nextCursor } }
    },

    async createNotificationRule({ principal, body }) {
      const invalid = await findInvalid(principal, body.channel, body, undefined)
      if (invalid) return invalid
      const created = await rules.create(principal.accountId, body, principal)
      if (!created || created === 'repeated') return tooManyRules
      const { rule, secret } = created
      const headers = { Location: `/v1/execution/notification-rules/${rule.id}` }
      return { status: 201, headers, body: { ...toResponse(rule), secret } }
    },

    async getNotificationRule({ principal, path }) {
      const rule = await rules.get(principal.accountId, path.ruleId)
      return rule ? { status: 200, body: toResponse(rule) } : noRule
    },

    async updateNotificationRule({ principal, path, body }) {
      const rule = await rules.get(principal.accountId, path.ruleId)
      if (!rule) return noRule
      const invalid = await findInvalid(principal, rule.channel, body, rule)
      if (invalid) return invalid
      const changed = await rules.update(principal.accountId, path.ruleId, body, principal)
      return changed ? { status: 200, body: toResponse(changed) } : noRule
    },

    async deleteNotificationRule({ principal, path }) {
      const deleted = await rules.delete(principal.accountId, path.ruleId, principal)
      return deleted ? { status: 204 } : noRule
    },

    async testNotificationRule({ principal, path }) {
      const message = await rules.sendTest(principal.accountId, path.ruleId, principal)
      return message ? { status: 202, body: toMessageResponse(message) } : noRule
    },
  }
}

function toResponse({ lastMessage, createdAt, ...rule }: NotificationRule): Schemas['NotificationRule'] {
  return {
    ...rule,
    createdAt: toTimestamp(createdAt),
    lastMessage: lastMessage && toMessageResponse(lastMessage),
  }
}

function toMessageResponse(row: WebhookDeliveriesTable): Schemas['NotificationMessage'] {
  return {
    id: row.id,
    status: row.status as Schemas['NotificationMessage']['status'],
    attempts: row.attempts,
    createdAt: toTimestamp(row.created_at),
    nextAttemptAt: toTimestamp(row.next_attempt_at),
    lastAttemptAt: toTimestamp(row.last_attempt_at),
    error: row.error,
  }
}
