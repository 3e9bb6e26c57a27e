/** The tab "Webhooks": endpoints and their deliveries. */
import { v7 as uuid } from 'uuid'
import type { User } from '../../../domain/accounts/user.ts'
import type { DeliveryStatus, DeliverySummary } from '../../../domain/webhooks/webhook-deliveries.ts'
import { endpointsMax, type WebhookEndpoint } from '../../../domain/webhooks/webhook-endpoints.ts'
import { parseId } from '../../../storage/statement-values.ts'
import type { WebhookDeliveriesTable } from '../../../storage/tables/tables.ts'
import type { Dependencies } from '../dependencies.ts'
import { formatDuration, time } from '../format.ts'
import {
  backLink,
  copyable,
  copyableId,
  emptyState,
  facts,
  type Html,
  heading,
  html,
  nothing,
  notice,
  table,
} from '../html.ts'
import { formId, orNotFound, type Page, type PageHandler, type PageRequest } from '../page-handler.ts'
import { may } from '../page-roles.ts'
import { runLink } from '../runs/run-labels.ts'
import {
  type EndpointErrors,
  type EndpointForm,
  emptyForm,
  isEndpoint,
  parseEndpoint,
  renderEndpointForm,
  renderSecret,
  submittedEndpoint,
  toForm,
} from './endpoint-form.ts'
import {
  deliveryBadge,
  disabledMessages,
  endpointBadge,
  endpointPath,
  formatCount,
  renderEvents,
  shortUrl,
} from './webhook-labels.ts'

const deliveriesPerPage = 50

export const listEndpoints: PageHandler = async ({ account, user, query }, { webhookEndpoints, webhookDeliveries }) => {
  const [page, summaries] = await Promise.all([
    webhookEndpoints.list(account.id, { limit: endpointsMax }),
    webhookDeliveries.summaries(account.id),
  ])
  const endpoints = page?.endpoints ?? []
  const isEmpty = endpoints.length === 0
  const lead = `Addresses of yours that get a signed request for each run that ends. ${endpoints.length} of ${endpointsMax} in use.`
  const isFull = endpoints.length >= endpointsMax
  const message = listMessages.get(query.get('done') ?? '')
  const body = html`${heading('Webhooks', { lead, ...(!isEmpty && !isFull && { actions: createButton(user) }) })}
    ${message ? notice('good', message) : nothing}
    <div id="webhooks" data-live="/runs/changes">
      ${isEmpty ? noEndpoints(user) : renderEndpointTable(endpoints, summaries)}
    </div>`
  return webhookTab('Webhooks', body)
}

export const showNewEndpoint: PageHandler = async ({ account }, { webhookEndpoints }) => {
  const page = await webhookEndpoints.list(account.id, { limit: endpointsMax })
  const isFull = (page?.endpoints.length ?? 0) >= endpointsMax
  return newEndpointPage(uuid(), emptyForm, {}, isFull ? tooMany : undefined)
}

const tooMany = `This account has ${endpointsMax} webhook endpoints. Delete one to create another.`

export const createEndpoint: PageHandler = async (
  request,
  { webhookEndpoints, webhookPrivateAddresses, workflows },
) => {
  const { account, form: fields, actor } = request
  const form = submittedEndpoint(fields)
  // Other versions of UUIDs are not found again.
  const id = parseId(formId(fields)) ?? uuid()
  const current = workflows.current(account.id)
  const parsed = parseEndpoint(form, webhookPrivateAddresses, (id) => current.get(id) !== undefined)
  if (!isEndpoint(parsed)) return newEndpointPage(id, form, parsed, undefined, 400)
  const created = await webhookEndpoints.create(account.id, parsed, actor, id)
  if (created === 'repeated') return { location: '/webhooks?done=repeated' }
  if (!created) return newEndpointPage(id, form, {}, tooMany, 409)
  return webhookTab('Webhook endpoint created', renderSecret(created.endpoint, created.secret))
}

