/** The SQL of API keys. */
import type { Transaction } from '../../storage/store.ts'
import type { ApiKeysTable } from '../../storage/tables.ts'
import type { ApiKey } from './api-key.ts'

interface KeyRow {
  id: string
  account_id: string
  scopes: string | null
  expires_at: number | null
  expired_at: number | null
}

const findByHashSql =
  'SELECT id, account_id, scopes, expires_at, expired_at FROM api_keys WHERE hash = ? AND deleted_at IS NULL'

export async function findByHash(tx: Transaction, hash: Uint8Array): Promise<KeyRow | undefined> {
  const [row] = await tx.all<KeyRow>(findByHashSql, [hash])
  return row
}

/**
 * Locks the rows of those whose keys are counted, always in this order: whoever changes an account's keys or users takes
 * turns. Counting without it let 21 keys past a limit of 5 when 30 were created at the same time.
 */
export async function lockAccountAndUser({ query }: Transaction, accountId: string, userId: string): Promise<void> {
  await query
    .updateTable('accounts')
    .set((it) => ({ name: it.ref('name') }))
    .where('id', '=', accountId)
    .execute()
  await query
    .updateTable('users')
    .set((it) => ({ name: it.ref('name') }))
    .where('id', '=', userId)
    .execute()
}

/** Whether the user is one of the account, and was not removed. */
export async function mayHold({ query }: Transaction, accountId: string, userId: string): Promise<boolean> {
  const user = query.selectFrom('users').select('id').where('id', '=', userId).where('account_id', '=', accountId)
  return (await user.where('removed_at', 'is', null).executeTakeFirst()) !== undefined
}

export async function scopesEnabled({ query }: Transaction, accountId: string): Promise<boolean> {
  const account = query.selectFrom('accounts').select('scopes_enabled').where('id', '=', accountId)
  return (await account.executeTakeFirst())?.scopes_enabled === 1
}

/** How many keys the user holds, and how many in the account are not marked as expired. */
export async function count({ query }: Transaction, accountId: string, userId: string) {
  const keys = query
    .selectFrom('api_keys')
    .select((it) => it.fn.countAll<number>().as('count'))
    .where('deleted_at', 'is', null)
  const held = await keys.where('user_id', '=', userId).executeTakeFirstOrThrow()
  const active = await keys
    .where('account_id', '=', accountId)
    .where('expired_at', 'is', null)
    .executeTakeFirstOrThrow()
  return { held: held.count, active: active.count }
}

export interface NewRow {
  id: string
  accountId: string
  userId: string
  name: string
  hash: Uint8Array
  prefix: string
  scopes: string[] | null
  createdAt: number
  expiresAt: number | null
}

export async function insert({ query }: Transaction, key: NewRow): Promise<void> {
  await query
    .insertInto('api_keys')
    .values({
      id: key.id,
      account_id: key.accountId,
      user_id: key.userId,
      name: key.name,
      hash: key.hash,
      prefix: key.prefix,
      scopes: key.scopes && JSON.stringify(key.scopes),
      created_at: key.createdAt,
      expires_at: key.expiresAt,
    })
    .execute()
}

/** The key with this hash that was deleted. */
export async function findDeletedByHash({ query }: Transaction, hash: Uint8Array) {
  const keys = query.selectFrom('api_keys').select(['id', 'account_id', 'name']).where('hash', '=', hash)
  return keys.where('deleted_at', 'is not', null).executeTakeFirst()
}

export async function list({ query }: Transaction, accountId: string, now: number): Promise<ApiKey[]> {
  const keys = query.selectFrom('api_keys').selectAll().where('account_id', '=', accountId)
  const found = await keys.where('deleted_at', 'is', null).orderBy('id').execute()
  return found.map((row) => keyOf(row, now))
}

export async function find(
  { query }: Transaction,
  accountId: string,
  id: string,
  now: number,
): Promise<ApiKey | undefined> {
  const keys = query.selectFrom('api_keys').selectAll().where('account_id', '=', accountId).where('id', '=', id)
  const row = await keys.where('deleted_at', 'is', null).executeTakeFirst()
  return row && keyOf(row, now)
}

function keyOf(row: ApiKeysTable, now: number): ApiKey {
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    scopes: row.scopes === null ? null : JSON.parse(row.scopes),
    userId: row.user_id,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    lastUsedBy: row.last_used_by,
    expiresAt: row.expires_at,
    expired: row.expired_at !== null || (row.expires_at !== null && row.expires_at <= now),
  }
}

/** Whether the id is taken, by whatever key of whatever account. */
export async function exists({ query }: Transaction, id: string): Promise<boolean> {
  return (await query.selectFrom('api_keys').select('id').where('id', '=', id).executeTakeFirst()) !== undefined
}

export async function rename({ query }: Transaction, id: string, name: string): Promise<void> {
  await query.updateTable('api_keys').set({ name }).where('id', '=', id).execute()
}

/** Deletes every key that the user holds; returns them. */
export async function markAllDeletedOf({ query }: Transaction, userId: string, now: number) {
  const keys = query.updateTable('api_keys').set({ deleted_at: now }).where('user_id', '=', userId)
  return keys.where('deleted_at', 'is', null).returning(['id', 'name']).execute()
}

export async function markDeleted(
  { query }: Transaction,
  accountId: string,
  id: string,
  now: number,
): Promise<boolean> {
  const key = query.updateTable('api_keys').set({ deleted_at: now }).where('id', '=', id)
  const result = await key.where('account_id', '=', accountId).where('deleted_at', 'is', null).executeTakeFirst()
  return result.numUpdatedRows > 0n
}

export async function markExpired({ query }: Transaction, id: string, now: number): Promise<void> {
  await query
    .updateTable('api_keys')
    .set({ expired_at: now })
    .where('id', '=', id)
    .where('expired_at', 'is', null)
    .execute()
}

/** Writes down every expiry of the account that has come: what has been counted as expired never counts as active again. */
export async function markAllExpired({ query }: Transaction, accountId: string, now: number): Promise<void> {
  const keys = query.updateTable('api_keys').set({ expired_at: now }).where('account_id', '=', accountId)
  await keys.where('expired_at', 'is', null).where('expires_at', '<=', now).execute()
}

/** A use of a key: when, and by whom as far as that was told. */
export interface Use {
  at: number
  by: string | null
}

export async function markUsed({ query }: Transaction, uses: [id: string, use: Use][]): Promise<void> {
  // In one order for all processes, so that none waits for another that waits for it.
  for (const [id, { at, by }] of uses.toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    // An open stream uses its key without saying again who has opened it.
    const use = by === null ? { last_used_at: at } : { last_used_at: at, last_used_by: by }
    await query.updateTable('api_keys').set(use).where('id', '=', id).execute()
  }
}
