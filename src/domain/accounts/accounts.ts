/** Accounts, which own everything, and their users, who create API keys. */
import { v7 as uuid } from 'uuid'
import type { Store, Transaction } from '../../storage/store.ts'
import type { AccountsTable } from '../../storage/tables.ts'
import { type Actor, recordAudit } from '../audit-log/audit-log.ts'

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
    return this.#store.write(async (tx) => {
      const any = await tx.query.selectFrom('accounts').select('id').limit(1).executeTakeFirst()
      return any ? undefined : insert(tx, { name: 'Default', scopesEnabled: false })
    })
  }

  async create(account: { name: string; scopesEnabled: boolean }): Promise<Account> {
    return this.#store.write((tx) => insert(tx, account))
  }

  async list(): Promise<Account[]> {
    const rows = await this.#store.read.query.selectFrom('accounts').selectAll().orderBy('id').execute()
    return rows.map(toAccount)
  }

  async get(id: string): Promise<Account | undefined> {
    const row = this.#store.read.query.selectFrom('accounts').selectAll().where('id', '=', id)
    return row.executeTakeFirst().then((found) => found && toAccount(found))
  }

  /** Changes what its owners decide of an account, and notes in the audit log what has changed. */
  async update(id: string, to: Pick<Account, 'name' | 'scopesEnabled'>, by: Actor): Promise<void> {
    await this.#store.write(async (tx) => {
      const accounts = tx.query.selectFrom('accounts').selectAll().where('id', '=', id)
      const from = toAccount(await accounts.executeTakeFirstOrThrow())
      const row = { name: to.name, scopes_enabled: to.scopesEnabled ? 1 : 0 } as const
      await tx.query.updateTable('accounts').set(row).where('id', '=', id).execute()
      if (from.name !== to.name) {
        const details = { from: from.name, to: to.name }
        await recordAudit(tx, id, { action: 'account.renamed', by, details })
      }
      if (from.scopesEnabled === to.scopesEnabled) return
      await recordAudit(tx, id, { action: to.scopesEnabled ? 'account.scopesEnabled' : 'account.scopesDisabled', by })
    })
  }

  /** The user who came with the account, or the next of its owners. */
  async findOwnerId(accountId: string): Promise<string> {
    const users = this.#store.read.query.selectFrom('users').select('id').where('account_id', '=', accountId)
    const owners = users.where('role', '=', 'owner').where('removed_at', 'is', null)
    return (await owners.orderBy('id').limit(1).executeTakeFirstOrThrow()).id
  }
}

function toAccount(row: AccountsTable): Account {
  return { id: row.id, name: row.name, scopesEnabled: row.scopes_enabled === 1, createdAt: row.created_at }
}

async function insert(tx: Transaction, account: { name: string; scopesEnabled: boolean }): Promise<Account> {
  const made = { ...account, id: uuid(), createdAt: Date.now() }
  const row = {
    id: made.id,
    name: made.name,
    scopes_enabled: made.scopesEnabled ? 1 : 0,
    created_at: made.createdAt,
  } as const
  await tx.query.insertInto('accounts').values(row).execute()
  const owner = { id: uuid(), account_id: made.id, name: 'Owner', role: 'owner', created_at: made.createdAt }
  await tx.query.insertInto('users').values(owner).execute()
  return made
}
