/** Templates of the list of webhook endpoints and of one endpoint's page. */
import type { DeliveryStatus, DeliverySummary } from '../../../domain/webhooks/webhook-deliveries.ts'
import { endpointsMax, type WebhookEndpoint } from '../../../domain/webhooks/webhook-endpoints.ts'
import type { WebhookDeliveriesTable } from '../../../storage/tables/webhook-tables.ts'
import { formatDuration, time } from '../format.ts'
import { backLink, copyableId, emptyState, facts, type Html, heading, html, nothing, notice, table } from '../html.ts'
import { runLink } from '../runs/run-labels.ts'
import {
  deliveryBadge,
  disabledMessages,
  endpointBadge,
  endpointPath,
  formatCount,
  renderEvents,
  shortUrl,
} from './webhook-labels.ts'

interface EndpointList {
  endpoints: WebhookEndpoint[]
  summaries: Map<string, DeliverySummary>
  done: string
}

const createButton = html`<a class="button" href="/webhooks/new">Create webhook endpoint</a>`

const listMessages = new Map([
  ['deleted', 'Webhook endpoint deleted, with its deliveries.'],
  ['repeated', 'This endpoint was already created. Its secret is shown only once: if you did not save it, rotate it.'],
])

export function renderEndpointList({ endpoints, summaries, done }: EndpointList): Html {
  const isEmpty = endpoints.length === 0
  const lead = `Addresses of yours that get a signed request for each run that ends. ${endpoints.length} of ${endpointsMax} in use.`
  const isFull = endpoints.length >= endpointsMax
  const message = listMessages.get(done)
  return html`${heading('Webhooks', { lead, ...(!isEmpty && !isFull && { actions: createButton }) })}
    ${message ? notice('good', message) : nothing}
    <div id="webhooks" data-live="/runs/changes">
      ${isEmpty ? noEndpoints : renderEndpointTable(endpoints, summaries)}
    </div>`
}

const noEndpoints = emptyState(
  'No webhook endpoints',
  html`<p>A webhook endpoint is your URL to which the service sends a request when a run ends, so that your programs need
      not ask for its status.</p>
    <p>Requests are signed, and repeated for three days until your receiver accepts them.</p>
    <p>${createButton}</p>`,
)

function renderEndpointTable(endpoints: WebhookEndpoint[], summaries: Map<string, DeliverySummary>): Html {
  const rows = endpoints.map((endpoint) => {
    const { last, pending = 0, failed = 0 } = summaries.get(endpoint.id) ?? {}
    return [
      html`<strong><a href="${endpointPath(endpoint)}">${shortUrl(endpoint)}</a></strong>`,
      renderEvents(endpoint),
      endpointBadge(endpoint),
      last
        ? html`<div class="stack">${deliveryBadge(last)} <small>${time(last.last_attempt_at ?? last.created_at)}</small></div>`
        : html`<span class="muted">none</span>`,
      formatCount(pending),
      formatCount(failed),
    ]
  })
  const columns = ['Address', 'Events', 'Status', 'Last delivery', 'Pending', 'Failed']
  return table(columns, rows, 'Webhook endpoints, newest first')
}

interface EndpointPage {
  endpoint: WebhookEndpoint
  summary: DeliverySummary | undefined
  deliveries: WebhookDeliveriesTable[]
  nextCursor: string | null
  status: DeliveryStatus | undefined
  isFirstPage: boolean
  message: Html | string | undefined
}

