/** Statements of webhook endpoints and deliveries, and their encrypted columns. */
import type { EncryptedColumn } from '../../storage/encrypted-columns.ts'
import { parseId } from '../../storage/statement-values.ts'
import { statement, type Transaction } from '../../storage/store.ts'
import type { WebhookDeliveriesTable, WebhookEndpointsTable } from '../../storage/tables/tables.ts'

export async function findEndpoint(
  { query }: Transaction,
  accountId: string,
  id: string,
): Promise<WebhookEndpointsTable | undefined> {
  const parsed = parseId(id)
  if (parsed === undefined) return undefined
  const rows = query.selectFrom('webhook_endpoints').selectAll().where('id', '=', parsed)
  return rows.where('account_id', '=', accountId).executeTakeFirst()
}

/** Enabled endpoints with a delivery that is due. One index look-up for each endpoint. */
export const findDueEndpoints = statement<WebhookEndpointsTable, [now: number]>(
  `SELECT * FROM webhook_endpoints WHERE disabled_reason IS NULL AND EXISTS (SELECT 1 FROM webhook_deliveries
    WHERE endpoint_id = webhook_endpoints.id AND status = 'pending' AND next_attempt_at <= ?)`,
)

/** Deliveries are counted up to this number, so that a page does not wait for the count of a million. */
export const countedMax = 1000

const countOf = (status: string) => `(SELECT COUNT(*) FROM (SELECT 1 FROM webhook_deliveries
    WHERE endpoint_id = e.id AND status = '${status}' LIMIT ${countedMax}) AS counted)`

/** The newest delivery, and the numbers of pending and failed ones, of each endpoint of an account. */
export const deliveryCounts = statement<
  { id: string; lastId: string | null; pending: number; failed: number },
  [accountId: string]
>(`SELECT id, (SELECT MAX(id) FROM webhook_deliveries WHERE endpoint_id = e.id) AS "lastId",
    ${countOf('pending')} AS pending, ${countOf('failed')} AS failed FROM webhook_endpoints AS e WHERE account_id = ?`)

/**
 * When the delivery became due that has been due for longest, and the number of endpoints that the service has disabled.
 * Deliveries of disabled endpoints are not due. One index look-up for each enabled endpoint.
 */
export const webhookBacklog = statement<{ dueSince: number | null; disabledEndpoints: number }, []>(
  `SELECT MIN(due) AS "dueSince",
    (SELECT COUNT(*) FROM webhook_endpoints WHERE disabled_reason IN ('deliveriesFailed', 'gone')) AS "disabledEndpoints"
    FROM (SELECT (SELECT MIN(next_attempt_at) FROM webhook_deliveries WHERE endpoint_id = e.id AND status = 'pending')
      AS due FROM webhook_endpoints AS e WHERE disabled_reason IS NULL) AS of_endpoints`,
)

/** Starts attempts of the deliveries that are due, oldest first, and leases them until `leaseEnd`. */
export const claimDeliveries = statement<
  WebhookDeliveriesTable,
  [leaseEnd: number, endpointId: string, now: number, countMax: number, now: number]
>(`UPDATE webhook_deliveries SET attempts = attempts + 1, next_attempt_at = ? WHERE id IN (
    SELECT id FROM webhook_deliveries WHERE endpoint_id = ? AND status = 'pending' AND next_attempt_at <= ?
    ORDER BY next_attempt_at LIMIT ?) AND status = 'pending' AND next_attempt_at <= ? RETURNING *`)

/** Records an attempt, unless a later one has started. */
export const recordAttempt = statement<
  object,
  [
    status: string,
    nextAttemptAt: number | null,
    at: number,
    latency: number,
    url: string,
    body: string,
    responseStatus: number | null,
    responseBody: string | null,
    error: string | null,
    id: string,
    attempt: number,
  ]
>(`UPDATE webhook_deliveries SET status = ?, next_attempt_at = ?, last_attempt_at = ?, latency_ms = ?, request_url = ?,
    request_body = ?, response_status = ?, response_body = ?, error = ? WHERE id = ? AND attempts = ?`)

/** Disables the endpoint unless it accepted something after `since`. Returns no row when it stays as it was. */
export const disableEndpoint = statement<{ id: string }, [reason: string, id: string, id: string, since: number]>(
  `UPDATE webhook_endpoints SET disabled_reason = ? WHERE id = ? AND disabled_reason IS NULL AND NOT EXISTS (
    SELECT 1 FROM webhook_deliveries WHERE endpoint_id = ? AND status = 'delivered' AND last_attempt_at >= ?)
    RETURNING id`,
)

/** Binds an encrypted secret to its endpoint and column. */
export function secretAad(accountId: string, endpointId: string): string {
  return `${accountId}/webhook-endpoints/${endpointId}`
}

const secretColumn = (column: string): EncryptedColumn => ({
  table: 'webhook_endpoints',
  key: ['id'],
  column,
  aadColumns: ['account_id', 'id'],
  aad: secretAad,
})

export const encryptedInWebhooks: readonly EncryptedColumn[] = [secretColumn('secret'), secretColumn('previous_secret')]

/** The least id of a delivery that was created at the time or later. */
export function firstIdSince(at: number): string {
  const hex = Math.max(0, at).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}`
}
