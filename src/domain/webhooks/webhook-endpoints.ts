/** Creates, reads, lists, changes and deletes the webhook endpoints of accounts. */
import { randomBytes } from 'node:crypto'
import { v7 as uuid } from 'uuid'
import { requireValid } from '../../contract/value-checks.ts'
import type { Cursors, PageRequest } from '../../storage/cursors.ts'
import type { Encryption } from '../../storage/encryption.ts'
import { eraseRest } from '../../storage/purge-target.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import type { WebhookEndpointsTable } from '../../storage/tables/tables.ts'
import { type Actor, type ApiKeyUse, recordAudit, toActor } from '../audit-log/audit-log.ts'
import { findEndpoint, secretAad } from './webhooks.sql.ts'

export const eventTypes = [
  'run.succeeded',
  'run.failed',
  'run.timedOut',
  'run.cancelled',
  'run.expired',
  'run.waiting',
  'browserContext.needsSignIn',
] as const
export type EventType = (typeof eventTypes)[number]

/** `request`: a caller or user disabled it. */
export type DisabledReason = 'request' | 'deliveriesFailed' | 'gone'

export interface WebhookEndpoint {
  id: string
  url: string
  events: EventType[]
  /** Empty for all. */
  workflowIds: string[]
  /** Empty for all. */
  tags: string[]
  disabledReason: DisabledReason | null
  previousSecretExpiresAt: number | null
  createdAt: number
}

export interface EndpointChange {
  url?: string | undefined
  events?: readonly EventType[] | undefined
  workflowIds?: readonly string[] | undefined
  tags?: readonly string[] | undefined
  enabled?: boolean | undefined
}

export type NewEndpoint = EndpointChange & { url: string; events: readonly EventType[] }

export const endpointsMax = 20

/** How long requests are also signed with the previous secret after a rotation. */
export const overlapMilliseconds = 24 * 60 * 60 * 1000

export class WebhookEndpoints {
  readonly #store: Store
  readonly #encryption: Encryption
  readonly #cursors: Cursors
  readonly #now: () => number

  constructor(store: Store, encryption: Encryption, cursors: Cursors, now: () => number = Date.now) {
    this.#store = store
    this.#encryption = encryption
    this.#cursors = cursors
    this.#now = now
  }

