/** Creates, reads, lists, renames and deletes browser contexts. `context-versions.ts` stores their states. */
import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { requireValid } from '../../contract/value-checks.ts'
import type { Cursors } from '../../storage/cursors.ts'
import { boundPage, eraseRest } from '../../storage/purge-target.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import type { SignInStatus } from '../../storage/tables/tables.ts'
import type { StorageUsage } from '../accounts/storage-usage.ts'
import { type Action, type Actor, type ApiKeyUse, recordAudit, toActor } from '../audit-log/audit-log.ts'
import type { Sized } from '../sized.ts'
import { type ContextRow, findContext, isContextNameTaken, selectContexts } from './browser-contexts.sql.ts'
import { eraseBatch } from './context-erasure.ts'

/** `inUse` while a run has the lease; `empty` without a version. */
export type BrowserContextStatus = 'empty' | 'ready' | 'inUse'

export interface BrowserContext {
  id: string
  name: string
  status: BrowserContextStatus
  heldByRunId: string | null
  /** The number of the current version; 0 without one. */
  version: number
  cookieDomains: string[]
  sizeBytes: number
  createdAt: number
  updatedAt: number
  lastUsedAt: number | null
  /** `null` without a sign-in. */
  signIn: {
    status: SignInStatus
    /** The run that signs in or checks now. */
    runId: string | null
    signedInAt: number | null
    needsSignInSince: number | null
  } | null
}

const domainBytes = sql<number>`coalesce(octet_length(cookie_domains), 0)`.as('size_bytes')

interface ListRequest {
  limit: number
  cursor?: string | undefined
  name?: string | undefined
}

export class BrowserContexts {
  readonly #store: Store
  readonly #cursors: Cursors
  readonly #usage: StorageUsage | undefined

  constructor(store: Store, cursors: Cursors, usage?: StorageUsage) {
    this.#usage = usage
    this.#store = store
    this.#cursors = cursors
  }

