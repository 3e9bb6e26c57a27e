/** Lists the deliveries of webhook endpoints, and queues them again. */
import { v7 as uuid } from 'uuid'
import type { Cursors, PageRequest } from '../../storage/cursors.ts'
import { dayMilliseconds, type PurgeTarget, purgeById } from '../../storage/purge-target.ts'
import { readColumns } from '../../storage/runs/run-lookups.ts'
import { findWaits } from '../../storage/runs/wait-statements.ts'
import { inList, parseId } from '../../storage/statement-values.ts'
import { type Store, statement, type Transaction } from '../../storage/store.ts'
import type { WebhookDeliveriesTable, WebhookEndpointsTable } from '../../storage/tables/tables.ts'
import { type Actor, type ApiKeyUse, recordAudit, toActor } from '../audit-log/audit-log.ts'
import { deletedStatus } from '../runs/run-state.ts'
import { eventColumns, toBody } from './webhook-event.ts'
import { deliveryCounts, findEndpoint, firstIdSince } from './webhooks.sql.ts'

export type DeliveryStatus = 'pending' | 'delivered' | 'failed'

/** For how long a delivery is retried. */
export const retryMilliseconds = 3 * dayMilliseconds

/** Maximum number of deliveries that one call queues again. */
export const redeliveredMax = 1000

export interface DeliveryListRequest extends PageRequest {
  status?: DeliveryStatus | undefined
}

export interface RedeliveryRequest {
  /** Milliseconds since 1970. */
  since: number
  status?: 'delivered' | 'failed' | undefined
}

export interface DeliverySummary {
  last: WebhookDeliveriesTable | undefined
  /** At most `countedMax`. */
  pending: number
  /** At most `countedMax`. */
  failed: number
}

export class WebhookDeliveries {
  readonly #store: Store
  readonly #cursors: Cursors
  readonly #now: () => number

  constructor(store: Store, cursors: Cursors, now: () => number = Date.now) {
    this.#store = store
    this.#cursors = cursors
    this.#now = now
  }

  /** A page, newest first; `undefined` without such an endpoint, `wrongCursor` for a cursor of another list. */
  async list(accountId: string, endpointId: string, request: DeliveryListRequest) {
    const endpoint = await findEndpoint(this.#store.read, accountId, endpointId)
    if (!endpoint) return undefined
    const { status } = request
    const { query } = this.#store.read
    const page = await this.#cursors.page(['webhook-deliveries', endpoint.id, status], request, (after, limit) => {
      let rows = query.selectFrom('webhook_deliveries').selectAll().where('endpoint_id', '=', endpoint.id)
      if (status !== undefined) rows = rows.where('status', '=', status)
      if (after !== undefined) rows = rows.where('id', '<', after)
      return rows.orderBy('id', 'desc').limit(limit).execute()
    })
    return page ? { deliveries: page.rows, nextCursor: page.nextCursor } : 'wrongCursor'
  }

  /** `undefined` without such a delivery of the endpoint. */
  async get(accountId: string, endpointId: string, deliveryId: string): Promise<WebhookDeliveriesTable | undefined> {
    const [endpoint, id] = [parseId(endpointId), parseId(deliveryId)]
    if (endpoint === undefined || id === undefined) return undefined
    const rows = this.#store.read.query.selectFrom('webhook_deliveries').selectAll().where('id', '=', id)
    return rows.where('endpoint_id', '=', endpoint).where('account_id', '=', accountId).executeTakeFirst()
  }

  async summaries(accountId: string): Promise<Map<string, DeliverySummary>> {
    const { read } = this.#store
    const counts = await read.all(deliveryCounts, [accountId])
    const ids = counts.map(({ lastId }) => lastId).filter((id) => id !== null)
    const rows = read.query.selectFrom('webhook_deliveries').selectAll().where('id', 'in', ids)
    const last = new Map(ids.length === 0 ? [] : (await rows.execute()).map((row) => [row.id, row]))
    return new Map(
      counts.map(({ id, lastId, pending, failed }) => [id, { last: last.get(lastId ?? ''), pending, failed }]),
    )
  }

  /** Queues a test event; `undefined` without such an endpoint. */
  async sendTest(accountId: string, endpointId: string, by: Actor | ApiKeyUse) {
    const at = this.#now()
    const delivery = await this.#store.write(async (tx) => {
      const endpoint = await findEndpoint(tx, accountId, endpointId)
      if (!endpoint) return undefined
      const row = newDelivery({ endpointId: endpoint.id, accountId, event: 'webhook.test', at })
      const inserted = tx.query.insertInto('webhook_deliveries').values(row)
      await recordAction(tx, 'webhookEndpoint.tested', endpoint, by, { deliveryId: row.id })
      return inserted.returningAll().executeTakeFirstOrThrow()
    })
    this.#store.notify('runs')
    return delivery
  }

  /** Queues a delivery again; `undefined` without such a delivery. */
  async redeliver(accountId: string, endpointId: string, deliveryId: string, by: Actor | ApiKeyUse) {
    const id = parseId(deliveryId)
    const delivery = await this.#store.write(async (tx) => {
      const endpoint = await findEndpoint(tx, accountId, endpointId)
      if (!endpoint || id === undefined) return undefined
      const [row] = await this.#queueAgain(tx, endpoint.id, [id])
      if (row) await recordAction(tx, 'webhookEndpoint.redelivered', endpoint, by, { deliveryId: id })
      return row
    })
    if (delivery) this.#store.notify('runs')
    return delivery
  }

  /** Queues deliveries again, oldest first, `redeliveredMax` at most; `undefined` without such an endpoint. */
  async redeliverSince(
    accountId: string,
    endpointId: string,
    { since, status }: RedeliveryRequest,
    by: Actor | ApiKeyUse,
  ): Promise<{ count: number; nextSince: number | null } | undefined> {
    const result = await this.#store.write(async (tx) => {
      const endpoint = await findEndpoint(tx, accountId, endpointId)
      if (!endpoint) return undefined
      const wanted = status === undefined ? ['delivered', 'failed'] : [status]
      const ended = tx.query.selectFrom('webhook_deliveries').select(['id', 'created_at'])
      const rows = await ended
        .where('endpoint_id', '=', endpoint.id)
        .where('id', '>=', firstIdSince(since))
        .where('status', 'in', wanted)
        .orderBy('id')
        .limit(redeliveredMax + 1)
        .execute()
      const ids = rows.slice(0, redeliveredMax).map(({ id }) => id)
      if (ids.length > 0) await this.#queueAgain(tx, endpoint.id, ids)
      await recordAction(tx, 'webhookEndpoint.redelivered', endpoint, by, {
        since: new Date(since).toISOString(),
        count: ids.length,
      })
      return { count: ids.length, nextSince: rows[redeliveredMax]?.created_at ?? null }
    })
    if (result) this.#store.notify('runs')
    return result
  }

  #queueAgain({ query }: Transaction, endpointId: string, ids: readonly string[]) {
    const now = this.#now()
    const set = { status: 'pending', next_attempt_at: now, deadline: now + retryMilliseconds }
    const rows = query.updateTable('webhook_deliveries').set(set).where('endpoint_id', '=', endpointId)
    return rows.where('id', 'in', ids).returningAll().execute()
  }
}

