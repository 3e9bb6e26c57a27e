/** Users of an account: signing in, profile, password, roles and removal. */
import { type Store, statement, type Transaction } from '../../storage/store.ts'
import * as apiKeys from '../api-keys/api-keys.sql.ts'
import { type Actor, recordAudit } from '../audit-log/audit-log.ts'
import {
  changeCredentials,
  endLinksCreatedBy,
  endLinksForUser,
  findUserRow,
  hasOtherAdmin,
  removeSecondFactor,
  requireAdmin,
  requireEpoch,
  requirePassword,
  requireUniqueEmail,
  type SignInWays,
  setRole,
} from './accounts.sql.ts'
import { hashPassword, requireGoodPassword, verifyPassword } from './passwords.ts'
import type { Role } from './roles.ts'
import { parseEmail, parseName, toActor, toUser, type User, UserError } from './user.ts'

const findNames = statement<{ id: string; name: string }, [accountId: string]>(
  `SELECT id, name FROM users WHERE account_id = (SELECT COALESCE(parent_id, id) FROM accounts WHERE id = ?)`,
)

export class Users {
  readonly #store: Store
  readonly #ways: SignInWays

  constructor(store: Store, ways: SignInWays) {
    this.#store = store
    this.#ways = ways
  }

  /** Returns `undefined` for a removed user. */
  async get(id: string): Promise<User | undefined> {
    const row = await findUserRow(this.#store.read, id)
    return row && toUser(row)
  }

  /** The account's users, oldest first. */
  async list(accountId: string): Promise<User[]> {
    const rows = this.#store.read.query.selectFrom('users').selectAll().where('account_id', '=', accountId)
    return (await rows.where('removed_at', 'is', null).orderBy('id').execute()).map(toUser)
  }

  /** Names by user ID. Includes removed users, who still appear as creators. @param accountId may be of an environment. */
  async names(accountId: string): Promise<Map<string, string>> {
    const rows = await this.#store.read.all(findNames, [accountId])
    return new Map(rows.map(({ id, name }) => [id, name]))
  }

  /** The user with this e-mail address and password. The result does not reveal which of the two was wrong. */
  async authenticate(email: string, password: string): Promise<User | undefined> {
    const row = await this.#findByEmail(email)
    return (await verifyPassword(password, row?.password_hash ?? null)) && row ? toUser(row) : undefined
  }

  async findByEmail(email: string): Promise<User | undefined> {
    const row = await this.#findByEmail(email)
    return row && toUser(row)
  }

  #findByEmail(email: string) {
    const users = this.#store.read.query.selectFrom('users').selectAll()
    return users.where('email', '=', email.trim().toLowerCase()).where('removed_at', 'is', null).executeTakeFirst()
  }

