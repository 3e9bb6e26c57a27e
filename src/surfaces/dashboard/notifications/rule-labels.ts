/** How pages describe a notification rule. */
import type { Channel, NotificationEventType } from '../../../domain/notifications/notification-message.ts'
import type { NotificationRule } from '../../../domain/notifications/notification-rules.ts'
import { badge, type Html } from '../html.ts'

export const rulesPath = '/settings/notifications'

export function rulePath({ id }: Pick<NotificationRule, 'id'>): string {
  return `${rulesPath}/${id}`
}

export const channelLabels: Record<Channel, string> = {
  email: 'Email',
  slack: 'Slack-compatible webhook',
  webhook: 'Signed webhook',
}

export const eventLabels: Record<NotificationEventType, string> = {
  'run.failed': 'Run failed',
  'run.timedOut': 'Run timed out',
  'run.expired': 'Run expired',
  'run.waiting': 'Run waits for a person',
  'run.notStarted': 'Run does not start',
  'workflow.failing': 'Workflow fails often',
  'webhookEndpoint.disabled': 'Webhook endpoint disabled',
  'schedule.paused': 'Schedule paused',
  'browserContext.needsSignIn': 'Browser context needs a sign-in',
}

export function ruleBadge({ enabled }: NotificationRule): Html {
  return enabled ? badge('good', 'Enabled') : badge('quiet', 'Paused')
}

/** Where the rule sends its messages. */
export function describeTarget({ channel, recipients, host }: NotificationRule): string {
  return channel === 'email' ? recipients.join(', ') : `${channelLabels[channel]} at ${host}`
}
