/** Where the dispatcher sends messages of rules, and emails to users who follow a run. */

import type { Encryption } from '../../storage/encryption.ts'
import { followersEndpoint } from '../../storage/runs/run-maintenance.ts'
import { statement } from '../../storage/store.ts'
import type { NotificationRulesTable } from '../../storage/tables/notification-tables.ts'
import type { WebhookDeliveriesTable } from '../../storage/tables/tables.ts'
import { findUserRow } from '../accounts/accounts.sql.ts'
import type { WebhookRequest, WebhookResult } from '../webhooks/send-webhook.ts'
import type { DeliverySource, DeliveryTarget, SentDelivery } from '../webhooks/webhook-dispatcher.ts'
import { signedHeaders } from '../webhooks/webhook-event.ts'
import { addDetails, type MessageDetailsDependencies } from './message-details.ts'
import { type Message, toMail, toSlackBody } from './notification-message.ts'
import type { RuleTarget } from './notification-rules.ts'
import { findDueRules, targetAad } from './notifications.sql.ts'
import type { Mail, MailResult } from './send-mail.ts'

/** Addresses that an account sends emails to within an hour at most. What is beyond it waits for another attempt. */
const mailsPerHour = 500

const hourMilliseconds = 3_600_000

export interface MessageTargetDependencies extends MessageDetailsDependencies {
  encryption: Encryption
  sender: { send(request: WebhookRequest, signal: AbortSignal): Promise<WebhookResult> }
  mailSender: { send(mail: Mail, signal: AbortSignal): Promise<MailResult> }
  /** Default `mailsPerHour`. */
  mailsMax?: number
}

const findDueFollowed = statement<{ account_id: string }, [endpointId: string, now: number]>(
  `SELECT account_id FROM webhook_deliveries
    WHERE endpoint_id = ? AND status = 'pending' AND next_attempt_at <= ? LIMIT 1`,
)

export function messageTargets(dependencies: MessageTargetDependencies): DeliverySource {
  const { store } = dependencies
  return {
    async findDue(now) {
      const [rules, followed] = await Promise.all([
        store.read.all(findDueRules, [now]),
        store.read.all(findDueFollowed, [followersEndpoint, now]),
      ])
      const targets = rules.map((rule): DeliveryTarget => toTarget(rule, dependencies))
      // Its share of the requests is that of an account.
      const followers = { id: followersEndpoint, account_id: followersEndpoint }
      if (followed.length === 0) return targets
      return [...targets, { ...followers, send: (request) => mailUser(request, dependencies) }]
    },
  }
}

type SendRequest = Parameters<DeliveryTarget['send']>[0]

function toTarget(rule: NotificationRulesTable, dependencies: MessageTargetDependencies): DeliveryTarget {
  const { id, account_id, channel, target } = rule
  return {
    id,
    account_id,
    async send(request) {
      const { row, at, signal } = request
      // A test is sent anyway. What is due again when the rule is enabled is sent.
      if (rule.enabled === 0 && row.event !== 'notification.test') return paused
      const message = await addDetails(JSON.parse(request.body), rule, dependencies)
      if (channel === 'email') return mail(row, message, JSON.parse(rule.recipients), signal, dependencies)
      if (target === null) throw new Error(`Rule ${id} has no address.`)
      const decrypted = dependencies.encryption.decrypt(target, targetAad(account_id, id))
      const { url, secret = '' }: RuleTarget = JSON.parse(decrypted)
      const body = JSON.stringify(message)
      const headers = { 'content-type': 'application/json', 'user-agent': 'execution-service' }
      const wanted =
        channel === 'slack'
          ? { url, headers, body: toSlackBody(message) }
          : { url, headers: signedHeaders(row.id, at, body, [secret]), body }
      // The path of the address is a credential.
      return { ...(await dependencies.sender.send(wanted, signal)), address: new URL(url).origin }
    },
  }
}

const paused: SentDelivery = { status: null, body: null, error: 'The rule is paused.', address: '', isFinal: true }

async function mailUser({ row, body, signal }: SendRequest, dependencies: MessageTargetDependencies) {
  const user = await findUserRow(dependencies.store.read, row.user_id ?? '')
  if (user?.role && user.email) return mail(row, JSON.parse(body), [user.email], signal, dependencies)
  const lack = user?.role ? 'The user has no email address.' : 'The user has no role any more.'
  const error = user ? lack : 'The user was removed.'
  return { status: null, body: null, error, address: 'mailto:', isFinal: true }
}

async function mail(
  { id, account_id }: WebhookDeliveriesTable,
  message: Message,
  to: readonly string[],
  signal: AbortSignal,
  { mailSender, store, mailsMax = mailsPerHour }: MessageTargetDependencies,
): Promise<SentDelivery> {
  const address = `mailto:${to.join(',')}`
  const count = (change: number) => store.counters.add(`notification-mails:${account_id}`, change, hourMilliseconds)
  if ((await count(to.length)).count > mailsMax) {
    await count(-to.length)
    const error = `This account has sent emails to ${mailsMax} addresses within an hour.`
    return { status: null, body: null, error, address }
  }
  const result = await mailSender.send({ id, to, ...toMail(message) }, signal)
  if (result.error !== null && !result.isFinal) await count(-to.length)
  return { ...result, address }
}
