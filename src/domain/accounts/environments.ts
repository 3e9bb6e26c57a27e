/**
 * The environments of an account, such as `production` and `staging`. The account is its first environment. Each other one is
 * a row of accounts, too, so that everything that belongs to an account is apart in each. Users, their roles and settings of
 * the account belong to the first.
 */
import { v7 as uuid } from 'uuid'
import type { Contents } from '../../storage/blobs/contents.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import { lockAccountAndUser } from '../api-keys/api-keys.sql.ts'
import { type Actor, recordAudit } from '../audit-log/audit-log.ts'
import { type DeletionReceipt, deleteAccount } from './account-deletion.ts'
import { requireAdmin } from './accounts.sql.ts'
import { type Account, toAccount } from './accounts.ts'

/** The name of the first environment, once the account has another one. */
export const firstEnvironmentDefault = 'production'

const namePattern = /^[a-z][a-z0-9-]{0,31}$/

export const environmentNameHint = 'Use 1 to 32 lower-case letters, digits and hyphens, beginning with a letter.'

/** A rejected change. The message is for the person who asked for it. */
export class EnvironmentError extends Error {
  /** What is wrong. */
  readonly member: 'name' | 'first' | undefined

  constructor(message: string, member?: EnvironmentError['member']) {
    super(message)
    this.member = member
  }
}

export interface NewEnvironment {
  name: string
  /** The name of the account's first environment, when it gets its second one. Default `production`. */
  first?: string | undefined
}

export class Environments {
  /** Of one account. */
  readonly max: number
  readonly #store: Store
  readonly #contents: Pick<Contents, 'deleteUnused'>

  constructor(store: Store, contents: Pick<Contents, 'deleteUnused'>, max: number) {
    this.#store = store
    this.#contents = contents
    this.max = max
  }

  /** The account itself first, then the others by name; empty if there is no such account. @param ownerId has the users. */
  list(ownerId: string): Promise<Account[]> {
    return listEnvironments(this.#store.read, ownerId)
  }

  /** `undefined` also for an account with one environment. */
  async find(ownerId: string, name: string): Promise<Account | undefined> {
    return (await this.list(ownerId)).find(({ environment }) => environment === name)
  }

  /** @throws {EnvironmentError} @throws {NotAdminError} */
  async add(ownerId: string, { name, first }: NewEnvironment, by: Actor): Promise<Account> {
    requireName(name, 'name')
    return this.#store.write(async (tx) => {
      // Additions and the removal of the last other environment follow each other.
      await lockAccountAndUser(tx, ownerId, by.id ?? '')
      await requireAdmin(tx, ownerId, by)
      const existing = await listEnvironments(tx, ownerId)
      const [owner] = existing
      if (owner?.ownerId !== ownerId) throw new EnvironmentError('There is no such account.')
      const firstName = owner.environment ?? first ?? firstEnvironmentDefault
      requireName(firstName, 'first')
      if (name === firstName || existing.some(({ environment }) => environment === name))
        throw new EnvironmentError(`The account has an environment "${name}" already.`, 'name')
      if (existing.length >= this.max) throw new EnvironmentError(this.#limitMessage())
      if (owner.environment === null)
        await tx.query.updateTable('accounts').set({ environment: firstName }).where('id', '=', ownerId).execute()
      const created = await insertEnvironment(tx, owner, name)
      const details = { ...(owner.environment === null && { first: firstName }) }
      await recordAudit(tx, ownerId, { action: 'environment.added', by, subject: { id: created.id, name }, details })
      return created
    })
  }

  /**
   * Deletes the environment with everything that it has, as the deletion of an account. It may take as long as its running
   * attempts. When it is interrupted, the next one deletes the rest. Returns `undefined` if there is none with the name.
   *
   * @throws {EnvironmentError} for the first environment. @throws {NotAdminError}
   */
  async remove(ownerId: string, name: string, by: Actor): Promise<DeletionReceipt | undefined> {
    const found = await this.#store.write(async (tx) => {
      await requireAdmin(tx, ownerId, by)
      const environment = (await listEnvironments(tx, ownerId)).find((each) => each.environment === name)
      if (!environment) return undefined
      if (environment.id === ownerId)
        throw new EnvironmentError('The first environment is the account itself: it is deleted with the account.')
      const subject = { id: environment.id, name }
      await recordAudit(tx, ownerId, { action: 'environment.removalStarted', by, subject })
      return environment
    })
    if (!found) return undefined
    const receipt = await deleteAccount(this.#store, found, this.#contents)
    const rows = Object.values(receipt.deleted).reduce((sum, count) => sum + count, 0)
    const entry = { by, subject: { id: found.id, name }, details: { rows, left: receipt.left } }
    await this.#store.write((tx) => recordAudit(tx, ownerId, { action: 'environment.removed', ...entry }))
    return receipt
  }

  #limitMessage(): string {
    if (this.max === 1) return 'Environments are switched off on this installation, by ENVIRONMENTS_MAX.'
    return `The account has ${this.max} environments, which is the limit. Remove one first.`
  }
}

async function listEnvironments({ query }: Transaction, ownerId: string): Promise<Account[]> {
  const accounts = query.selectFrom('accounts').selectAll()
  const rows = await accounts.where((it) => it.or([it('id', '=', ownerId), it('parent_id', '=', ownerId)])).execute()
  const order = ({ id, environment }: Account) => (id === ownerId ? '' : (environment ?? ''))
  return rows.map(toAccount).sort((a, b) => (order(a) < order(b) ? -1 : 1))
}

/** With copies of what belongs to the owner. `Accounts.update` changes both. */
async function insertEnvironment({ query }: Transaction, owner: Account, name: string): Promise<Account> {
  const row = {
    id: uuid(),
    name: owner.name,
    scopes_enabled: owner.scopesEnabled ? 1 : 0,
    second_factor_required: owner.secondFactorRequired ? 1 : 0,
    created_at: Date.now(),
    parent_id: owner.id,
    environment: name,
  } as const
  const inserted = query.insertInto('accounts').values(row).returningAll()
  return toAccount(await inserted.executeTakeFirstOrThrow())
}

/** @throws {EnvironmentError} */
function requireName(name: string, member: 'name' | 'first'): void {
  if (!namePattern.test(name)) throw new EnvironmentError(environmentNameHint, member)
}
