/** SQL that users and their links share. */
import { dayMilliseconds } from '../../storage/purge-target.ts'
import type { Transaction } from '../../storage/store.ts'
import { UserError } from './user.ts'

/** @throws {UserError} when another user has the e-mail address. */
export async function requireUniqueEmail({ query }: Transaction, email: string, userId: string | null): Promise<void> {
  const users = query.selectFrom('users').select('id').where('email', '=', email).where('removed_at', 'is', null)
  const other = await (userId === null ? users : users.where('id', '!=', userId)).executeTakeFirst()
  if (other) throw new UserError('Another user has this e-mail address.', 'email')
}

/** @throws {UserError} when the user is the account's only owner. */
export async function requireAnotherOwner({ query }: Transaction, accountId: string, id: string): Promise<void> {
  const owners = query.selectFrom('users').select('id').where('account_id', '=', accountId).where('role', '=', 'owner')
  const other = await owners.where('removed_at', 'is', null).where('id', '!=', id).limit(1).executeTakeFirst()
  if (other) return
  throw new UserError('This is the only owner: make another user an owner first.')
}

/** Ends the links of a kind that lead to the user. */
export async function endLinksForUser(
  { query }: Transaction,
  userId: string,
  kinds: ('welcome' | 'signIn')[],
  at: number,
): Promise<void> {
  const links = query.updateTable('sign_in_links').set({ ended_at: at }).where('user_id', '=', userId)
  await links.where('kind', 'in', kinds).where('ended_at', 'is', null).execute()
}

/** Ends the links that the user has made: who may not make them any more has none left for later. */
export async function endLinksCreatedBy({ query }: Transaction, userId: string, at: number): Promise<void> {
  const links = query.updateTable('sign_in_links').set({ ended_at: at }).where('created_by', '=', userId)
  await links.where('ended_at', 'is', null).execute()
}

/** For so long an invitation's form that is sent once more finds that it was sent before. */
const rememberedMilliseconds = 30 * dayMilliseconds

/** Removes links long after they have expired, as those that were used or withdrawn do, too. */
export async function deleteOldLinks({ query }: Transaction, now: number): Promise<void> {
  await query
    .deleteFrom('sign_in_links')
    .where('expires_at', '<=', now - rememberedMilliseconds)
    .execute()
}