  /**
   * @param current the current password, checked if the e-mail address changes; `undefined` as in `changePassword`.
   * @throws {UserError}
   */
  async updateProfile(user: User, to: { name: string; email: string }, current: string | undefined): Promise<void> {
    const name = parseName(to.name)
    // Members who sign in by the identity provider need none.
    const email = user.identityIssuer !== null && to.email.trim() === '' ? null : parseEmail(to.email)
    const proven = email === user.email ? user : await requirePassword(this.#store, user, current)
    await this.#store.write(async (tx) => {
      await requireEpoch(tx, proven)
      if (email !== null) await requireUniqueEmail(tx, email, user.id)
      await tx.query.updateTable('users').set({ name, email }).where('id', '=', user.id).execute()
      // A welcome link lets its holder choose the name and e-mail address, which are now set.
      await endLinksForUser(tx, user.id, ['welcome'], Date.now())
      const details = {
        ...(name !== user.name && { from: user.name, to: name }),
        ...(email !== user.email && { email: user.email, newEmail: email }),
      }
      if (Object.keys(details).length === 0) return
      await recordAudit(tx, user.accountId, { action: 'user.described', by: toActor(user), details })
    })
  }

  /**
   * Changes the password, and ends all sessions and sign-in links of the user. Returns the user, for a new session.
   *
   * @param current the current password; `undefined` if the user has signed in by a link, which proves their identity.
   * @throws {UserError}
   */
  async changePassword(user: User, current: string | undefined, password: string): Promise<User> {
    // A password would outlast the groups of the provider.
    if (user.identityIssuer !== null) throw new UserError('You sign in by the identity provider, and have no password.')
    requireGoodPassword(password, [user.email, user.name])
    const proven = await requirePassword(this.#store, user, current)
    const password_hash = await hashPassword(password)
    return this.#store.write(async (tx) => {
      await requireEpoch(tx, proven)
      const changed = await changeCredentials(tx, user, { password_hash })
      await endLinksForUser(tx, user.id, ['signIn'], Date.now())
      await recordAudit(tx, user.accountId, { action: 'user.passwordChanged', by: toActor(user) })
      return changed
    })
  }

  /** Removes the second factor of a user who has lost it, and ends their sessions. Returns whether they had one. */
  async removeSecondFactor(accountId: string, id: string, by: Actor): Promise<boolean> {
    return this.#store.write(async (tx) => {
      const user = await this.#lock(tx, accountId, id)
      if (!user?.hasSecondFactor) return false
      await removeSecondFactor(tx, user)
      await recordAudit(tx, accountId, { action: 'user.secondFactorRemoved', by, subject: { id, name: user.name } })
      return true
    })
  }

  /** Returns whether the user exists. @throws {UserError} if the account would have no admin. */
  async changeRole(accountId: string, id: string, role: Role, by: Actor): Promise<boolean> {
    return this.#store.write(async (tx) => {
      const user = await this.#lock(tx, accountId, id)
      await requireAdmin(tx, accountId, by)
      if (!user || user.role === role) return user !== undefined
      if (user.role === 'admin') await this.#requireAnotherAdmin(tx, accountId, id)
      await setRole(tx, id, role)
      const details = { from: user.role ?? 'none', to: role }
      await recordAudit(tx, accountId, { action: 'user.roleChanged', by, subject: { id, name: user.name }, details })
      return true
    })
  }

  /**
   * Removes the user with their sessions, API keys and links, including the links they created for others. Once this
   * resolves, no process accepts any of them. Returns whether the user existed.
   *
   * @throws {UserError} if the account would have no admin.
   */
  async remove(accountId: string, id: string, by: Actor): Promise<boolean> {
    const at = Date.now()
    return this.#store.write(async (tx) => {
      const user = await this.#lock(tx, accountId, id)
      await requireAdmin(tx, accountId, by)
      if (!user) return false
      if (user.role === 'admin') await this.#requireAnotherAdmin(tx, accountId, id)
      await removeSecondFactor(tx, user)
      await tx.query.updateTable('users').set({ removed_at: at, password_hash: null }).where('id', '=', id).execute()
      await endLinksForUser(tx, id, ['welcome', 'signIn'], at)
      await endLinksCreatedBy(tx, id, at)
      for (const { accountId: environment, ...subject } of await apiKeys.deleteAllOfUser(tx, id, at))
        await recordAudit(tx, environment, { action: 'apiKey.deleted', by, subject, details: { withUser: id } })
      await recordAudit(tx, accountId, { action: 'user.removed', by, subject: { id, name: user.name } })
      return true
    })
  }

  /** Reads the user, and prevents other transactions from changing the account's admins until this one ends. */
  async #lock(tx: Transaction, accountId: string, id: string): Promise<User | undefined> {
    await apiKeys.lockAccountAndUser(tx, accountId, id)
    const row = await findUserRow(tx, id)
    return row?.account_id === accountId ? toUser(row) : undefined
  }

  /** @throws {UserError} if the account has no other admin. */
  async #requireAnotherAdmin(tx: Transaction, accountId: string, id: string): Promise<void> {
    if (await hasOtherAdmin(tx, this.#ways, accountId, id)) return
    throw new UserError('This user is the only admin. Make another user an admin first.')
  }
}
