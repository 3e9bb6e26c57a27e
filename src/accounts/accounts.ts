/** Accounts, which own everything, and their users, who create API keys. */
import { v7 as uuid } from 'uuid'
import type { Session, Store } from '../storage/store.ts'

export interface Account {
  id: string
  name: string
  /** Whether keys of this account may be limited to scopes. */
  scopesEnabled: boolean
  createdAt: number
}

export class Accounts {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** Makes the first account when there is none; returns it only then. */
  async createFirst(): Promise<Account | undefined> {
    return this.#store.write(async (session) => {
      const any = await session.query.selectFrom('accounts').select('id').limit(1).executeTakeFirst()
      return any ? undefined : insert(session, { name: 'Default', scopesEnabled: false })
    })
  }

  async create(account: { name: string; scopesEnabled: boolean }): Promise<Account> {
    return this.#store.write((session) => insert(session, account))
  }

  async list(): Promise<Account[]> {
    const rows = await this.#store.read.query.selectFrom('accounts').selectAll().orderBy('id').execute()
    return rows.map((row) => ({
      id: row.id,
      name: row.name,
      scopesEnabled: row.scopes_enabled === 1,
      createdAt: row.created_at,
    }))
  }

  /** The user who came with the account. */
  async ownerOf(accountId: string): Promise<string> {
    const users = this.#store.read.query.selectFrom('users').select('id').where('account_id', '=', accountId)
    return (await users.orderBy('id').limit(1).executeTakeFirstOrThrow()).id
  }
}

async function insert(session: Session, account: { name: string; scopesEnabled: boolean }): Promise<Account> {
  const made = { ...account, id: uuid(), createdAt: Date.now() }
  const row = {
    id: made.id,
    name: made.name,
    scopes_enabled: made.scopesEnabled ? 1 : 0,
    created_at: made.createdAt,
  } as const
  await session.query.insertInto('accounts').values(row).execute()
  const owner = { id: uuid(), account_id: made.id, name: 'Owner', role: 'owner', created_at: made.createdAt }
  await session.query.insertInto('users').values(owner).execute()
  return made
}
