/** How pages describe a webhook endpoint and a delivery. */
import type { DisabledReason, WebhookEndpoint } from '../../../domain/webhooks/webhook-endpoints.ts'
import { countedMax } from '../../../domain/webhooks/webhooks.sql.ts'
import type { WebhookDeliveriesTable } from '../../../storage/tables/tables.ts'
import { badge, type Html, html, nothing } from '../html.ts'

export function endpointPath({ id }: Pick<WebhookEndpoint, 'id'>): string {
  return `/webhooks/${id}`
}

/** Without the query, which may be long. The path of a URL may contain a credential, but users of the account may see it. */
export function shortUrl({ url }: WebhookEndpoint): string {
  const { host, pathname } = new URL(url)
  const text = `${host}${pathname === '/' ? '' : pathname}`
  return text.length > urlLengthMax ? `${text.slice(0, urlLengthMax)}…` : text
}

const urlLengthMax = 60

export function endpointBadge({ disabledReason }: WebhookEndpoint): Html {
  if (disabledReason === null) return badge('good', 'Enabled')
  return disabledReason === 'request' ? badge('quiet', 'Paused') : badge('bad', 'Disabled')
}

export const disabledMessages: Record<DisabledReason, string> = {
  request:
    'This endpoint is paused. It gets no events of runs that end now; pending deliveries wait until you enable it.',
  deliveriesFailed:
    'This endpoint was disabled: deliveries failed for three days, and none was accepted in that time. Enable it when its receiver works again, and redeliver what it missed.',
  gone: 'This endpoint was disabled: it responded with 410 Gone. Enable it if that was a mistake.',
}

type Delivery = Pick<WebhookDeliveriesTable, 'status' | 'attempts' | 'last_attempt_at' | 'error'>

export function deliveryBadge({ status, attempts, last_attempt_at, error }: Delivery): Html {
  if (status === 'delivered') return badge('good', 'Delivered')
  if (status === 'failed') return badge('bad', 'Failed')
  if (error !== null) return badge('warning', 'Retrying')
  return attempts > 0 && last_attempt_at === null ? badge('busy', 'Sending') : badge('waiting', 'Pending')
}

export function formatCount(count: number): Html | string {
  if (count === 0) return html`<span class="muted">0</span>`
  return count < countedMax ? `${count}` : `${countedMax.toLocaleString('en')} or more`
}

/** Events without their common beginning, such as `succeeded, failed`. */
export function renderEvents({ events, workflowIds, tags }: WebhookEndpoint): Html {
  const names = events.length === 5 ? 'all' : events.map((event) => event.replace('run.', '')).join(', ')
  const filters = [...workflowIds, ...tags.map((tag) => `#${tag}`)].join(', ')
  return html`<div class="stack">${names}${filters ? html` <small>${filters}</small>` : nothing}</div>`
}
