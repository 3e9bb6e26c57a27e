/** Members who sign in by an identity provider. They are known by its issuer and subject, never by an e-mail address. */
import { v7 as uuid } from 'uuid'
import type { Store, Transaction } from '../../storage/store.ts'
import { lockAccountAndUser } from '../api-keys/api-keys.sql.ts'
import { type Actor, recordAudit } from '../audit-log/audit-log.ts'
import { nameError } from '../display-names.ts'
import {
  changeCredentials,
  endLinksForUser,
  hasOtherAdmin,
  requireAdmin,
  type SignInWays,
  setRole,
} from './accounts.sql.ts'
import type { Role } from './roles.ts'
import { parseEmail, toActor, toUser, type User, UserError, type UserRow } from './user.ts'

/** A person whom the provider has just signed in. */
export interface ProviderIdentity {
  issuer: string
  subject: string
  name: string | undefined
  /** Only an address that the provider has verified. */
  email: string | undefined
}

/** The role that the mapping gives, and the group that it gives it for. */
export interface GivenRole {
  role: Role
  group: string
}

/**
 * `noRole`: no group of the person has a role. `removed`: an admin removed the member. `otherAccount`: the member belongs to
 * another account than the configured one.
 */
export type ProviderRefusal = 'noRole' | 'removed' | 'otherAccount'

/** As the audit log records what the mapping of groups does. */
const mapping: Actor = { kind: 'operator', id: null, name: 'identity provider' }

export class ProviderMembers {
  readonly #store: Store
  readonly #ways: SignInWays

  constructor(store: Store, ways: SignInWays) {
    this.#store = store
    this.#ways = ways
  }

  /** Signs in the member, who joins the account the first time, with the role that their groups have now. */
  async signIn(
    accountId: string,
    identity: ProviderIdentity,
    given: GivenRole | undefined,
  ): Promise<User | ProviderRefusal> {
    return this.#store.write(async (tx) => {
      const known = await findByIdentity(tx, identity)
      // In the same order as every change of roles. Concurrent first sign-ins of a person follow each other.
      await lockAccountAndUser(tx, accountId, known?.id ?? '')
      const row = await findByIdentity(tx, identity)
      if (!row) return given ? join(tx, accountId, identity, given) : 'noRole'
      if (row.removed_at !== null) return 'removed'
      if (row.account_id !== accountId) return 'otherAccount'
      const user = toUser(row)
      return given ? applyRole(tx, this.#ways, user, given) : removeRole(tx, user)
    })
  }

  /** The user whom the provider has signed in before, also when they were removed. */
  async find(identity: Pick<ProviderIdentity, 'issuer' | 'subject'>): Promise<User | undefined> {
    const row = await findByIdentity(this.#store.read, identity)
    return row && toUser(row)
  }

  /** Removed members of the account whom the provider may not sign in again. */
  async listRemoved(accountId: string, issuer: string): Promise<User[]> {
    const users = this.#store.read.query.selectFrom('users').selectAll().where('account_id', '=', accountId)
    const removed = users.where('removed_at', 'is not', null).where('identity_issuer', '=', issuer)
    return (await removed.orderBy('id').execute()).map(toUser)
  }

  /** Lets a removed member join again, as a new member. Returns whether there was one. @throws {NotAdminError} */
  async allowAgain(accountId: string, id: string, by: Actor): Promise<boolean> {
    return this.#store.write(async (tx) => {
      await requireAdmin(tx, accountId, by)
      const user = tx.query.updateTable('users').set({ identity_issuer: null, identity_subject: null })
      const removed = user.where('id', '=', id).where('account_id', '=', accountId).where('removed_at', 'is not', null)
      const row = await removed.where('identity_issuer', 'is not', null).returning('name').executeTakeFirst()
      if (!row) return false
      await recordAudit(tx, accountId, { action: 'user.allowedAgain', by, subject: { id, name: row.name } })
      return true
    })
  }
}