function newEndpointPage(id: string, form: EndpointForm, errors: EndpointErrors, limit?: string, status = 200): Page {
  return webhookTab('Create webhook endpoint', renderEndpointForm({ id, form, errors, limit }), status)
}

export const showEndpointChange: PageHandler = async (request, deps) => {
  const endpoint = await findEndpoint(request, deps)
  return webhookTab('Edit webhook endpoint', renderEndpointForm({ endpoint, form: toForm(endpoint), errors: {} }))
}

export const changeEndpoint: PageHandler = async (request, deps) => {
  const endpoint = await findEndpoint(request, deps)
  const form = submittedEndpoint(request.form)
  const current = deps.workflows.current(request.account.id)
  const isWorkflow = (id: string) => endpoint.workflowIds.includes(id) || current.get(id) !== undefined
  const parsed = parseEndpoint(form, deps.webhookPrivateAddresses, isWorkflow)
  if (!isEndpoint(parsed)) {
    return webhookTab('Edit webhook endpoint', renderEndpointForm({ endpoint, form, errors: parsed }), 400)
  }
  orNotFound(await deps.webhookEndpoints.update(request.account.id, endpoint.id, parsed, request.actor))
  return redirectTo(endpoint, 'changed')
}

const statuses: readonly string[] = ['pending', 'delivered', 'failed'] satisfies DeliveryStatus[]

export const showEndpoint: PageHandler = async (request, deps) => {
  const { account, query } = request
  const endpoint = await findEndpoint(request, deps)
  const chosen = query.get('status') ?? ''
  const status = statuses.includes(chosen) ? (chosen as DeliveryStatus) : undefined
  const cursor = query.get('cursor') ?? undefined
  const [page, summaries] = await Promise.all([
    deps.webhookDeliveries.list(account.id, endpoint.id, { limit: deliveriesPerPage, cursor, status }),
    deps.webhookDeliveries.summaries(account.id),
  ])
  // The cursor is invalid, for example because someone edited the address.
  if (page === 'wrongCursor') return { location: endpointPath(endpoint) }
  const body = renderEndpoint({
    ...orNotFound(page),
    endpoint,
    summary: summaries.get(endpoint.id),
    status,
    isFirstPage: cursor === undefined,
    message: endpointMessage(endpoint, query),
    user: request.user,
  })
  return webhookTab(shortUrl(endpoint), body)
}

const messages = new Map([
  ['changed', 'Webhook endpoint changed.'],
  ['paused', 'Webhook endpoint paused.'],
  ['enabled', 'Webhook endpoint enabled. Pending deliveries are sent now.'],
  ['rotated', 'The secret was already replaced. It is shown only once: if you did not save it, rotate it again.'],
])

/** What the action did that redirected to the page. */
function endpointMessage(endpoint: WebhookEndpoint, query: URLSearchParams): Html | string | undefined {
  const done = query.get('done') ?? ''
  if (done !== 'redelivered') return messages.get(done)
  const count = Number(query.get('count') ?? '')
  if (!Number.isSafeInteger(count) || count < 0) return undefined
  const text = `${count.toLocaleString('en')} ${count === 1 ? 'event is' : 'events are'} being sent again.`
  const next = Number(query.get('next') ?? Number.NaN)
  if (!query.has('next') || !Number.isSafeInteger(next)) return text
  return html`${text} There are more: <a href="${endpointPath(endpoint)}/redeliver?since=${next}">redeliver the next ones</a>.`
}

export const showDelivery: PageHandler = async (request, deps) => {
  const { account, params, query } = request
  const [endpoint, found] = await Promise.all([
    findEndpoint(request, deps),
    deps.webhookDeliveries.get(account.id, params.id ?? '', params.delivery ?? ''),
  ])
  const delivery = orNotFound(found)
  const isSent = query.has('sent') && delivery.status === 'pending'
  return webhookTab(delivery.event, renderDelivery(endpoint, delivery, isSent, request.user))
}

