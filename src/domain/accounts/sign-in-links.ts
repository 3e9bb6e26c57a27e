/** Links that work once: welcome links, invitations and sign-in links. The store keeps only hashes of tokens. */
import { randomBytes } from 'node:crypto'
import type { ExpressionBuilder } from 'kysely'
import { v7 as uuid } from 'uuid'
import { dayMilliseconds } from '../../storage/purge-target.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import type { SignInLinksTable, UsersTable } from '../../storage/tables/account-tables.ts'
import { lockAccountAndUser } from '../api-keys/api-keys.sql.ts'
import { type Actor, recordAudit } from '../audit-log/audit-log.ts'
import { changeCredentials, endLinksForUser, findUserRow, requireAdmin, requireUniqueEmail } from './accounts.sql.ts'
import { hashPassword, requireGoodPassword } from './passwords.ts'
import type { Role } from './roles.ts'
import { hashToken } from './sessions.ts'
import { parseEmail, parseName, toActor, toUser, type User, UserError } from './user.ts'

/** How long a link works. */
export const linkMilliseconds = {
  welcome: dayMilliseconds,
  invitation: 7 * dayMilliseconds,
  signIn: dayMilliseconds,
} as const

/** How long an expired link is kept. Until then, an invitation form that is submitted again is recognised. */
const keptMilliseconds = 30 * dayMilliseconds

/** `welcome` lets the account's first user choose their name and password; `signIn` signs in an existing user. */
type LinkKind = keyof typeof linkMilliseconds

export interface SignInLink {
  id: string
  kind: LinkKind
  accountId: string
  userId: string | null
  role: Role | null
  label: string | null
  createdAt: number
  expiresAt: number
}

interface NewUser {
  name: string
  email: string
  password: string
}

interface NewLink {
  id?: string
  kind: LinkKind
  accountId: string
  userId?: string
  role?: Role
  label?: string
  /** The ID of the user who creates the link. */
  by?: string | null
}

/** The link was used or withdrawn, has expired, or never existed. */
export class LinkExpiredError extends Error {}

/** All methods that create a link return its token, which cannot be read later. */
export class SignInLinks {
  readonly #store: Store
  readonly #now: () => number

  constructor(store: Store, now: () => number = Date.now) {
    this.#store = store
    this.#now = now
  }

