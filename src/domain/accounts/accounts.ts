/** Accounts. An account owns its users, API keys, runs and browser contexts. An environment is an account without users. */
import type { Selectable } from 'kysely'
import { v7 as uuid } from 'uuid'
import { type Store, statement, type Transaction } from '../../storage/store.ts'
import type { AccountsTable } from '../../storage/tables/account-tables.ts'
import { type Actor, recordAudit } from '../audit-log/audit-log.ts'
import { requireAdmin } from './accounts.sql.ts'
import { UserError } from './user.ts'

export interface Account {
  id: string
  name: string
  /** Whether API keys of this account can be limited to scopes. */
  scopesEnabled: boolean
  /** Whether every user needs a second factor. */
  secondFactorRequired: boolean
  createdAt: number
  /** The account with the users: this one or, of an environment, the account that it belongs to. */
  ownerId: string
  /** The name of the environment, if the account has several. */
  environment: string | null
}

type Settings = Pick<Account, 'name' | 'scopesEnabled' | 'secondFactorRequired'>

const findAdmin = statement<{ id: string }, [accountId: string]>(
  `SELECT id FROM users WHERE account_id = (SELECT COALESCE(parent_id, id) FROM accounts WHERE id = ?)
    AND role = 'admin' AND removed_at IS NULL ORDER BY id LIMIT 1`,
)

export class Accounts {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** Creates the first account, whose keys may be limited to scopes. Returns `undefined` if an account exists. */
  async createFirst(): Promise<Account | undefined> {
    return this.#store.write(async (tx) => {
      const existing = await tx.query.selectFrom('accounts').select('id').limit(1).executeTakeFirst()
      return existing ? undefined : insert(tx, { name: 'Default', scopesEnabled: true })
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

  /**
   * Updates the settings that admins control, also of the account's environments, and records each change in the audit log.
   *
   * @throws {NotAdminError}
   */
  async update(id: string, to: Settings, by: Actor): Promise<void> {
    await this.#store.write(async (tx) => {
      await requireAdmin(tx, id, by)
      const accounts = tx.query.selectFrom('accounts').selectAll().where('id', '=', id)
      const from = toAccount(await accounts.executeTakeFirstOrThrow())
      const flags = {
        scopes_enabled: to.scopesEnabled ? 1 : 0,
        second_factor_required: to.secondFactorRequired ? 1 : 0,
      } as const
      const changed = tx.query.updateTable('accounts').set({ name: to.name, ...flags })
      await changed.where((it) => it.or([it('id', '=', id), it('parent_id', '=', id)])).execute()
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

  /** The longest-standing admin of the account, or of the account that the environment belongs to. @throws {UserError} */
  async findAdminId(accountId: string): Promise<string> {
    const [admin] = await this.#store.read.all(findAdmin, [accountId])
    if (admin) return admin.id
    throw new UserError('The account has no admin.')
  }
}

export function toAccount(row: Selectable<AccountsTable>): Account {
  return {
    id: row.id,
    name: row.name,
    scopesEnabled: row.scopes_enabled === 1,
    secondFactorRequired: row.second_factor_required === 1,
    createdAt: row.created_at,
    ownerId: row.parent_id ?? row.id,
    environment: row.environment,
  }
}

/** Inserts the account and its first admin, who chooses a name and password through the welcome link. */
async function insert(tx: Transaction, { name, scopesEnabled }: Pick<Account, 'name' | 'scopesEnabled'>) {
  const [id, created_at] = [uuid(), Date.now()]
  const row = { id, name, scopes_enabled: scopesEnabled ? 1 : 0, created_at } as const
  const account = tx.query.insertInto('accounts').values(row).returningAll()
  const created = toAccount(await account.executeTakeFirstOrThrow())
  const admin = { id: uuid(), account_id: id, name: 'Admin', role: 'admin', created_at }
  await tx.query.insertInto('users').values(admin).execute()
  return created
}