export async function findEndpoint({ account, params }: PageRequest, { webhookEndpoints }: Dependencies) {
  return orNotFound(await webhookEndpoints.get(account.id, params.id ?? ''))
}

export function redirectTo(endpoint: Pick<WebhookEndpoint, 'id'>, done: string): { location: string } {
  return { location: `${endpointPath(endpoint)}?done=${done}` }
}

export function webhookTab(title: string, body: Html, status = 200): Page {
  return { title, tab: 'webhooks', body, status }
}

// Templates of the list of webhook endpoints and of one endpoint's page.

const createButton = (user: User) =>
  may(user, 'GET /webhooks/new') ? html`<a class="button" href="/webhooks/new">Create webhook endpoint</a>` : html``

const listMessages = new Map([
  ['deleted', 'Webhook endpoint deleted, with its deliveries.'],
  ['repeated', 'This endpoint was already created. Its secret is shown only once: if you did not save it, rotate it.'],
])

const noEndpoints = (user: User) =>
  emptyState(
    'No webhook endpoints',
    html`<p>A webhook endpoint is your URL to which the service sends a request when a run ends, so that your programs need
      not ask for its status.</p>
    <p>Requests are signed, and repeated for three days until your receiver accepts them.</p>
    <p>${createButton(user)}</p>`,
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
  const columns = ['Address', 'Events', 'Status', 'Last delivery', { number: 'Pending' }, { number: 'Failed' }]
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
  user: User
}

function renderEndpoint(page: EndpointPage): Html {
  const { endpoint, message } = page
  const { disabledReason, url, createdAt, previousSecretExpiresAt, workflowIds, tags } = endpoint
  const lead = copyableId('endpoint-url', url, 'Copy address')
  const all = html`<span class="muted">all</span>`
  const overlap =
    previousSecretExpiresAt === null ? 'one secret' : html`two secrets until ${time(previousSecretExpiresAt, 'exact')}`
  return html`${backLink('/webhooks', 'Webhooks')}
    ${message ? notice('good', message) : nothing}
    <div id="webhook" data-live="/runs/changes">
      ${endpointBadge(endpoint)} ${heading(shortUrl(endpoint), { lead, actions: renderActions(endpoint, page.user) })}
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

function renderActions(endpoint: WebhookEndpoint, user: User): Html {
  if (!may(user, 'POST /webhooks/:id/edit')) return html``
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

function renderDeliveries({ endpoint, deliveries, nextCursor, status, isFirstPage, user }: EndpointPage): Html {
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
    ${may(user, 'GET /webhooks/:id/redeliver') ? html`<p class="muted">Did your receiver miss events? <a href="${path}/redeliver">Redeliver events since a time</a>.</p>` : nothing}
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

// Template of the page of a delivery: its last request and response, as they are kept.

function renderDelivery(endpoint: WebhookEndpoint, row: WebhookDeliveriesTable, isSent: boolean, user: User): Html {
  const isAllowed = may(user, 'POST /webhooks/:id/deliveries/:delivery/redeliver')
  const lead = copyableId('delivery-id', row.id, 'Copy webhook-id')
  const none = html`<span class="muted">–</span>`
  return html`${backLink(endpointPath(endpoint), shortUrl(endpoint))}
    ${isSent ? notice('good', 'The event was queued to be sent.') : nothing}
    <div id="delivery">
      ${deliveryBadge(row)} ${heading(row.event, { lead, ...(isAllowed && { actions: renderRedeliver(endpoint, row) }) })}
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
  const body = JSON.stringify(JSON.parse(request_body ?? '{}'), null, 2)
  const content =
    request_url === null || request_body === null
      ? html`<p class="muted">Not sent yet.</p>`
      : html`<p><code>POST ${request_url}</code></p>${copyable('request-body', body, { label: 'Copy request' })}`
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