function findByIdentity({ query }: Transaction, { issuer, subject }: Pick<ProviderIdentity, 'issuer' | 'subject'>) {
  const users = query.selectFrom('users').selectAll().where('identity_issuer', '=', issuer)
  return users.where('identity_subject', '=', subject).executeTakeFirst()
}

/** A member whose address another user has, of any account, joins without one: a refusal would tell of that user. */
async function join(
  tx: Transaction,
  accountId: string,
  { issuer, subject, name, email: verified }: ProviderIdentity,
  { role, group }: GivenRole,
): Promise<User> {
  const email = readEmail(verified)
  const shown = name?.trim() || email || subject
  const row = {
    id: uuid(),
    account_id: accountId,
    name: nameError(shown) ? 'Member' : shown,
    email,
    password_hash: null,
    role,
    created_at: Date.now(),
    last_signed_in_at: null,
    credentials_epoch: 0,
    totp_secret: null,
    identity_issuer: issuer,
    identity_subject: subject,
    role_from: group,
  }
  const user = toUser((await insertUnlessTaken(tx, row)) ? row : await insertWithoutEmail(tx, row))
  if (role === 'admin') await endWelcomeLinks(tx, accountId)
  await recordAudit(tx, accountId, {
    action: 'user.joined',
    by: toActor(user),
    details: { how: 'provider', role, group },
  })
  return user
}

type JoiningRow = UserRow & { identity_subject: string }

/** Returns whether no other user has the address. Concurrent transactions may give it to a user, too. */
async function insertUnlessTaken({ query }: Transaction, row: JoiningRow): Promise<boolean> {
  if (row.email === null) return false
  const insert = query
    .insertInto('users')
    .values(row)
    .onConflict((it) => it.doNothing())
  return (await insert.returning('id').executeTakeFirst()) !== undefined
}

async function insertWithoutEmail({ query }: Transaction, row: JoiningRow): Promise<JoiningRow> {
  const joining = { ...row, email: null }
  await query.insertInto('users').values(joining).execute()
  return joining
}

/** The account has an admin who can sign in: it needs no link by which its first user becomes one. */
async function endWelcomeLinks({ query }: Transaction, accountId: string): Promise<void> {
  const links = query.updateTable('sign_in_links').set({ ended_at: Date.now() }).where('account_id', '=', accountId)
  await links.where('kind', '=', 'welcome').where('ended_at', 'is', null).execute()
}

/** Ends all by which the member, or a person with a link of theirs, could act with the role that they had. */
async function removeRole(tx: Transaction, user: User): Promise<'noRole'> {
  if (user.role === null) return 'noRole'
  await changeCredentials(tx, user, {})
  await setRole(tx, user.id, null, null)
  await endLinksForUser(tx, user.id, ['welcome', 'signIn'], Date.now())
  await recordRoleChange(tx, user, { to: 'none' })
  return 'noRole'
}

async function recordRoleChange(tx: Transaction, user: User, to: { to: Role | 'none'; group?: string }) {
  const details = { from: user.role ?? 'none', ...to }
  const subject = { id: user.id, name: user.name }
  await recordAudit(tx, user.accountId, { action: 'user.roleChanged', by: mapping, subject, details })
}

/** The last admin keeps the role: otherwise no member could manage the account. */
async function applyRole(tx: Transaction, ways: SignInWays, user: User, { role, group }: GivenRole): Promise<User> {
  const isLowered = user.role === 'admin' && role !== 'admin'
  const staysAdmin = isLowered && !(await hasOtherAdmin(tx, ways, user.accountId, user.id))
  const applied = staysAdmin ? 'admin' : role
  const roleFrom = staysAdmin ? user.roleFrom : group
  if (applied === user.role && roleFrom === user.roleFrom) return user
  await setRole(tx, user.id, applied, roleFrom)
  if (applied !== user.role) await recordRoleChange(tx, user, { to: applied, group })
  return { ...user, role: applied, roleFrom }
}

function readEmail(text: string | undefined): string | null {
  try {
    return text === undefined ? null : parseEmail(text)
  } catch (error) {
    if (error instanceof UserError) return null
    throw error
  }
}
