/** Accounts. An account owns its users, API keys, runs and browser contexts. */
import type { Selectable } from 'kysely'
import { v7 as uuid } from 'uuid'
import type { Store, Transaction } from '../../storage/store.ts'
import type { AccountsTable } from '../../storage/tables/account-tables.ts'
import { type Actor, recordAudit } from '../audit-log/audit-log.ts'
import { requireOwner } from './accounts.sql.ts'

export interface Account {
  id: string
  name: string
  /** Whether API keys of this account can be limited to scopes. */
  scopesEnabled: boolean
  /** Whether every user needs a second factor. */
  secondFactorRequired: boolean
  createdAt: number
}

type Settings = Pick<Account, 'name' | 'scopesEnabled' | 'secondFactorRequired'>

export class Accounts {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** Creates the first account. Returns `undefined` if an account exists. */
  async createFirst(): Promise<Account | undefined> {
    return this.#store.write(async (tx) => {
      const existing = await tx.query.selectFrom('accounts').select('id').limit(1).executeTakeFirst()
      return existing ? undefined : insert(tx, { name: 'Default', scopesEnabled: false })
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

  /** Updates the settings that owners control, and records each change in the audit log. @throws {NotOwnerError} */
  async update(id: string, to: Settings, by: Actor): Promise<void> {
    await this.#store.write(async (tx) => {
      await requireOwner(tx, id, by)
      const accounts = tx.query.selectFrom('accounts').selectAll().where('id', '=', id)
      const from = toAccount(await accounts.executeTakeFirstOrThrow())
      const flags = {
        scopes_enabled: to.scopesEnabled ? 1 : 0,
        second_factor_required: to.secondFactorRequired ? 1 : 0,
      } as const
      await tx.query
        .updateTable('accounts')
        .set({ name: to.name, ...flags })
        .where('id', '=', id)
        .execute()
      if (from.name !== to.name) {
        const details = { from: from.name, to: to.name }
        await recordAudit(tx, id, { action: 'account.renamed', by, details })
      }
      if (from.scopesEnabled !== to.scopesEnabled) {
        await recordAudit(tx, id, { action: to.scopesEnabled ? 'account.scopesEnabled' : 'account.scopesDisabled', by })
      }
      if (from.secondFactorRequired === to.secondFactorRequired) return
      const action = to.secondFactorRequired ? 'account.secondFactorRequired' : 'account.secondFactorOptional'
      await recordAudit(tx, id, { action, by })
    })
  }

  /** The account's longest-standing owner. */
  async findOwnerId(accountId: string): Promise<string> {
    const users = this.#store.read.query.selectFrom('users').select('id').where('account_id', '=', accountId)
    const owners = users.where('role', '=', 'owner').where('removed_at', 'is', null)
    return (await owners.orderBy('id').limit(1).executeTakeFirstOrThrow()).id
  }
}

function toAccount(row: Selectable<AccountsTable>): Account {
  return {
    id: row.id,
    name: row.name,
    scopesEnabled: row.scopes_enabled === 1,
    secondFactorRequired: row.second_factor_required === 1,
    createdAt: row.created_at,
  }
}

/** Inserts the account and its owner, who chooses a name and password through the welcome link. */
async function insert(tx: Transaction, { name, scopesEnabled }: Pick<Account, 'name' | 'scopesEnabled'>) {
  const account = { id: uuid(), name, scopesEnabled, secondFactorRequired: false, createdAt: Date.now() }
  const { id, createdAt: created_at } = account
  await tx.query
    .insertInto('accounts')
    .values({ id, name, scopes_enabled: scopesEnabled ? 1 : 0, created_at })
    .execute()
  const owner = { id: uuid(), account_id: id, name: 'Owner', role: 'owner', created_at }
  await tx.query.insertInto('users').values(owner).execute()
  return account
}