  /**
   * Returns the endpoint with its secret, which is not shown again; `undefined` when the account has `endpointsMax`, and
   * `repeated` when the id was used before.
   *
   * @throws {Problem} if the document does not allow a member; `update` does, too.
   */
  async create(accountId: string, given: NewEndpoint, by: Actor | ApiKeyUse, id = uuid()) {
    requireValid('UpdateWebhookEndpointRequest', given)
    const secret = createSecret()
    const row: WebhookEndpointsTable = {
      id,
      account_id: accountId,
      url: given.url,
      events: JSON.stringify(given.events),
      workflow_ids: JSON.stringify(given.workflowIds ?? []),
      tags: JSON.stringify(given.tags ?? []),
      secret: this.#encryption.encrypt(secret, secretAad(accountId, id)),
      previous_secret: null,
      previous_secret_expires_at: null,
      disabled_reason: given.enabled === false ? 'request' : null,
      created_at: this.#now(),
    }
    const result = await this.#store.write(async (tx) => {
      const same = tx.query.selectFrom('webhook_endpoints').select('id').where('id', '=', id)
      if (await same.executeTakeFirst()) return 'repeated'
      const ids = tx.query.selectFrom('webhook_endpoints').select('id').where('account_id', '=', accountId)
      if ((await ids.execute()).length >= endpointsMax) return 'tooMany'
      await tx.query.insertInto('webhook_endpoints').values(row).execute()
      await audit(tx, row, 'webhookEndpoint.created', by)
      return 'created'
    })
    if (result === 'tooMany') return undefined
    return result === 'repeated' ? result : { endpoint: this.#toEndpoint(row), secret }
  }

  async get(accountId: string, id: string): Promise<WebhookEndpoint | undefined> {
    const row = await findEndpoint(this.#store.read, accountId, id)
    return row && this.#toEndpoint(row)
  }

  /** A page, newest first; `undefined` for a cursor of another list. */
  async list(accountId: string, request: PageRequest) {
    const all = this.#store.read.query.selectFrom('webhook_endpoints').selectAll().where('account_id', '=', accountId)
    const page = await this.#cursors.page(['webhook-endpoints', accountId], request, (after, limit) => {
      const rows = after === undefined ? all : all.where('id', '<', after)
      return rows.orderBy('id', 'desc').limit(limit).execute()
    })
    return page && { endpoints: page.rows.map((row) => this.#toEndpoint(row)), nextCursor: page.nextCursor }
  }

  /** Enabling makes pending deliveries due at once. Returns `undefined` if there is no such endpoint. */
  async update(accountId: string, id: string, change: EndpointChange, by: Actor | ApiKeyUse) {
    requireValid('UpdateWebhookEndpointRequest', change)
    const changed = await this.#store.write(async (tx) => {
      const row = await findEndpoint(tx, accountId, id)
      if (!row) return undefined
      const { url, events, workflowIds, tags, enabled } = change
      const set = {
        url: url ?? row.url,
        events: events ? JSON.stringify(events) : row.events,
        workflow_ids: workflowIds ? JSON.stringify(workflowIds) : row.workflow_ids,
        tags: tags ? JSON.stringify(tags) : row.tags,
        disabled_reason:
          enabled === undefined ? row.disabled_reason : enabled ? null : (row.disabled_reason ?? 'request'),
      }
      await tx.query.updateTable('webhook_endpoints').set(set).where('id', '=', row.id).execute()
      if (row.disabled_reason !== null && set.disabled_reason === null) await makePendingDue(tx, row.id, this.#now())
      await audit(tx, { ...row, ...set }, 'webhookEndpoint.changed', by, change)
      return this.#toEndpoint({ ...row, ...set })
    })
    return changed
  }

  /**
   * Replaces the secret. Requests are signed with both for `overlapMilliseconds`.
   *
   * @param overlapEnd the `previousSecretExpiresAt` that the caller saw: if it has changed, another rotation came first,
   * and the result is `repeated`, because one more would end the overlap of the secret that is in use.
   */
  async rotateSecret(accountId: string, id: string, by: Actor | ApiKeyUse, overlapEnd?: number | null) {
    const secret = createSecret()
    return this.#store.write(async (tx) => {
      const row = await findEndpoint(tx, accountId, id)
      if (!row) return undefined
      if (overlapEnd !== undefined && this.#toEndpoint(row).previousSecretExpiresAt !== overlapEnd) return 'repeated'
      const set = {
        secret: this.#encryption.encrypt(secret, secretAad(accountId, row.id)),
        previous_secret: row.secret,
        previous_secret_expires_at: this.#now() + overlapMilliseconds,
      }
      await tx.query.updateTable('webhook_endpoints').set(set).where('id', '=', row.id).execute()
      await audit(tx, row, 'webhookEndpoint.secretRotated', by)
      return { endpoint: this.#toEndpoint({ ...row, ...set }), secret }
    })
  }

  /** Erases the endpoint with its deliveries. Returns whether it existed. */
  async delete(accountId: string, id: string, by: Actor | ApiKeyUse): Promise<boolean> {
    const deleted = await this.#store.write(async (tx) => {
      const row = await findEndpoint(tx, accountId, id)
      if (!row) return undefined
      await tx.query.deleteFrom('webhook_endpoints').where('id', '=', row.id).execute()
      await audit(tx, row, 'webhookEndpoint.deleted', by)
      return row.id
    })
    if (deleted === undefined) return false
    await eraseRest(this.#store, true, (tx) => eraseDeliveries(tx, deleted))
    return true
  }

  #toEndpoint(row: WebhookEndpointsTable): WebhookEndpoint {
    const overlapEnd = row.previous_secret_expires_at
    return {
      id: row.id,
      url: row.url,
      events: JSON.parse(row.events),
      workflowIds: JSON.parse(row.workflow_ids),
      tags: JSON.parse(row.tags),
      disabledReason: row.disabled_reason as DisabledReason | null,
      previousSecretExpiresAt: overlapEnd !== null && overlapEnd > this.#now() ? overlapEnd : null,
      createdAt: row.created_at,
    }
  }
}

/** A key of signatures by the Standard Webhooks specification. */
export function createSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

async function makePendingDue({ query }: Transaction, endpointId: string, now: number): Promise<void> {
  const pending = query.updateTable('webhook_deliveries').set({ next_attempt_at: now })
  await pending.where('endpoint_id', '=', endpointId).where('status', '=', 'pending').execute()
}

const eraseRowsMax = 500

/** Deletes a batch; returns whether more may remain. */
export async function eraseDeliveries(tx: Transaction, endpointId: string): Promise<boolean> {
  const sql = `DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM webhook_deliveries WHERE endpoint_id = ?
    ORDER BY id LIMIT ${eraseRowsMax}) RETURNING 1`
  return (await tx.all(sql, [endpointId])).length === eraseRowsMax
}

type EndpointAction = `webhookEndpoint.${'created' | 'changed' | 'secretRotated' | 'deleted'}`

async function audit(
  tx: Transaction,
  { id, account_id, url }: WebhookEndpointsTable,
  action: EndpointAction,
  by: Actor | ApiKeyUse,
  details: object = {},
): Promise<void> {
  // The path of a URL may contain a credential.
  const subject = { id, name: new URL(url).host }
  const shown = 'url' in details ? { ...details, url: subject.name } : { ...details }
  await recordAudit(tx, account_id, { action, by: await toActor(tx, by), subject, details: shown })
}
