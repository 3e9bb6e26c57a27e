/** Creating, reading, listing, renaming and erasing browser contexts. What they hold is in versions.ts. */

import { setTimeout as delay } from 'node:timers/promises'
import { v7 as uuid } from 'uuid'
import type { Cursors } from '../../storage/cursors.ts'
import { ignoreUnavailable, type Store } from '../../storage/store.ts'
import { type Actor, recordAudit } from '../audit-log/audit-log.ts'
import { type ContextRow, findContext, isContextNameTaken, selectContexts } from './browser-contexts.sql.ts'
import { eraseBatch } from './context-erasure.ts'

/** `inUse` while a run holds it, `empty` before its first version. */
export type BrowserContextStatus = 'empty' | 'ready' | 'inUse'

export interface BrowserContext {
  id: string
  name: string
  status: BrowserContextStatus
  heldByRunId: string | null
  /** The number of its current version; 0 when there is none. */
  version: number
  cookieDomains: string[]
  sizeBytes: number
  createdAt: number
  updatedAt: number
  lastUsedAt: number | null
}

/** For other processes' writes, which look for a free moment once a millisecond. */
const pauseMilliseconds = 10

export class BrowserContexts {
  readonly #store: Store
  readonly #cursors: Cursors

  constructor(store: Store, cursors: Cursors) {
    this.#store = store
    this.#cursors = cursors
  }

  /**
   * Makes an empty context, named after its id unless a name is given; `undefined` when the name is taken.
   *
   * @param actor is written to the audit log, as with the other changes; without one nothing is.
   */
  async create(accountId: string, name: string | undefined, actor?: Actor): Promise<BrowserContext | undefined> {
    const id = uuid()
    const at = Date.now()
    const row = { id, account_id: accountId, name: name ?? `context-${id.slice(-12)}`, created_at: at, updated_at: at }
    const made = await this.#store.write(async (tx) => {
      if (await isContextNameTaken(tx, accountId, row.name)) return false
      await tx.query.insertInto('browser_contexts').values(row).execute()
      if (actor) await recordAudit(tx, accountId, { action: 'browserContext.created', by: actor, subject: row })
      return true
    })
    return made ? this.get(accountId, id) : undefined
  }

  async get(accountId: string, id: string): Promise<BrowserContext | undefined> {
    const row = await findContext(this.#store.read, accountId, id)
    return row && contextOf(row)
  }

  /** A page of contexts, newest first; `undefined` when the cursor was not written for this list. */
  async list(accountId: string, { limit, cursor }: { limit: number; cursor?: string | undefined }) {
    const list = JSON.stringify(['browser-contexts', accountId])
    const after = cursor === undefined ? undefined : this.#cursors.read(list, cursor)
    if (cursor !== undefined && after === undefined) return undefined
    let rows = selectContexts(this.#store.read, accountId)
    if (after !== undefined) rows = rows.where('browser_contexts.id', '<', after)
    const found = await rows
      .orderBy('browser_contexts.id', 'desc')
      .limit(limit + 1)
      .execute()
    const page = found.slice(0, limit)
    const last = found.length > limit ? page.at(-1) : undefined
    return { contexts: page.map(contextOf), nextCursor: last ? this.#cursors.write(list, last.id) : null }
  }

  async rename(
    accountId: string,
    id: string,
    name: string,
    actor?: Actor,
  ): Promise<BrowserContext | 'noSuchContext' | 'nameTaken'> {
    return this.#store.write(async (tx) => {
      const row = await findContext(tx, accountId, id)
      if (!row) return 'noSuchContext'
      if (row.name !== name && (await isContextNameTaken(tx, accountId, name))) return 'nameTaken'
      const change = { name, updated_at: Date.now() }
      await tx.query.updateTable('browser_contexts').set(change).where('id', '=', row.id).execute()
      if (actor && row.name !== name) {
        const details = { from: row.name, to: name }
        const subject = { id: row.id, name }
        await recordAudit(tx, accountId, { action: 'browserContext.renamed', by: actor, subject, details })
      }
      return contextOf({ ...row, ...change })
    })
  }

  /** Erases the context with all its versions; returns whether there was one. */
  async delete(accountId: string, id: string, actor?: Actor): Promise<boolean> {
    const deleted = await this.#store.write(async (tx) => {
      const row = await findContext(tx, accountId, id)
      if (!row) return false
      if (actor) await recordAudit(tx, accountId, { action: 'browserContext.deleted', by: actor, subject: row })
      return { id: row.id, more: await eraseBatch(tx, row.id, Date.now()) }
    })
    // What cannot be done now is left to upkeep, and the store's files to the next deletion.
    if (deleted) await this.#eraseRest(deleted).catch(ignoreUnavailable)
    return deleted !== false
  }

  async #eraseRest(deleted: { id: string; more: boolean }): Promise<void> {
    for (let { more } = deleted; more; ) {
      await delay(pauseMilliseconds)
      more = await this.#store.write((tx) => eraseBatch(tx, deleted.id, Date.now()))
    }
    await this.#store.scrub()
  }
}

function contextOf(row: ContextRow): BrowserContext {
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
  }
}
