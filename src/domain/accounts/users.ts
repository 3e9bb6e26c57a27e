/** The users of accounts: who they are, how they sign in, what their owners decide of them. */

import type { Store, Transaction } from '../../storage/store.ts'
import * as apiKeys from '../api-keys/api-keys.sql.ts'
import { type Actor, recordAudit } from '../audit-log/audit-log.ts'
import { endLinksCreatedBy, endLinksForUser, requireAnotherOwner, requireUniqueEmail } from './accounts.sql.ts'
import { hashPassword, passwordError, verifyPassword } from './password.ts'
import { deleteUserSessions } from './sessions.ts'
import { parseEmail, parseName, type Role, toActor, toUser, type User, UserError, type UserRow } from './user.ts'

const findSql = `SELECT id, account_id, name, email, role, password_hash, created_at, last_signed_in_at FROM users
  WHERE id = ? AND removed_at IS NULL`

export class Users {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** `undefined` for one who was removed. */
  async get(id: string): Promise<User | undefined> {
    const [row] = await this.#store.read.all<UserRow>(findSql, [id])
    return row && toUser(row)
  }

  /** The account's users, the longest there first. */
  async list(accountId: string): Promise<User[]> {
    const rows = this.#store.read.query.selectFrom('users').selectAll().where('account_id', '=', accountId)
    return (await rows.where('removed_at', 'is', null).orderBy('id').execute()).map(toUser)
  }

  /** Everyone in the account by id, those who were removed among them, as what they made shows them. */
  async names(accountId: string): Promise<Map<string, string>> {
    const { query } = this.#store.read
    const rows = await query.selectFrom('users').select(['id', 'name']).where('account_id', '=', accountId).execute()
    return new Map(rows.map(({ id, name }) => [id, name]))
  }

  /** The user with this e-mail address and password; nothing tells which of them was wrong. */
  async authenticate(email: string, password: string): Promise<User | undefined> {
    const { query } = this.#store.read
    const user = query.selectFrom('users').selectAll().where('email', '=', email.trim().toLowerCase())
    const row = await user.where('removed_at', 'is', null).executeTakeFirst()
    return (await verifyPassword(password, row?.password_hash ?? null)) && row ? toUser(row) : undefined
  }

  /** Notes that the user has signed in. */
  async recordSignIn(user: User, how: 'password' | 'link'): Promise<void> {
    const at = Date.now()
    await this.#store.write(async (tx) => {
      await tx.query.updateTable('users').set({ last_signed_in_at: at }).where('id', '=', user.id).execute()
      await recordAudit(tx, user.accountId, { action: 'user.signedIn', by: toActor(user), details: { how } })
    })
  }

  /**
   * What a user says of themselves.
   *
   * @param current as for `changePassword`; asked for where the e-mail address is another.
   * @throws {UserError}
   */
  async updateProfile(user: User, given: { name: string; email: string }, current: string | undefined): Promise<void> {
    const name = parseName(given.name)
    const email = parseEmail(given.email)
    if (email !== user.email) await this.#refuseWrong(user, current)
    await this.#store.write(async (tx) => {
      await requireUniqueEmail(tx, email, user.id)
      await tx.query.updateTable('users').set({ name, email }).where('id', '=', user.id).execute()
      // Whoever has an e-mail address is not asked any more who they are.
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
   * Gives the user another password, and ends all their sessions and links.
   *
   * @param current what the user says it was; `undefined` where the user has shown otherwise who they are.
   * @throws {UserError}
   */
  async changePassword(user: User, current: string | undefined, password: string): Promise<void> {
    const fault = passwordError(password)
    if (fault) throw new UserError(fault, 'password')
    await this.#refuseWrong(user, current)
    const password_hash = await hashPassword(password)
    await this.#store.write(async (tx) => {
      await tx.query.updateTable('users').set({ password_hash }).where('id', '=', user.id).execute()
      await deleteUserSessions(tx, user.id)
      await endLinksForUser(tx, user.id, ['signIn'], Date.now())
      await recordAudit(tx, user.accountId, { action: 'user.passwordChanged', by: toActor(user) })
    })
  }

  async #refuseWrong({ id }: User, current: string | undefined): Promise<void> {
    if (current === undefined) return
    const [row] = await this.#store.read.all<UserRow>(findSql, [id])
    if (await verifyPassword(current, row?.password_hash ?? null)) return
    throw new UserError('This is not your present password.', 'currentPassword')
  }

  /** @throws {UserError} when the account would be without an owner. */
  async changeRole(accountId: string, id: string, role: Role, by: Actor): Promise<boolean> {
    return this.#store.write(async (tx) => {
      const user = await this.#lock(tx, accountId, id)
      if (!user || user.role === role) return user !== undefined
      if (role !== 'owner') await requireAnotherOwner(tx, accountId, id)
      await tx.query.updateTable('users').set({ role }).where('id', '=', id).execute()
      if (role !== 'owner') await endLinksCreatedBy(tx, id, Date.now())
      const details = { from: user.role, to: role }
      await recordAudit(tx, accountId, { action: 'user.roleChanged', by, subject: { id, name: user.name }, details })
      return true
    })
  }

  /**
   * Removes the user with their sessions, API keys, and links, also those that they made for others; from the moment this resolves, none of them is accepted.
   *
   * @throws {UserError} when the account would be without an owner.
   */
  async remove(accountId: string, id: string, by: Actor): Promise<boolean> {
    const at = Date.now()
    return this.#store.write(async (tx) => {
      const user = await this.#lock(tx, accountId, id)
      if (!user) return false
      await requireAnotherOwner(tx, accountId, id)
      await tx.query.updateTable('users').set({ removed_at: at, password_hash: null }).where('id', '=', id).execute()
      await deleteUserSessions(tx, id)
      await endLinksForUser(tx, id, ['welcome', 'signIn'], at)
      await endLinksCreatedBy(tx, id, at)
      for (const key of await apiKeys.markAllDeletedOf(tx, id, at)) {
        await recordAudit(tx, accountId, { action: 'apiKey.deleted', by, subject: key, details: { withUser: id } })
      }
      await recordAudit(tx, accountId, { action: 'user.removed', by, subject: { id, name: user.name } })
      return true
    })
  }

  /** The user, when no other transaction can change who owns the account until this one ends. */
  async #lock(tx: Transaction, accountId: string, id: string): Promise<User | undefined> {
    await apiKeys.lockAccountAndUser(tx, accountId, id)
    const [row] = await tx.all<UserRow>(findSql, [id])
    return row?.account_id === accountId ? toUser(row) : undefined
  }
}
