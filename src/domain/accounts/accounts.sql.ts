/** Statements that users, their second factors and sign-in links share. */
import type { Config } from '../../config/config.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import type { UsersTable } from '../../storage/tables/account-tables.ts'
import { setRoleOfKeys } from '../api-keys/api-keys.sql.ts'
import type { Actor } from '../audit-log/audit-log.ts'
import { verifyPassword } from './passwords.ts'
import type { Role } from './roles.ts'
import { canSignIn, type User, UserError, type UserRow } from './user.ts'

const findUserSql = `SELECT id, account_id, name, email, role, password_hash, created_at, last_signed_in_at,
  credentials_epoch, totp_secret, identity_issuer, role_from FROM users WHERE id = ? AND removed_at IS NULL`

/** Returns `undefined` for a removed user. */
export async function findUserRow(tx: Transaction, id: string): Promise<UserRow | undefined> {
  const [row] = await tx.all<UserRow>(findUserSql, [id])
  return row
}

/** The name of the environment, if its account has several. */
export async function findEnvironmentName({ query }: Transaction, accountId: string): Promise<string | null> {
  const account = query.selectFrom('accounts').select('environment').where('id', '=', accountId)
  return (await account.executeTakeFirst())?.environment ?? null
}

/** @throws {UserError} if another user has the e-mail address. */
export async function requireUniqueEmail({ query }: Transaction, email: string, userId: string | null): Promise<void> {
  const users = query.selectFrom('users').select('id').where('email', '=', email).where('removed_at', 'is', null)
  const other = await (userId === null ? users : users.where('id', '!=', userId)).executeTakeFirst()
  if (other) throw new UserError('Another user has this email address.', 'email')
}

/**
 * Returns the user in the credentials epoch of the password. What depends on the password happens in a transaction that
 * requires this epoch.
 *
 * @param current `undefined` if a link has just proved the user's identity. A user without a password needs none.
 * @throws {UserError} if the password is wrong.
 */
export async function requirePassword(store: Store, user: User, current: string | undefined): Promise<User> {
  if (current === undefined) return user
  const row = await findUserRow(store.read, user.id)
  if (row && (row.password_hash === null || (await verifyPassword(current, row.password_hash))))
    return { ...user, credentialsEpoch: row.credentials_epoch }
  throw new UserError('The current password is incorrect.', 'currentPassword')
}

/** @throws {UserError} if the user's credentials have changed since they were verified. */
export async function requireEpoch({ query }: Transaction, { id, credentialsEpoch }: User): Promise<void> {
  const user = query.selectFrom('users').select('id').where('id', '=', id).where('removed_at', 'is', null)
  if (await user.where('credentials_epoch', '=', credentialsEpoch).executeTakeFirst()) return
  throw new UserError('Your password or second factor was just changed. Sign in again.')
}

/** The actor has lost the role that the action requires, since the request was authenticated. */
export class NotAdminError extends Error {}

/** @throws {NotAdminError} unless the actor is an admin of the account, or the command line. */
export async function requireAdmin({ query }: Transaction, accountId: string, { kind, id }: Actor): Promise<void> {
  if (kind === 'operator') return
  if (!(await selectAdmins(query, accountId).where('id', '=', id).executeTakeFirst())) throw new NotAdminError()
}

/** The account's admins who were not removed. */
function selectAdmins(query: Transaction['query'], accountId: string) {
  const users = query.selectFrom('users').select('id').where('account_id', '=', accountId).where('role', '=', 'admin')
  return users.where('removed_at', 'is', null)
}

type Credentials = Partial<Pick<UsersTable, 'password_hash' | 'totp_secret'>> & { totp_step?: number }

/** Begins a new credentials epoch, and deletes the sessions of the former one. Returns the user in the new epoch. */
export async function changeCredentials(tx: Transaction, user: User, changes: Credentials): Promise<User> {
  const row = tx.query
    .updateTable('users')
    .set((it) => ({ ...changes, credentials_epoch: it('credentials_epoch', '+', 1) }))
  const changed = await row
    .where('id', '=', user.id)
    .returning(['credentials_epoch', 'totp_secret', 'role', 'password_hash', 'identity_issuer'])
    .executeTakeFirstOrThrow()
  await tx.query.deleteFrom('sessions').where('user_id', '=', user.id).execute()
  const { credentials_epoch: credentialsEpoch, totp_secret } = changed
  return { ...user, credentialsEpoch, hasSecondFactor: totp_secret !== null, canSignIn: canSignIn(changed) }
}

/** Like `changeCredentials`. */
export async function removeSecondFactor(tx: Transaction, user: User): Promise<User> {
  await tx.query.deleteFrom('recovery_codes').where('user_id', '=', user.id).execute()
  return changeCredentials(tx, user, { totp_secret: null })
}

export async function endLinksForUser(
  { query }: Transaction,
  userId: string,
  kinds: ('welcome' | 'signIn')[],
  at: number,
): Promise<void> {
  const links = query.updateTable('sign_in_links').set({ ended_at: at }).where('user_id', '=', userId)
  await links.where('kind', 'in', kinds).where('ended_at', 'is', null).execute()
}

/** Ends the links that the user created. */
export async function endLinksCreatedBy({ query }: Transaction, userId: string, at: number): Promise<void> {
  const links = query.updateTable('sign_in_links').set({ ended_at: at }).where('created_by', '=', userId)
  await links.where('ended_at', 'is', null).execute()
}

/**
 * Gives the user the role, or none, and their API keys what it permits. Links that they created end with the role `admin`: a
 * user who loses the right to create links must not keep a spare one.
 *
 * @param roleFrom the group of the identity provider that gives the role; by default as before.
 */
export async function setRole(
  tx: Transaction,
  userId: string,
  role: Role | null,
  roleFrom?: string | null,
): Promise<void> {
  const changes = { role, ...(roleFrom !== undefined && { role_from: roleFrom }) }
  await tx.query.updateTable('users').set(changes).where('id', '=', userId).execute()
  await setRoleOfKeys(tx, userId, role)
  if (role !== 'admin') await endLinksCreatedBy(tx, userId, Date.now())
}

/** The settings that say how people may sign in. */
export type SignInWays = Pick<Config, 'PASSWORD_SIGN_IN' | 'OIDC_ISSUER'>

/** Whether the account has another admin who can sign in: by a password, or by the identity provider. */
export async function hasOtherAdmin(
  { query }: Transaction,
  { PASSWORD_SIGN_IN: passwords, OIDC_ISSUER: issuer }: SignInWays,
  accountId: string,
  id: string,
): Promise<boolean> {
  const others = selectAdmins(query, accountId).where('id', '!=', id)
  const other = others.where((it) =>
    it.or([
      ...(passwords === 'on' ? [it('password_hash', 'is not', null)] : []),
      ...(issuer === undefined ? [] : [it('identity_issuer', '=', issuer)]),
    ]),
  )
  return (await other.limit(1).executeTakeFirst()) !== undefined
}
