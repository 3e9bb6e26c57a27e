/** Users of the dashboard, and the rules for their names and e-mail addresses. */
import type { Selectable } from 'kysely'
import type { UsersTable } from '../../storage/tables/account-tables.ts'
import type { Actor } from '../audit-log/audit-log.ts'
import { nameError } from '../display-names.ts'
import { type Role, toRole } from './roles.ts'

export interface User {
  id: string
  accountId: string
  name: string
  /** `null` until the account's first user opens the welcome link. */
  email: string | null
  /** `null` for a member of the identity provider whose groups gave no role at the last sign-in. They cannot sign in. */
  role: Role | null
  /** By a password or the identity provider, without a link. */
  canSignIn: boolean
  createdAt: number
  lastSignedInAt: number | null
  hasSecondFactor: boolean
  /** Number of changes of the password or second factor. A session or a proof of an earlier epoch is invalid. */
  credentialsEpoch: number
  /** The issuer of the identity provider by which the member has joined and signs in. */
  identityIssuer: string | null
  /** The provider's group that gave the role at the last sign-in. */
  roleFrom: string | null
}

/** A user who has a role. */
export type Member = User & { role: Role }

export type UserRow = Omit<Selectable<UsersTable>, 'removed_at' | 'totp_step' | 'identity_subject'>

export function toUser(row: UserRow): User {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    email: row.email,
    role: toRole(row.role) ?? null,
    canSignIn: canSignIn(row),
    createdAt: row.created_at,
    lastSignedInAt: row.last_signed_in_at,
    hasSecondFactor: row.totp_secret !== null,
    credentialsEpoch: row.credentials_epoch,
    identityIssuer: row.identity_issuer,
    roleFrom: row.role_from,
  }
}

export function canSignIn(row: Pick<UserRow, 'role' | 'password_hash' | 'identity_issuer'>): boolean {
  return row.role !== null && (row.password_hash !== null || row.identity_issuer !== null)
}

export function toActor({ id, name }: User): Actor {
  return { kind: 'user', id, name }
}

/** A rejected change. The message is for the person who asked for it. */
export class UserError extends Error {
  /** The form field that is wrong; `repeated` if the form was submitted before. */
  readonly member:
    | 'name'
    | 'email'
    | 'password'
    | 'currentPassword'
    | 'code'
    | 'currentCode'
    | 'role'
    | 'repeated'
    | undefined

  constructor(message: string, member?: UserError['member']) {
    super(message)
    this.member = member
  }
}

/** Trims the name. @throws {UserError} */
export function parseName(text: string): string {
  const name = text.trim()
  const error = nameError(name)
  if (error) throw new UserError(error, 'name')
  return name
}

/** Trims the e-mail address and converts it to lower case. @throws {UserError} */
export function parseEmail(text: string): string {
  const email = text.trim().toLowerCase()
  if (email === '') throw new UserError('Enter an email address.', 'email')
  // As lenient as browsers: the service sends no mail that could verify more.
  if (email.length <= 254 && /^[^\s\p{Cc}@<>()]+@[^\s\p{Cc}@<>()]+$/u.test(email)) return email
  throw new UserError('Enter an email address, such as name@example.com.', 'email')
}
