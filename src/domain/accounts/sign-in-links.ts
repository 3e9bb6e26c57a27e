/**
 * Links that work once: the first one into an account, invitations, and those that sign a user in without a password.
 * Only a hash of the token is stored.
 */
import { hash, randomBytes } from 'node:crypto'
import { v7 as uuid } from 'uuid'
import type { Store, Transaction } from '../../storage/store.ts'
import type { SignInLinksTable } from '../../storage/tables.ts'
import { type Actor, recordAudit } from '../audit-log/audit-log.ts'
import { deleteOldLinks, endLinksForUser, requireUniqueEmail } from './accounts.sql.ts'
import { hashPassword, passwordError } from './password.ts'
import { parseEmail, parseName, type Role, toActor, toUser, type User, UserError } from './user.ts'

const hour = 60 * 60 * 1000

/** How long a link works, in milliseconds. */
export const linkMilliseconds = { welcome: 24 * hour, invitation: 7 * 24 * hour, signIn: 24 * hour } as const

/** `welcome` lets the user who came with the account choose who they are; `signIn` signs in a user as they are. */
export type LinkKind = keyof typeof linkMilliseconds

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

export interface NewUser {
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
  /** The user who makes it. */
  by?: string | null
}

/** The link does not work: it was used, withdrawn, has expired, or never was one. */
export class LinkExpiredError extends Error {}

export class SignInLinks {
  readonly #store: Store
  readonly #now: () => number

  constructor(store: Store, now: () => number = Date.now) {
    this.#store = store
    this.#now = now
  }