export function renderEndpoint(page: EndpointPage): Html {
  const { endpoint, message } = page
  const { disabledReason, url, createdAt, previousSecretExpiresAt, workflowIds, tags } = endpoint
  const lead = copyableId('endpoint-url', url, 'Copy address')
  const all = html`<span class="muted">all</span>`
  const overlap =
    previousSecretExpiresAt === null ? 'one secret' : html`two secrets until ${time(previousSecretExpiresAt, 'exact')}`
  return html`${backLink('/webhooks', 'Webhooks')}
    ${message ? notice('good', message) : nothing}
    <div id="webhook" data-live="/runs/changes">
      ${endpointBadge(endpoint)} ${heading(shortUrl(endpoint), { lead, actions: renderActions(endpoint) })}
      ${disabledReason === null ? nothing : notice(disabledReason === 'request' ? 'quiet' : 'warning', disabledMessages[disabledReason])}
      <section class="card">
        ${facts([
          ['Events', endpoint.events.join(', ')],
          ['Workflows', workflowIds.length === 0 ? all : workflowIds.join(', ')],
          ['Tags', tags.length === 0 ? all : tags.join(', ')],
          ['Signed with', overlap],
          ['Pending', formatCount(page.summary?.pending ?? 0)],
          ['Failed', formatCount(page.summary?.failed ?? 0)],
          ['Created', time(createdAt, 'exact')],
          ['ID', html`<code>${endpoint.id}</code>`],
        ])}
      </section>
      ${renderDeliveries(page)}
    </div>`
}

function renderActions(endpoint: WebhookEndpoint): Html {
  const path = endpointPath(endpoint)
  const isEnabled = endpoint.disabledReason === null
  return html`<form method="post" action="${path}/test"><button ${isEnabled ? nothing : html`disabled`}>Send test event</button></form>
    <form method="post" action="${path}/state">
      <input type="hidden" name="enabled" value="${isEnabled ? 'false' : 'true'}" />
      <button class="secondary">${isEnabled ? 'Pause' : 'Enable'}</button>
    </form>
    <a class="button secondary" href="${path}/edit">Edit</a>
    <a class="button secondary" href="${path}/rotate">Rotate secret</a>
    <a class="button secondary danger" href="${path}/delete">Delete</a>`
}

const statusChips: [status: DeliveryStatus | undefined, title: string][] = [
  [undefined, 'All'],
  ['pending', 'Pending'],
  ['delivered', 'Delivered'],
  ['failed', 'Failed'],
]

function renderDeliveries({ endpoint, deliveries, nextCursor, status, isFirstPage }: EndpointPage): Html {
  const path = endpointPath(endpoint)
  const link = (query: Record<string, string>) => {
    const text = new URLSearchParams({ ...(status && { status }), ...query }).toString()
    return `${path}${text && '?'}${text}`
  }
  const chips = statusChips.map(
    ([value, title]) =>
      html`<li><a href="${value ? `${path}?status=${value}` : path}" ${value === status ? html`aria-current="true"` : nothing}>${title}</a></li>`,
  )
  const none =
    status === undefined ? 'No run that matches has ended yet. Send a test event to try the receiver.' : 'None.'
  return html`<h2>Deliveries</h2>
    <p class="muted">Did your receiver miss events? <a href="${path}/redeliver">Redeliver events since a time</a>.</p>
    <nav class="chips" aria-label="Status of deliveries"><ul>${chips}</ul></nav>
    ${deliveries.length === 0 ? html`<p class="muted">${none}</p>` : renderDeliveryTable(endpoint, deliveries)}
    <p class="pages">
      ${isFirstPage ? nothing : html`<a href="${link({})}">← Newest</a>`}
      ${nextCursor === null ? nothing : html`<a href="${link({ cursor: nextCursor })}">Older →</a>`}
    </p>`
}

function renderDeliveryTable(endpoint: WebhookEndpoint, deliveries: WebhookDeliveriesTable[]): Html {
  const rows = deliveries.map((row) => [
    deliveryBadge(row),
    html`<a href="${endpointPath(endpoint)}/deliveries/${row.id}">${row.event}</a>`,
    row.run_id === null ? html`<span class="muted">test</span>` : runLink(row.run_id),
    time(row.created_at),
    `${row.attempts}`,
    describeResponse(row),
    row.latency_ms === null ? html`<span class="muted">–</span>` : formatDuration(row.latency_ms),
  ])
  const columns = ['Status', 'Event', 'Run', 'Created', 'Attempts', 'Response', 'Latency']
  return table(columns, rows, 'Deliveries, newest first')
}

function describeResponse({ response_status, error }: WebhookDeliveriesTable): Html | string {
  if (response_status !== null) return `${response_status}`
  return error === null ? html`<span class="muted">–</span>` : html`<span class="muted">none</span>`
}
