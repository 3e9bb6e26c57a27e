/** A user, who belongs to an account and signs in to the dashboard; and what may be said of one. */

import type { UsersTable } from '../../storage/tables.ts'
import type { Actor } from '../audit-log/audit-log.ts'
import { nameError } from '../display-names.ts'

export const roles = ['owner', 'member'] as const

/** An owner may change the account and its users; a member may use the account. */
export type Role = (typeof roles)[number]

export interface User {
  id: string
  accountId: string
  name: string
  /** `null` for the user who came with the account and has not opened the welcome link yet. */
  email: string | null
  role: Role
  createdAt: number
  lastSignedInAt: number | null
}

export type UserRow = Pick<
  UsersTable,
  'id' | 'account_id' | 'name' | 'email' | 'created_at' | 'last_signed_in_at' | 'password_hash'
> & { role: string }

export function toUser(row: UserRow): User {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    email: row.email,
    role: row.role as Role,
    createdAt: row.created_at,
    lastSignedInAt: row.last_signed_in_at,
  }
}

/** The user as the audit log names whoever acts. */
export function toActor({ id, name }: User): Actor {
  return { kind: 'user', id, name }
}

/** Something that may not be done, with the member of the form it is about; the message is for the person who asked. */
export class UserError extends Error {
  readonly member: 'name' | 'email' | 'password' | 'currentPassword' | 'role' | 'repeated' | undefined

  constructor(message: string, member?: UserError['member']) {
    super(message)
    this.member = member
  }
}

/** Trims a name. @throws {UserError} */
export function parseName(text: string): string {
  const name = text.trim()
  const fault = nameError(name)
  if (fault) throw new UserError(fault, 'name')
  return name
}

/** Trims an e-mail address and puts it into lower case. @throws {UserError} */
export function parseEmail(text: string): string {
  const email = text.trim().toLowerCase()
  if (email === '') throw new UserError('Enter an e-mail address.', 'email')
  // As a browser's own check; no mail is sent that could prove more.
  if (email.length <= 254 && /^[^\s\p{Cc}@<>()]+@[^\s\p{Cc}@<>()]+$/u.test(email)) return email
  throw new UserError('Enter an e-mail address, such as name@example.com.', 'email')
}
