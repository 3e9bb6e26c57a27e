/** Users of the dashboard, and the rules for their names, e-mail addresses and passwords. */
import type { UsersTable } from '../../storage/tables.ts'
import type { Actor } from '../audit-log/audit-log.ts'
import { nameError } from '../display-names.ts'

export const roles = ['owner', 'member'] as const

/** Owners manage the account and its users; members use the account. */
export type Role = (typeof roles)[number]

export interface User {
  id: string
  accountId: string
  name: string
  /** `null` until the account's first user opens the welcome link. */
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

/** The user as an actor in the audit log. */
export function toActor({ id, name }: User): Actor {
  return { kind: 'user', id, name }
}

/** A rejected change. The message is for the person who asked for it. */
export class UserError extends Error {
  /** The form field that is wrong; `repeated` if the form was submitted before. */
  readonly member: 'name' | 'email' | 'password' | 'currentPassword' | 'role' | 'repeated' | undefined

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

/** NIST SP 800-63B asks for a minimum length, not for kinds of characters. */
export const passwordLengthMin = 12
const passwordLengthMax = 200
const distinctCharactersMin = 5

/** @throws {UserError} if the password does not meet the rules. */
export function requireGoodPassword(password: string): void {
  const refuse = (message: string): never => {
    throw new UserError(message, 'password')
  }
  if (password.length < passwordLengthMin) refuse(`Use at least ${passwordLengthMin} characters.`)
  if (password.length > passwordLengthMax) refuse(`Use at most ${passwordLengthMax} characters.`)
  if (new Set(password).size < distinctCharactersMin)
    refuse(`Use at least ${distinctCharactersMin} different characters.`)
}

/** Argon2id (RFC 9106) with OWASP's parameters, as a PHC string. Takes about 20 ms and 19 MiB, in a thread pool. */
export async function hashPassword(password: string): Promise<string> {
  return (await argon2()).hash(password.normalize('NFKC'))
}

/** Takes equally long without a hash, so that response times do not reveal which e-mail addresses exist. */
export async function verifyPassword(password: string, passwordHash: string | null): Promise<boolean> {
  placeholderHash ??= hashPassword(crypto.randomUUID())
  const { verify } = await argon2()
  const matches = await verify(passwordHash ?? (await placeholderHash), password.normalize('NFKC'))
  return matches && passwordHash !== null
}

let placeholderHash: Promise<string> | undefined

/** Loaded at first use: the native module takes 3 MB, which workers and most commands do without. */
function argon2() {
  return import('@node-rs/argon2')
}