  /**
   * Creates an empty context, by default named after its ID. Returns `undefined` if the name is taken.
   *
   * @param actor recorded in the audit log, as for the other changes; without one, nothing is recorded.
   * @throws {Problem} if the document does not allow the name; `rename` does, too.
   */
  async create(
    accountId: string,
    name: string | undefined,
    actor?: Actor | ApiKeyUse,
  ): Promise<BrowserContext | undefined> {
    requireValid('CreateBrowserContextRequest', { name })
    this.#usage?.require(accountId)
    const id = uuid()
    const at = Date.now()
    const row = { id, account_id: accountId, name: name ?? `context-${id.slice(-12)}`, created_at: at, updated_at: at }
    const created = await this.#store.write(async (tx) => {
      if (await isContextNameTaken(tx, accountId, row.name)) return false
      await tx.query.insertInto('browser_contexts').values(row).execute()
      if (actor) await record(tx, row, 'browserContext.created', actor)
      return true
    })
    return created ? this.get(accountId, id) : undefined
  }

  async get(accountId: string, id: string): Promise<BrowserContext | undefined> {
    const row = await findContext(this.#store.read, accountId, id)
    return row && toBrowserContext(row)
  }

  /** See `findPage`. */
  async list(accountId: string, request: ListRequest) {
    const page = await this.findPage(accountId, request)
    return page && { contexts: await page.read(), nextCursor: page.nextCursor }
  }

  /**
   * A page of contexts to read, newest first, or the one with the name; `undefined` for a cursor of another list. It has fewer
   * than `limit` when their cookie domains would be larger than a page may be.
   */
  async findPage(
    accountId: string,
    request: ListRequest,
  ): Promise<(Sized<BrowserContext[]> & { nextCursor: string | null }) | undefined> {
    const { name } = request
    const newestFirst = ['browser_contexts.id', 'desc'] as const
    const findSizes = (after: string | undefined, limit: number) => {
      let sizes = selectContexts(this.#store.read, accountId).clearSelect().select(['browser_contexts.id', domainBytes])
      if (after !== undefined) sizes = sizes.where('browser_contexts.id', '<', after)
      if (name !== undefined) sizes = sizes.where('name', '=', name)
      return sizes
        .orderBy(...newestFirst)
        .limit(limit)
        .execute()
    }
    const page = await this.#cursors.page(['browser-contexts', accountId, name], request, findSizes, {
      bound: boundPage,
    })
    if (!page) return undefined
    const ids = page.rows.map(({ id }) => id)
    const rows = selectContexts(this.#store.read, accountId).where('browser_contexts.id', 'in', ids)
    return {
      nextCursor: page.nextCursor,
      sizeBytes: page.rows.reduce((sum, { size_bytes }) => sum + size_bytes, 0),
      forget() {},
      read: async () => (ids.length === 0 ? [] : (await rows.orderBy(...newestFirst).execute()).map(toBrowserContext)),
    }
  }

  async rename(
    accountId: string,
    id: string,
    name: string,
    actor?: Actor | ApiKeyUse,
  ): Promise<BrowserContext | 'noSuchContext' | 'nameTaken'> {
    requireValid('CreateBrowserContextRequest', { name })
    return this.#store.write(async (tx) => {
      const row = await findContext(tx, accountId, id)
      if (!row) return 'noSuchContext'
      if (row.name !== name && (await isContextNameTaken(tx, accountId, name))) return 'nameTaken'
      const change = { name, updated_at: Date.now() }
      await tx.query.updateTable('browser_contexts').set(change).where('id', '=', row.id).execute()
      if (actor && row.name !== name) {
        const renamed = { id: row.id, account_id: accountId, name }
        await record(tx, renamed, 'browserContext.renamed', actor, { from: row.name, to: name })
      }
      return toBrowserContext({ ...row, ...change })
    })
  }

  /** Erases the context with all its versions. Returns whether it existed. */
  async delete(accountId: string, id: string, actor?: Actor | ApiKeyUse): Promise<boolean> {
    const deleted = await this.#store.write(async (tx) => {
      const row = await findContext(tx, accountId, id)
      if (!row) return undefined
      if (actor) await record(tx, row, 'browserContext.deleted', actor)
      const hasSignIn = row.sign_in_status !== null
      return { id: row.id, hasSignIn, hasMore: await eraseBatch(tx, row.id, Date.now()) }
    })
    // Its run is cancelled, and those that waited for it go on.
    if (deleted?.hasSignIn) for (const topic of ['cancellations', 'queue', 'runs'] as const) this.#store.notify(topic)
    if (deleted) await eraseRest(this.#store, deleted.hasMore, (tx) => eraseBatch(tx, deleted.id, Date.now()))
    return deleted !== undefined
  }
}

/** In the audit log. */
async function record(
  tx: Transaction,
  { id, account_id, name }: Pick<ContextRow, 'id' | 'account_id' | 'name'>,
  action: Action,
  by: Actor | ApiKeyUse,
  details: Record<string, unknown> = {},
): Promise<void> {
  await recordAudit(tx, account_id, { action, by: await toActor(tx, by), subject: { id, name }, details })
}

function toBrowserContext(row: ContextRow): BrowserContext {
  return {
    id: row.id,
    name: row.name,
    status: row.held_by_run_id !== null ? 'inUse' : row.version_id === null ? 'empty' : 'ready',
    heldByRunId: row.held_by_run_id,
    version: row.version,
    cookieDomains: JSON.parse(row.cookie_domains ?? '[]'),
    sizeBytes: row.size_bytes ?? 0,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    lastUsedAt: row.last_used_at,
    signIn: row.sign_in_status && {
      status: row.sign_in_status,
      runId: row.sign_in_run_id,
      signedInAt: row.signed_in_at,
      needsSignInSince: row.needs_sign_in_since,
    },
  }
}
