/** Template of the page of a delivery: its last request and response, as they are kept. */
import type { WebhookEndpoint } from '../../../domain/webhooks/webhook-endpoints.ts'
import type { WebhookDeliveriesTable } from '../../../storage/tables/webhook-tables.ts'
import { formatDuration, time } from '../format.ts'
import { backLink, copyable, copyableId, facts, type Html, heading, html, nothing, notice } from '../html.ts'
import { runLink } from '../runs/run-labels.ts'
import { deliveryBadge, endpointPath, shortUrl } from './webhook-labels.ts'

export function renderDelivery(endpoint: WebhookEndpoint, row: WebhookDeliveriesTable, message?: string): Html {
  const lead = copyableId('delivery-id', row.id, 'Copy webhook-id')
  const none = html`<span class="muted">–</span>`
  return html`${backLink(endpointPath(endpoint), shortUrl(endpoint))}
    ${message ? notice('good', message) : nothing}
    <div id="delivery">
      ${deliveryBadge(row)} ${heading(row.event, { lead, actions: renderRedeliver(endpoint, row) })}
      ${row.error === null ? nothing : notice('warning', row.error)}
      <section class="card">
        ${facts([
          ['Run', row.run_id === null ? html`<span class="muted">none: a test event</span>` : runLink(row.run_id)],
          ['Attempts', `${row.attempts}`],
          ['Last attempt', time(row.last_attempt_at, 'exact')],
          ['Latency', row.latency_ms === null ? none : formatDuration(row.latency_ms)],
          ['Next attempt', row.status === 'pending' ? describeNext(endpoint, row) : none],
          ['Created', time(row.created_at, 'exact')],
        ])}
      </section>
      <div class="pair">${renderRequest(row)} ${renderResponse(row)}</div>
    </div>`
}

function describeNext({ disabledReason }: WebhookEndpoint, { next_attempt_at }: WebhookDeliveriesTable): Html {
  if (disabledReason !== null) return html`when the endpoint is enabled`
  return next_attempt_at !== null && next_attempt_at <= Date.now() ? html`now` : time(next_attempt_at, 'exact')
}

function renderRedeliver(endpoint: WebhookEndpoint, { id, status }: WebhookDeliveriesTable): Html {
  const label = status === 'pending' ? 'Retry now' : 'Redeliver'
  return html`<form method="post" action="${endpointPath(endpoint)}/deliveries/${id}/redeliver"><button>${label}</button></form>`
}

function renderRequest({ request_url, request_body }: WebhookDeliveriesTable): Html {
  const content =
    request_body === null
      ? html`<p class="muted">Not sent yet.</p>`
      : html`<p><code>POST ${request_url}</code></p>${copyable('request-body', formatJson(request_body), { label: 'Copy request' })}`
  return html`<section class="card"><h2>Last request</h2>${content}</section>`
}

function renderResponse({ response_status, response_body, last_attempt_at }: WebhookDeliveriesTable): Html {
  const none = last_attempt_at === null ? 'Not sent yet.' : 'There was no response.'
  const body =
    response_body !== null && response_body !== ''
      ? copyable('response-body', response_body, { label: 'Copy response' })
      : html`<p class="muted">The body was empty.</p>`
  const content =
    response_status === null
      ? html`<p class="muted">${none}</p>`
      : html`<p>Status <strong>${response_status}</strong>. The first 1,024 characters of the body are kept.</p>${body}`
  return html`<section class="card"><h2>Last response</h2>${content}</section>`
}

/** The request's body is JSON that the service wrote. */
function formatJson(text: string): string {
  return JSON.stringify(JSON.parse(text), null, 2)
}
