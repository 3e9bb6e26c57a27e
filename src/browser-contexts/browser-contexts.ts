/** Creating, reading, listing, renaming and erasing browser contexts. */
import { v7 as uuid } from 'uuid'
import type { Cursors } from '../storage/cursors.ts'
import type { Session, Store } from '../storage/store.ts'
import type { BrowserContextsTable } from '../storage/tables.ts'

export interface BrowserContext {
  id: string
  name: string
  createdAt: number
  updatedAt: number
}

export class BrowserContexts {
  readonly #store: Store
  readonly #cursors: Cursors

  constructor(store: Store, cursors: Cursors) {
    this.#store = store
    this.#cursors = cursors
  }

  /** Makes an empty context, named after its id unless a name is given; `undefined` when the name is taken. */
  async create(accountId: string, name: string | undefined): Promise<BrowserContext | undefined> {
    const id = uuid()
    const at = Date.now()
    const row = { id, account_id: accountId, name: name ?? `context-${id.slice(-12)}`, created_at: at, updated_at: at }
    const made = await this.#store.write(async (session) => {
      if (await isTaken(session, accountId, row.name)) return false
      await session.query.insertInto('browser_contexts').values(row).execute()
      return true
    })
    return made ? contextOf(row) : undefined
  }

  async get(accountId: string, id: string): Promise<BrowserContext | undefined> {
    const row = await find(this.#store.read, accountId, id)
    return row && contextOf(row)
  }

  /** A page of contexts, newest first; `undefined` when the cursor was not written for this list. */
  async list(accountId: string, { limit, cursor }: { limit: number; cursor?: string | undefined }) {
    const list = JSON.stringify(['browser-contexts', accountId])
    const after = cursor === undefined ? undefined : this.#cursors.read(list, cursor)
    if (cursor !== undefined && after === undefined) return undefined
    let rows = this.#store.read.query.selectFrom('browser_contexts').selectAll().where('account_id', '=', accountId)
    if (after !== undefined) rows = rows.where('id', '<', after)
    const found = await rows
      .orderBy('id', 'desc')
      .limit(limit + 1)
      .execute()
    const page = found.slice(0, limit)
    const last = found.length > limit ? page.at(-1) : undefined
    return { contexts: page.map(contextOf), nextCursor: last ? this.#cursors.write(list, last.id) : null }
  }

  async rename(accountId: string, id: string, name: string): Promise<BrowserContext | 'noSuchContext' | 'nameTaken'> {
    return this.#store.write(async (session) => {
      const row = await find(session, accountId, id)
      if (!row) return 'noSuchContext'
      if (row.name !== name && (await isTaken(session, accountId, name))) return 'nameTaken'
      const change = { name, updated_at: Date.now() }
      await session.query.updateTable('browser_contexts').set(change).where('id', '=', row.id).execute()
      return contextOf({ ...row, ...change })
    })
  }

  /** Erases the context; returns whether there was one. */
  async delete(accountId: string, id: string): Promise<boolean> {
    return this.#store.write(async (session) => {
      const row = await find(session, accountId, id)
      if (row) await session.query.deleteFrom('browser_contexts').where('id', '=', row.id).execute()
      return row !== undefined
    })
  }
}

async function find({ query }: Session, accountId: string, id: string): Promise<BrowserContextsTable | undefined> {
  const row = query.selectFrom('browser_contexts').selectAll().where('id', '=', id.toLowerCase())
  return row.where('account_id', '=', accountId).executeTakeFirst()
}

async function isTaken({ query }: Session, accountId: string, name: string): Promise<boolean> {
  const row = query.selectFrom('browser_contexts').select('id').where('account_id', '=', accountId)
  return (await row.where('name', '=', name).executeTakeFirst()) !== undefined
}

function contextOf(row: BrowserContextsTable): BrowserContext {
  return { id: row.id, name: row.name, createdAt: row.created_at, updatedAt: row.updated_at }
}
