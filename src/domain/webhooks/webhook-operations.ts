/** The Execution API's operations on webhooks. */
import type { BlockList } from 'node:net'
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import type { components } from '../../../generated/execution.v1/types.ts'
import { invalidRequest } from '../../contract/problem.ts'
import type { WebhookDeliveriesTable } from '../../storage/tables/tables.ts'
import type { Principal } from '../api-keys/api-key.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { notFound, toTimestamp, wrongCursor } from '../problems.ts'
import type { Workflows } from '../workflows/workflows.ts'
import { findUrlError } from './send-webhook.ts'
import type { WebhookDeliveries } from './webhook-deliveries.ts'
import { type EndpointChange, endpointsMax, type WebhookEndpoint, type WebhookEndpoints } from './webhook-endpoints.ts'

type Operations = Pick<
  ExecutionV1Handlers<Principal>,
  | 'listWebhookEndpoints'
  | 'createWebhookEndpoint'
  | 'getWebhookEndpoint'
  | 'updateWebhookEndpoint'
  | 'deleteWebhookEndpoint'
  | 'rotateWebhookSecret'
  | 'sendTestWebhook'
  | 'listWebhookDeliveries'
  | 'redeliverWebhook'
  | 'redeliverWebhooks'
>

type Schemas = components['schemas']

const noEndpoint = notFound('webhook endpoint')

const tooManyEndpoints = {
  status: 409,
  problem: {
    kind: 'too-many-webhook-endpoints',
    detail: `This account has ${endpointsMax} webhook endpoints. Delete one to create another. Nothing was stored.`,
  },
} as const

const unknownWorkflow = 'is no workflow of this account'

/** @param known the workflows that the endpoint names already. */
export function findUnknownWorkflows(
  { workflowIds = [] }: Pick<EndpointChange, 'workflowIds'>,
  workflows: Pick<Workflows, 'get'>,
  known: readonly string[] = [],
): { pointer: string; detail: string }[] {
  return workflowIds.flatMap((id, index) =>
    known.includes(id) || workflows.get(id) ? [] : { pointer: `/workflowIds/${index}`, detail: unknownWorkflow },
  )
}

export interface WebhookDependencies {
  workflows: WorkflowRegistry
  webhookEndpoints: WebhookEndpoints
  webhookDeliveries: WebhookDeliveries
  /** Private addresses that webhooks may reach. */
  webhookPrivateAddresses: BlockList | undefined
}

export function webhookOperations({
  webhookEndpoints: endpoints,
  webhookDeliveries: deliveries,
  webhookPrivateAddresses,
  workflows,
}: WebhookDependencies): Operations {
  const findInvalid = ({ accountId }: Principal, change: EndpointChange, known: readonly string[]) => {
    const urlError = change.url === undefined ? undefined : findUrlError(change.url, webhookPrivateAddresses)
    const errors = findUnknownWorkflows(change, workflows.current(accountId), known)
    if (urlError !== undefined) errors.unshift({ pointer: '/url', detail: urlError })
    return errors.length > 0 ? invalidRequest(errors) : undefined
  }
  return {
    async listWebhookEndpoints({ principal, query }) {
      const page = await endpoints.list(principal.accountId, query)
      if (!page) return wrongCursor
      return { status: 200, body: { data: page.endpoints.map(toResponse), nextCursor: page.nextCursor } }
    },

    async createWebhookEndpoint({ principal, body }) {
      const invalid = findInvalid(principal, body, [])
      if (invalid) return invalid
      const created = await endpoints.create(principal.accountId, body, principal)
      if (!created || created === 'repeated') return tooManyEndpoints
      const { endpoint, secret } = created
      const headers = { Location: `/v1/execution/webhook-endpoints/${endpoint.id}` }
      return { status: 201, headers, body: { ...toResponse(endpoint), secret } }
    },

    async getWebhookEndpoint({ principal, path }) {
      const endpoint = await endpoints.get(principal.accountId, path.endpointId)
      return endpoint ? { status: 200, body: toResponse(endpoint) } : noEndpoint
    },

    async updateWebhookEndpoint({ principal, path, body }) {
      const endpoint = await endpoints.get(principal.accountId, path.endpointId)
      if (!endpoint) return noEndpoint
      const invalid = findInvalid(principal, body, endpoint.workflowIds)
      if (invalid) return invalid
      const changed = await endpoints.update(principal.accountId, path.endpointId, body, principal)
      return changed ? { status: 200, body: toResponse(changed) } : noEndpoint
    },

    async deleteWebhookEndpoint({ principal, path }) {
      const deleted = await endpoints.delete(principal.accountId, path.endpointId, principal)
      return deleted ? { status: 204 } : noEndpoint
    },

    async rotateWebhookSecret({ principal, path }) {
      const rotated = await endpoints.rotateSecret(principal.accountId, path.endpointId, principal)
      if (!rotated || rotated === 'repeated') return noEndpoint
      return { status: 200, body: { ...toResponse(rotated.endpoint), secret: rotated.secret } }
    },

    async sendTestWebhook({ principal, path }) {
      const delivery = await deliveries.sendTest(principal.accountId, path.endpointId, principal)
      return delivery ? { status: 202, body: toDeliveryResponse(delivery) } : noEndpoint
    },

    async listWebhookDeliveries({ principal, path, query }) {
      const page = await deliveries.list(principal.accountId, path.endpointId, query)
      if (!page) return noEndpoint
      if (page === 'wrongCursor') return wrongCursor
      return { status: 200, body: { data: page.deliveries.map(toDeliveryResponse), nextCursor: page.nextCursor } }
    },

    async redeliverWebhook({ principal, path: { endpointId, deliveryId } }) {
      const delivery = await deliveries.redeliver(principal.accountId, endpointId, deliveryId, principal)
      return delivery ? { status: 202, body: toDeliveryResponse(delivery) } : notFound('webhook delivery')
    },

    async redeliverWebhooks({ principal, path, body }) {
      const request = { since: Date.parse(body.since), status: body.status }
      const result = await deliveries.redeliverSince(principal.accountId, path.endpointId, request, principal)
      if (!result) return noEndpoint
      return { status: 202, body: { count: result.count, nextSince: toTimestamp(result.nextSince) } }
    },
  }
}

function toResponse({ disabledReason, ...endpoint }: WebhookEndpoint): Schemas['WebhookEndpoint'] {
  return {
    ...endpoint,
    enabled: disabledReason === null,
    disabledReason,
    previousSecretExpiresAt: toTimestamp(endpoint.previousSecretExpiresAt),
    createdAt: toTimestamp(endpoint.createdAt),
  }
}

function toDeliveryResponse(row: WebhookDeliveriesTable): Schemas['WebhookDelivery'] {
  return {
    id: row.id,
    event: row.event as Schemas['WebhookDelivery']['event'],
    runId: row.run_id,
    status: row.status as Schemas['WebhookDeliveryStatus'],
    attempts: row.attempts,
    createdAt: toTimestamp(row.created_at),
    nextAttemptAt: toTimestamp(row.next_attempt_at),
    lastAttemptAt: toTimestamp(row.last_attempt_at),
    latencyMilliseconds: row.latency_ms,
    requestUrl: row.request_url,
    requestBody: row.request_url === null ? null : row.request_body,
    responseStatus: row.response_status,
    responseBody: row.response_body,
    error: row.error,
  }
}