interface NewDelivery {
  /** A webhook endpoint, or where else a dispatcher sends. */
  endpointId: string
  accountId: string
  event: string
  at: number
  /** Absent if it follows from the event and the run. */
  body?: string
  runId?: string
  userId?: string
}

/** A delivery that is due at once. */
export function newDelivery(given: NewDelivery): WebhookDeliveriesTable {
  const { endpointId, accountId, event, at, body, runId, userId } = given
  return {
    id: uuid({ msecs: at }),
    endpoint_id: endpointId,
    account_id: accountId,
    event,
    run_id: runId ?? null,
    wait_name: null,
    browser_context_id: null,
    user_id: userId ?? null,
    status: 'pending',
    attempts: 0,
    created_at: at,
    next_attempt_at: at,
    deadline: at + retryMilliseconds,
    last_attempt_at: null,
    latency_ms: null,
    request_url: null,
    request_body: body ?? null,
    response_status: null,
    response_body: null,
    error: null,
  }
}

async function recordAction(
  tx: Transaction,
  action: `webhookEndpoint.${'redelivered' | 'tested'}`,
  { id, account_id, url }: WebhookEndpointsTable,
  by: Actor | ApiKeyUse,
  details: Record<string, unknown>,
): Promise<void> {
  const subject = { id, name: new URL(url).host }
  await recordAudit(tx, account_id, { action, by: await toActor(tx, by), subject, details })
}

type Unsent = Pick<
  WebhookDeliveriesTable,
  'id' | 'event' | 'run_id' | 'wait_name' | 'browser_context_id' | 'request_body' | 'created_at'
>

/** The bodies of the deliveries by their ids. Has none for a run that was erased since the row was read. */
export async function readBodies(tx: Transaction, rows: readonly Unsent[]): Promise<Map<string, string>> {
  const ids = new Set(rows.flatMap(({ request_body, run_id }) => (request_body === null && run_id) || []))
  const runs = await readColumns(tx, eventColumns, [...ids])
  const byId = new Map(runs.flatMap((run) => (run.status === deletedStatus ? [] : [[run.id, run]])))
  const bodies = new Map<string, string>()
  for (const row of rows) {
    const { wait_name: name, run_id, request_body } = row
    const run = byId.get(run_id ?? '')
    const wait = run && name !== null ? (await findWaits(tx, run.id, [name])).get(name) : undefined
    const context = row.browser_context_id === null ? undefined : await findContextName(tx, row.browser_context_id)
    const body = request_body ?? (run || run_id === null ? toBody(row, run, { wait, context }) : undefined)
    if (body !== undefined) bodies.set(row.id, body)
  }
  return bodies
}

async function findContextName({ query }: Transaction, id: string): Promise<{ id: string; name: string } | undefined> {
  const contexts = query.selectFrom('browser_contexts').select(['id', 'name']).where('id', '=', id)
  return contexts.where('deleted_at', 'is', null).executeTakeFirst()
}

/** Stores the bodies that have not been sent yet, since their runs are about to be erased. */
export async function storeBodies(tx: Transaction, runIds: readonly string[]): Promise<void> {
  const { marks, values } = inList(runIds)
  const rows = await tx.all<Unsent>(
    `SELECT id, event, run_id, wait_name, browser_context_id, request_body, created_at FROM webhook_deliveries
      WHERE request_body IS NULL AND run_id IN (${marks})`,
    values,
  )
  for (const [id, body] of await readBodies(tx, rows)) await tx.all(storeBody, [body, id])
}

const storeBody = statement<object, [body: string, id: string]>(
  'UPDATE webhook_deliveries SET request_body = ? WHERE id = ?',
)

/** Deliveries older than RUN_RETENTION_DAYS. They are kept for at least four days, which is longer than they are retried. */
export function expiredDeliveries(runRetentionDays: number, now: () => number): PurgeTarget {
  const retention = Math.max(runRetentionDays, 4) * dayMilliseconds
  return purgeById('webhook_deliveries', ({ query }, limit) => {
    const older = query
      .selectFrom('webhook_deliveries')
      .select('id')
      .where('id', '<', firstIdSince(now() - retention))
    return older.orderBy('id').limit(limit).execute()
  })
}