  /** Replaces the account's welcome link. Returns `undefined` if the account's first user has used one. */
  async createWelcomeLink(accountId: string): Promise<string | undefined> {
    return this.#store.write(async (tx) => {
      const users = tx.query.selectFrom('users').select('id').where('account_id', '=', accountId)
      const user = await users.where(isUnclaimed).where('removed_at', 'is', null).orderBy('id').executeTakeFirst()
      if (!user) return undefined
      return this.#replace(tx, { kind: 'welcome', accountId, userId: user.id })
    })
  }

  /** Creates a welcome link for the first account, unless a user of any account can sign in, or could until removed. */
  async createFirstWelcomeLink(): Promise<string | undefined> {
    const { query } = this.#store.read
    const users = query.selectFrom('users').select('id').limit(1)
    const claimed = users.where((it) => it.or([it.not(isUnclaimed(it)), it('removed_at', 'is not', null)]))
    if (await claimed.executeTakeFirst()) return undefined
    const accounts = query.selectFrom('accounts').select('id').where('parent_id', 'is', null)
    const account = await accounts.orderBy('id').limit(1).executeTakeFirst()
    return account && this.createWelcomeLink(account.id)
  }

  /**
   * @param invitation.id makes the call idempotent; by default a new ID.
   * @throws {UserError} if an invitation with this ID exists. @throws {NotAdminError}
   */
  async invite(accountId: string, invitation: { id?: string; label: string; role: Role }, by: Actor): Promise<string> {
    const { id = uuid(), label, role } = invitation
    return this.#store.write(async (tx) => {
      // A role that another transaction takes from the admin is read once that one has ended their links.
      await lockAccountAndUser(tx, accountId, by.id ?? '')
      await requireAdmin(tx, accountId, by)
      const same = tx.query.selectFrom('sign_in_links').select('id').where('id', '=', id)
      if (await same.executeTakeFirst()) throw new UserError('This invitation has already been created.', 'repeated')
      const token = await this.#insert(tx, { id, kind: 'invitation', accountId, label, role, by: by.id })
      await recordAudit(tx, accountId, { action: 'user.invited', by, subject: { id, name: label }, details: { role } })
      return token
    })
  }

  /** Replaces the user's sign-in link. @throws {NotAdminError} @throws {UserError} if the user has no role. */
  async createSignInLink(user: User, by: Actor): Promise<string> {
    const subject = { id: user.id, name: user.name }
    return this.#store.write(async (tx) => {
      await lockAccountAndUser(tx, user.accountId, user.id)
      await requireAdmin(tx, user.accountId, by)
      const row = await findUserRow(tx, user.id)
      if (!row || row.role === null) throw new UserError('This user has no role, and therefore cannot sign in.')
      await recordAudit(tx, user.accountId, { action: 'user.signInLinkMade', by, subject })
      return this.#replace(tx, { kind: 'signIn', accountId: user.accountId, userId: user.id, by: by.id })
    })
  }

  /** Returns the link of a token while it works, without using it. */
  async find(token: string): Promise<SignInLink | undefined> {
    const row = await this.#selectWorking(this.#store.read).where('hash', '=', hashToken(token)).executeTakeFirst()
    return row && toSignInLink(row)
  }

  /** Uses a welcome link or an invitation. @throws {LinkExpiredError | UserError} */
  async accept(token: string, newUser: NewUser): Promise<User> {
    const name = parseName(newUser.name)
    const email = parseEmail(newUser.email)
    requireGoodPassword(newUser.password, [email, name])
    const password_hash = await hashPassword(newUser.password)
    return this.#store.write(async (tx) => {
      const link = await this.#end(tx, token, ['welcome', 'invitation'])
      await requireUniqueEmail(tx, email, link.user_id)
      const row = {
        id: link.user_id ?? uuid(),
        account_id: link.account_id,
        name,
        email,
        password_hash,
        role: link.role ?? 'admin',
        created_at: this.#now(),
        last_signed_in_at: null,
        credentials_epoch: 0,
        totp_secret: null,
        identity_issuer: null,
        role_from: null,
      }
      if (link.user_id === null) await tx.query.insertInto('users').values(row).execute()
      const user = link.user_id === null ? toUser(row) : await claimFirstUser(tx, toUser(row), password_hash)
      const details = { how: link.kind, role: user.role }
      await recordAudit(tx, user.accountId, { action: 'user.joined', by: toActor(user), details })
      return user
    })
  }

  /** Uses a sign-in link. @throws {LinkExpiredError} */
  async useSignInLink(token: string): Promise<User> {
    return this.#store.write(async (tx) => {
      const link = await this.#end(tx, token, ['signIn'])
      const row = await findUserRow(tx, link.user_id ?? '')
      if (!row || row.role === null) throw new LinkExpiredError()
      return toUser(row)
    })
  }

  /** The account's invitations that still work, newest first. */
  async listInvitations(accountId: string): Promise<SignInLink[]> {
    const rows = await this.#selectInvitations(this.#store.read, accountId).orderBy('id', 'desc').execute()
    return rows.map(toSignInLink)
  }

  /** Returns whether there was such an invitation. */
  async withdrawInvitation(accountId: string, id: string, by: Actor): Promise<boolean> {
    return this.#store.write(async (tx) => {
      await requireAdmin(tx, accountId, by)
      const row = await this.#selectInvitations(tx, accountId).where('id', '=', id).executeTakeFirst()
      if (!row) return false
      await tx.query.updateTable('sign_in_links').set({ ended_at: this.#now() }).where('id', '=', id).execute()
      const subject = { id, name: row.label ?? '' }
      await recordAudit(tx, accountId, { action: 'user.invitationWithdrawn', by, subject })
      return true
    })
  }

  #selectInvitations(tx: Transaction, accountId: string) {
    return this.#selectWorking(tx).where('account_id', '=', accountId).where('kind', '=', 'invitation')
  }

  #selectWorking({ query }: Transaction) {
    const links = query.selectFrom('sign_in_links').selectAll().where('ended_at', 'is', null)
    return links.where('expires_at', '>', this.#now())
  }

  /** Ends the link with one UPDATE in the transaction that uses it, so that of concurrent uses only one succeeds. */
  async #end({ query }: Transaction, token: string, kinds: LinkKind[]): Promise<SignInLinksTable> {
    const now = this.#now()
    const link = query.updateTable('sign_in_links').set({ ended_at: now }).where('hash', '=', hashToken(token))
    const working = link.where('kind', 'in', kinds).where('ended_at', 'is', null).where('expires_at', '>', now)
    const row = await working.returningAll().executeTakeFirst()
    if (!row) throw new LinkExpiredError()
    return row
  }

  async #replace(tx: Transaction, link: NewLink & { kind: 'welcome' | 'signIn'; userId: string }): Promise<string> {
    await endLinksForUser(tx, link.userId, [link.kind], this.#now())
    return this.#insert(tx, link)
  }

  async #insert({ query }: Transaction, link: NewLink): Promise<string> {
    const token = randomBytes(24).toString('base64url')
    const at = this.#now()
    const old = query.deleteFrom('sign_in_links').where('expires_at', '<=', at - keptMilliseconds)
    await old.execute()
    await query
      .insertInto('sign_in_links')
      .values({
        id: link.id ?? uuid(),
        hash: hashToken(token),
        kind: link.kind,
        account_id: link.accountId,
        user_id: link.userId ?? null,
        role: link.role ?? null,
        label: link.label ?? null,
        created_by: link.by ?? null,
        created_at: at,
        expires_at: at + linkMilliseconds[link.kind],
      })
      .execute()
    return token
  }
}

/**
 * A user as the account's creation makes them, who cannot sign in. Members who join by the identity provider may have no
 * e-mail address, and have an identity.
 */
function isUnclaimed(it: ExpressionBuilder<{ users: UsersTable }, 'users'>) {
  return it.and([it('email', 'is', null), it('identity_issuer', 'is', null), it('password_hash', 'is', null)])
}

/** Completes the account's first user, once. @throws {LinkExpiredError} if the user can sign in. */
async function claimFirstUser(tx: Transaction, user: User, password_hash: string): Promise<User> {
  const { id, name, email } = user
  const row = tx.query.updateTable('users').set({ name, email }).where('id', '=', id)
  const result = await row.where(isUnclaimed).where('removed_at', 'is', null).executeTakeFirst()
  if (result.numUpdatedRows === 0n) throw new LinkExpiredError()
  return changeCredentials(tx, user, { password_hash })
}

function toSignInLink(row: SignInLinksTable): SignInLink {
  return {
    id: row.id,
    kind: row.kind as LinkKind,
    accountId: row.account_id,
    userId: row.user_id,
    role: row.role as Role | null,
    label: row.label,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  }
}
