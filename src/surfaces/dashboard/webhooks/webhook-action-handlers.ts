/** Actions on a webhook endpoint: pause, test, rotate the secret, redeliver, delete. */
import { setTimeout as delay } from 'node:timers/promises'
import type { WebhookEndpoint } from '../../../domain/webhooks/webhook-endpoints.ts'
import type { WebhookDeliveriesTable } from '../../../storage/tables/tables.ts'
import type { Dependencies } from '../dependencies.ts'
import { formatLocalTime, parseLocalTime, parseZone } from '../format.ts'
import { orNotFound, type PageHandler, type PageResult } from '../page-handler.ts'
import {
  type RedeliveryForm,
  renderEndpointDeletion,
  renderRedelivery,
  renderSecret,
  renderSecretRotation,
} from './endpoint-form.ts'
import { endpointPath } from './webhook-labels.ts'
import { findEndpoint, redirectTo, webhookTab } from './webhook-pages.ts'

export const setEnabled: PageHandler = async ({ account, params, form, actor }, { webhookEndpoints }) => {
  const enabled = form.get('enabled') === 'true'
  const changed = orNotFound(await webhookEndpoints.update(account.id, params.id ?? '', { enabled }, actor))
  return redirectTo(changed, enabled ? 'enabled' : 'paused')
}

export const sendTest: PageHandler = async (request, deps) => {
  const endpoint = await findEndpoint(request, deps)
  const sent = await deps.webhookDeliveries.sendTest(request.account.id, endpoint.id, request.actor)
  return showAttempt(endpoint, orNotFound(sent), deps)
}

export const redeliver: PageHandler = async (request, deps) => {
  const endpoint = await findEndpoint(request, deps)
  const { account, params, actor } = request
  const sent = await deps.webhookDeliveries.redeliver(account.id, endpoint.id, params.delivery ?? '', actor)
  return showAttempt(endpoint, orNotFound(sent), deps)
}

/** How long a page waits for the attempt that it has started, so that it can show the response. None starts while paused. */
const attemptWait = { milliseconds: 2000, interval: 50 }

async function showAttempt(
  { disabledReason }: WebhookEndpoint,
  sent: WebhookDeliveriesTable,
  { webhookDeliveries }: Dependencies,
): Promise<PageResult> {
  const deadline = performance.now() + (disabledReason === null ? attemptWait.milliseconds : 0)
  let row: WebhookDeliveriesTable | undefined = sent
  while (row?.status === 'pending' && row.last_attempt_at === sent.last_attempt_at && performance.now() < deadline) {
    await delay(attemptWait.interval)
    row = await webhookDeliveries.get(sent.account_id, sent.endpoint_id, sent.id)
  }
  return { location: `${endpointPath({ id: sent.endpoint_id })}/deliveries/${sent.id}?sent` }
}

export const confirmSecretRotation: PageHandler = async (request, deps) =>
  webhookTab('Rotate the secret', renderSecretRotation(await findEndpoint(request, deps)))

export const rotateSecret: PageHandler = async ({ account, params, form, actor }, { webhookEndpoints }) => {
  const id = params.id ?? ''
  const overlapEnd = Number(form.get('overlapEnd') ?? '') || null
  const rotated = orNotFound(await webhookEndpoints.rotateSecret(account.id, id, actor, overlapEnd))
  if (rotated === 'repeated') return redirectTo({ id }, 'rotated')
  return webhookTab('Secret rotated', renderSecret(rotated.endpoint, rotated.secret))
}

export const showRedelivery: PageHandler = async (request, deps) => {
  const endpoint = await findEndpoint(request, deps)
  const since = Number(request.query.get('since') ?? '')
  const isTime = Number.isSafeInteger(since) && since > 0 && since <= Date.now()
  const form = { since: isTime ? formatLocalTime(since, 'UTC') : '', zone: 'UTC', status: 'failed' }
  return webhookTab('Redeliver events', renderRedelivery(endpoint, form))
}

export const redeliverSince: PageHandler = async (request, deps) => {
  const { account, form: fields, actor } = request
  const endpoint = await findEndpoint(request, deps)
  const form: RedeliveryForm = {
    since: fields.get('since') ?? '',
    zone: parseZone(fields.get('zone') ?? ''),
    status: fields.get('status') === 'failed' ? 'failed' : '',
  }
  const since = parseLocalTime(form.since, form.zone)
  if (since === undefined) {
    const body = renderRedelivery(endpoint, { ...form, error: 'Enter a date and a time.' })
    return webhookTab('Redeliver events', body, 400)
  }
  const wanted = { since, status: form.status === 'failed' ? ('failed' as const) : undefined }
  const { count, nextSince } = orNotFound(
    await deps.webhookDeliveries.redeliverSince(account.id, endpoint.id, wanted, actor),
  )
  const next = nextSince === null ? '' : `&next=${nextSince}`
  return { location: `${endpointPath(endpoint)}?done=redelivered&count=${count}${next}` }
}

export const confirmEndpointDeletion: PageHandler = async (request, deps) =>
  webhookTab('Delete webhook endpoint', renderEndpointDeletion(await findEndpoint(request, deps)))

export const deleteEndpoint: PageHandler = async ({ account, params, actor }, { webhookEndpoints }) => {
  orNotFound(await webhookEndpoints.delete(account.id, params.id ?? '', actor))
  return { location: '/webhooks?done=deleted' }
}
