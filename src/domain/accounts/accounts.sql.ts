/** Statements that users and sign-in links share. */
import type { Transaction } from '../../storage/store.ts'
import { UserError } from './user.ts'

/** @throws {UserError} if another user has the e-mail address. */
export async function requireUniqueEmail({ query }: Transaction, email: string, userId: string | null): Promise<void> {
  const users = query.selectFrom('users').select('id').where('email', '=', email).where('removed_at', 'is', null)
  const other = await (userId === null ? users : users.where('id', '!=', userId)).executeTakeFirst()
  if (other) throw new UserError('Another user has this email address.', 'email')
}

/** Ends the links of these kinds that sign in as the user. */
export async function endLinksForUser(
  { query }: Transaction,
  userId: string,
  kinds: ('welcome' | 'signIn')[],
  at: number,
): Promise<void> {
  const links = query.updateTable('sign_in_links').set({ ended_at: at }).where('user_id', '=', userId)
  await links.where('kind', 'in', kinds).where('ended_at', 'is', null).execute()
}

/** Ends the links that the user created: a user who loses the right to create links must not keep a spare one. */
export async function endLinksCreatedBy({ query }: Transaction, userId: string, at: number): Promise<void> {
  const links = query.updateTable('sign_in_links').set({ ended_at: at }).where('created_by', '=', userId)
  await links.where('ended_at', 'is', null).execute()
}