  /**
   * A new welcome link into the account, in place of earlier ones; returns its token. `undefined` when the user who
   * came with the account has opened one already.
   */
  async createWelcomeLink(accountId: string): Promise<string | undefined> {
    return this.#store.write(async (tx) => {
      const unclaimed = tx.query.selectFrom('users').select('id').where('account_id', '=', accountId)
      const user = await unclaimed.where('email', 'is', null).where('removed_at', 'is', null).executeTakeFirst()
      if (!user) return undefined
      return this.#replace(tx, { kind: 'welcome', accountId, userId: user.id })
    })
  }

  /** A welcome link into the first account, as long as nobody can sign in to any; returns its token. */
  async createFirstWelcomeLink(): Promise<string | undefined> {
    const { query } = this.#store.read
    const claimed = await query
      .selectFrom('users')
      .select('id')
      .where('email', 'is not', null)
      .limit(1)
      .executeTakeFirst()
    if (claimed) return undefined
    const account = await query.selectFrom('accounts').select('id').orderBy('id').limit(1).executeTakeFirst()
    return account && this.createWelcomeLink(account.id)
  }

  /**
   * An invitation to the account; returns its token.
   *
   * @param invitation the same id makes no second one; a new id unless given.
   * @throws {UserError} when there is one with this id.
   */
  async invite(accountId: string, invitation: { id?: string; label: string; role: Role }, by: Actor): Promise<string> {
    const { id = uuid(), label, role } = invitation
    return this.#store.write(async (tx) => {
      const same = tx.query.selectFrom('sign_in_links').select('id').where('id', '=', id)
      if (await same.executeTakeFirst()) throw new UserError('This invitation was made already.', 'repeated')
      const token = await this.#insert(tx, { id, kind: 'invitation', accountId, label, role, by: by.id })
      await recordAudit(tx, accountId, { action: 'user.invited', by, subject: { id, name: label }, details: { role } })
      return token
    })
  }

  /** A link that signs the user in, in place of earlier ones; returns its token. */
  async createSignInLink(user: User, by: Actor): Promise<string> {
    const subject = { id: user.id, name: user.name }
    return this.#store.write(async (tx) => {
      await recordAudit(tx, user.accountId, { action: 'user.signInLinkMade', by, subject })
      return this.#replace(tx, { kind: 'signIn', accountId: user.accountId, userId: user.id, by: by.id })
    })
  }

  /** The link behind the token, as long as it works. */
  async find(token: string): Promise<SignInLink | undefined> {
    const row = await this.#find(this.#store.read, token)
    return row && toSignInLink(row)
  }

  /** Uses a welcome link or an invitation. @throws {LinkExpiredError | UserError} */
  async accept(token: string, given: NewUser): Promise<User> {
    const name = parseName(given.name)
    const email = parseEmail(given.email)
    const fault = passwordError(given.password)
    if (fault) throw new UserError(fault, 'password')
    const password_hash = await hashPassword(given.password)
    return this.#store.write(async (tx) => {
      const link = await this.#end(tx, token, ['welcome', 'invitation'])
      await requireUniqueEmail(tx, email, link.user_id)
      const row = {
        id: link.user_id ?? uuid(),
        account_id: link.account_id,
        name,
        email,
        password_hash,
        role: link.role ?? 'owner',
        created_at: this.#now(),
        last_signed_in_at: null,
      }
      if (link.user_id === null) await tx.query.insertInto('users').values(row).execute()
      else await claim(tx, row)
      const user = toUser(row)
      const details = { how: link.kind, role: user.role }
      await recordAudit(tx, user.accountId, { action: 'user.joined', by: toActor(user), details })
      return user
    })
  }

  /** Uses a sign-in link. @throws {LinkExpiredError} */
  async useSignInLink(token: string): Promise<User> {
    return this.#store.write(async (tx) => {
      const link = await this.#end(tx, token, ['signIn'])
      const user = tx.query.selectFrom('users').selectAll().where('id', '=', link.user_id)
      const row = await user.where('removed_at', 'is', null).executeTakeFirst()
      if (!row) throw new LinkExpiredError()
      return toUser(row)
    })
  }

  /** Invitations of the account that still work, the newest first. */
  async listInvitations(accountId: string): Promise<SignInLink[]> {
    const rows = this.#working(this.#store.read).where('account_id', '=', accountId).where('kind', '=', 'invitation')
    return (await rows.orderBy('id', 'desc').execute()).map(toSignInLink)
  }

  /** Withdraws an invitation; false when there is no such one that still works. */
  async withdrawInvitation(accountId: string, id: string, by: Actor): Promise<boolean> {
    return this.#store.write(async (tx) => {
      const found = this.#working(tx).where('account_id', '=', accountId).where('kind', '=', 'invitation')
      const row = await found.where('id', '=', id).executeTakeFirst()
      if (!row) return false
      await tx.query.updateTable('sign_in_links').set({ ended_at: this.#now() }).where('id', '=', id).execute()
      const subject = { id, name: row.label ?? '' }
      await recordAudit(tx, accountId, { action: 'user.invitationWithdrawn', by, subject })
      return true
    })
  }

  #working({ query }: Transaction) {
    return query
      .selectFrom('sign_in_links')
      .selectAll()
      .where('ended_at', 'is', null)
      .where('expires_at', '>', this.#now())
  }

  async #find(tx: Transaction, token: string): Promise<SignInLinksTable | undefined> {
    return this.#working(tx).where('hash', '=', hashOfToken(token)).executeTakeFirst()
  }

  /** Ends the link within the transaction that uses it, so that it is used once, whoever else tries at the moment. */
  async #end(tx: Transaction, token: string, kinds: LinkKind[]): Promise<SignInLinksTable> {
    const result = await tx.query
      .updateTable('sign_in_links')
      .set({ ended_at: this.#now() })
      .where('hash', '=', hashOfToken(token))
      .where('kind', 'in', kinds)
      .where('ended_at', 'is', null)
      .where('expires_at', '>', this.#now())
      .returningAll()
      .executeTakeFirst()
    if (!result) throw new LinkExpiredError()
    return result
  }

  async #replace(tx: Transaction, link: NewLink & { kind: 'welcome' | 'signIn'; userId: string }): Promise<string> {
    await endLinksForUser(tx, link.userId, [link.kind], this.#now())
    return this.#insert(tx, link)
  }

  async #insert(tx: Transaction, link: NewLink): Promise<string> {
    const token = randomBytes(24).toString('base64url')
    const at = this.#now()
    await deleteOldLinks(tx, at)
    await tx.query
      .insertInto('sign_in_links')
      .values({
        id: link.id ?? uuid(),
        hash: hashOfToken(token),
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

/** A token has 192 random bits; nobody guesses what a plain hash of it was made from. */
function hashOfToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

/** The user who came with the account takes a name, unless they have one already. @throws {LinkExpiredError} */
async function claim({ query }: Transaction, { id, name, email, password_hash }: Claimed): Promise<void> {
  const user = query.updateTable('users').set({ name, email, password_hash }).where('id', '=', id)
  const result = await user.where('email', 'is', null).executeTakeFirst()
  if (result.numUpdatedRows === 0n) throw new LinkExpiredError()
}

type Claimed = { id: string; name: string; email: string; password_hash: string }

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
