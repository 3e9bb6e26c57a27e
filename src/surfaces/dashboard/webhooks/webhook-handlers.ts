/** The tab "Webhooks": endpoints and their deliveries. Every user of the account can do all of this. */
import { v7 as uuid } from 'uuid'
import type { DeliveryStatus } from '../../../domain/webhooks/webhook-deliveries.ts'
import { endpointsMax, type WebhookEndpoint } from '../../../domain/webhooks/webhook-endpoints.ts'
import { parseId } from '../../../storage/statement-values.ts'
import type { Dependencies } from '../dependencies.ts'
import { type Html, html } from '../html.ts'
import { formId, orNotFound, type Page, type PageHandler, type PageRequest } from '../page-handler.ts'
import { renderDelivery } from './delivery-template.ts'
import {
  type EndpointErrors,
  type EndpointForm,
  emptyForm,
  isEndpoint,
  parseEndpoint,
  submittedEndpoint,
  toForm,
} from './endpoint-form.ts'
import { renderEndpointForm, renderSecret } from './webhook-form-templates.ts'
import { endpointPath, shortUrl } from './webhook-labels.ts'
import { renderEndpoint, renderEndpointList } from './webhook-templates.ts'

const deliveriesPerPage = 50

export const listEndpoints: PageHandler = async ({ account, query }, { webhookEndpoints, webhookDeliveries }) => {
  const [page, summaries] = await Promise.all([
    webhookEndpoints.list(account.id, { limit: endpointsMax }),
    webhookDeliveries.summaries(account.id),
  ])
  const endpoints = page?.endpoints ?? []
  return webhookTab('Webhooks', renderEndpointList({ endpoints, summaries, done: query.get('done') ?? '' }))
}

export const showNewEndpoint: PageHandler = async ({ account }, { webhookEndpoints }) => {
  const page = await webhookEndpoints.list(account.id, { limit: endpointsMax })
  const isFull = (page?.endpoints.length ?? 0) >= endpointsMax
  return newEndpointPage(uuid(), emptyForm, {}, isFull ? tooMany : undefined)
}

const tooMany = `This account has ${endpointsMax} webhook endpoints. Delete one to create another.`

export const createEndpoint: PageHandler = async (request, { webhookEndpoints, webhookPrivateAddresses }) => {
  const { account, form: fields, actor } = request
  const form = submittedEndpoint(fields)
  // Other versions of UUIDs are not found again.
  const id = parseId(formId(fields)) ?? uuid()
  const parsed = parseEndpoint(form, webhookPrivateAddresses)
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
  const parsed = parseEndpoint(form, deps.webhookPrivateAddresses)
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
  const [endpoint, delivery] = await Promise.all([findEndpoint(request, deps), findDelivery(request, deps)])
  const message = request.query.has('sent') ? 'The event was queued to be sent.' : undefined
  return webhookTab(
    delivery.event,
    renderDelivery(endpoint, delivery, delivery.status === 'pending' ? message : undefined),
  )
}

export async function findEndpoint({ account, params }: PageRequest, { webhookEndpoints }: Dependencies) {
  return orNotFound(await webhookEndpoints.get(account.id, params.id ?? ''))
}

async function findDelivery({ account, params }: PageRequest, { webhookDeliveries }: Dependencies) {
  return orNotFound(await webhookDeliveries.get(account.id, params.id ?? '', params.delivery ?? ''))
}

export function redirectTo(endpoint: Pick<WebhookEndpoint, 'id'>, done: string): { location: string } {
  return { location: `${endpointPath(endpoint)}?done=${done}` }
}

export function webhookTab(title: string, body: Html, status = 200): Page {
  return { title, tab: 'webhooks', body, status }
}
