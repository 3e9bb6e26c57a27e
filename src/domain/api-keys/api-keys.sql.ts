/** Statements on API keys. */
import { inList } from '../../storage/statement-values.ts'
import { statement, type Transaction } from '../../storage/store.ts'
import type { ApiKeysTable } from '../../storage/tables/account-tables.ts'
import { type Role, toRole } from '../accounts/roles.ts'
import type { ApiKey } from './api-key.ts'

export type KeyRow = Pick<
  ApiKeysTable,
  'id' | 'account_id' | 'name' | 'role' | 'scopes' | 'workflow_ids' | 'expires_at' | 'expired_at'
> & {
  /** The name of the environment, if the account has several. */
  environment: string | null
}

const keyColumns = `id, account_id, name, role, scopes, workflow_ids, expires_at, expired_at,
  (SELECT environment FROM accounts WHERE id = api_keys.account_id) AS environment`

export type RefusedKey = Pick<ApiKeysTable, 'id' | 'account_id' | 'name'>

/** Finds keys that are not deleted. Written as SQL because every request calls it. */
export async function findByHashes(
  tx: Transaction,
  hashes: readonly Uint8Array[],
): Promise<(KeyRow & { hash: Uint8Array })[]> {
  const { marks, values } = inList(hashes)
  return tx.all(
    `SELECT hash, ${keyColumns} FROM api_keys
      WHERE hash IN (${marks}) AND deleted_at IS NULL`,
    values,
  )
}

/** Finds a key that is not deleted. */
export async function findById(tx: Transaction, id: string): Promise<KeyRow | undefined> {
  const [key] = await tx.all<KeyRow>(`SELECT ${keyColumns} FROM api_keys WHERE id = ? AND deleted_at IS NULL`, [id])
  return key
}

export async function findDeletedByHash({ query }: Transaction, hash: Uint8Array): Promise<RefusedKey | undefined> {
  const keys = query.selectFrom('api_keys').select(['id', 'account_id', 'name']).where('hash', '=', hash)
  return keys.where('deleted_at', 'is not', null).executeTakeFirst()
}

/**
 * Serialises changes to the keys and users of an account by locking the rows, always in this order, before counting.
 * Without the lock, 30 concurrent requests created 21 keys past a limit of 5.
 */
export async function lockAccountAndUser({ query }: Transaction, accountId: string, userId: string): Promise<void> {
  const account = query.updateTable('accounts').set((it) => ({ name: it.ref('name') }))
  await account.where('id', '=', accountId).execute()
  const user = query.updateTable('users').set((it) => ({ name: it.ref('name') }))
  await user.where('id', '=', userId).execute()
}

const findRole = statement<{ role: string | null }, [userId: string, accountId: string]>(
  `SELECT role FROM users WHERE id = ? AND removed_at IS NULL
    AND account_id = (SELECT COALESCE(parent_id, id) FROM accounts WHERE id = ?)`,
)

/** The role of a user of the account, or of the account that the environment belongs to, who was not removed. */
export async function findRoleOfUser(tx: Transaction, accountId: string, userId: string): Promise<Role | undefined> {
  const [user] = await tx.all(findRole, [userId, accountId])
  return toRole(user?.role)
}

/** Limits all keys of the user to what the role permits; `null` when they have no role any more. */
export async function setRoleOfKeys({ query }: Transaction, userId: string, role: Role | null): Promise<void> {
  const keys = query.updateTable('api_keys').set({ role }).where('user_id', '=', userId)
  await keys.where('deleted_at', 'is', null).execute()
}

export async function hasScopesEnabled({ query }: Transaction, accountId: string): Promise<boolean> {
  const account = query.selectFrom('accounts').select('scopes_enabled').where('id', '=', accountId)
  return (await account.executeTakeFirst())?.scopes_enabled === 1
}

/** Counts the user's keys in the account, and the account's keys that are not marked as expired. */
export async function count({ query }: Transaction, accountId: string, userId: string) {
  const keys = query
    .selectFrom('api_keys')
    .select((it) => it.fn.countAll<number>().as('count'))
    .where('account_id', '=', accountId)
    .where('deleted_at', 'is', null)
  const ofUser = await keys.where('user_id', '=', userId).executeTakeFirstOrThrow()
  const active = await keys.where('expired_at', 'is', null).executeTakeFirstOrThrow()
  return { ofUser: ofUser.count, active: active.count }
}

type NewKey = Omit<ApiKey, 'lastUsedAt' | 'lastUsedBy' | 'expired'> & { accountId: string; hash: Uint8Array }

export async function insert({ query }: Transaction, key: NewKey): Promise<void> {
  await query
    .insertInto('api_keys')
    .values({
      id: key.id,
      account_id: key.accountId,
      user_id: key.userId,
      name: key.name,
      hash: key.hash,
      prefix: key.prefix,
      role: key.role,
      scopes: key.scopes && JSON.stringify(key.scopes),
      workflow_ids: key.workflowIds && JSON.stringify(key.workflowIds),
      created_at: key.createdAt,
      expires_at: key.expiresAt,
    })
    .execute()
}

function selectKeys({ query }: Transaction, accountId: string) {
  return query.selectFrom('api_keys').selectAll().where('account_id', '=', accountId).where('deleted_at', 'is', null)
}

export async function list(tx: Transaction, accountId: string, now: number): Promise<ApiKey[]> {
  const rows = await selectKeys(tx, accountId).orderBy('id').execute()
  return rows.map((row) => toApiKey(row, now))
}

export async function find(tx: Transaction, accountId: string, id: string, now: number): Promise<ApiKey | undefined> {
  const row = await selectKeys(tx, accountId).where('id', '=', id).executeTakeFirst()
  return row && toApiKey(row, now)
}

function toApiKey(row: ApiKeysTable, now: number): ApiKey {
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    role: toRole(row.role) ?? null,
    scopes: row.scopes === null ? null : JSON.parse(row.scopes),
    workflowIds: row.workflow_ids === null ? null : JSON.parse(row.workflow_ids),
    userId: row.user_id,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    lastUsedBy: row.last_used_by,
    expiresAt: row.expires_at,
    expired: row.expired_at !== null || (row.expires_at !== null && row.expires_at <= now),
  }
}

/** Whether any account has, or had, a key with this ID. */
export async function exists({ query }: Transaction, id: string): Promise<boolean> {
  return (await query.selectFrom('api_keys').select('id').where('id', '=', id).executeTakeFirst()) !== undefined
}

/** How long the key was valid when it was created, in milliseconds; `null` for a key that does not expire. */
export async function findLifetime({ query }: Transaction, id: string): Promise<number | null> {
  const keys = query.selectFrom('api_keys').select(['lifetime', 'expires_at', 'created_at'])
  const key = await keys.where('id', '=', id).executeTakeFirstOrThrow()
  if (key.lifetime !== null) return key.lifetime === 0 ? null : key.lifetime
  return key.expires_at === null ? null : key.expires_at - key.created_at
}

/** Shortens the key's lifetime. */
export async function shorten(
  { query }: Transaction,
  id: string,
  { expiresAt, lifetime }: { expiresAt: number; lifetime: number | null },
): Promise<void> {
  const key = query.updateTable('api_keys').set({ expires_at: expiresAt, lifetime: lifetime ?? 0 })
  await key.where('id', '=', id).execute()
}

export async function rename({ query }: Transaction, id: string, name: string): Promise<void> {
  await query.updateTable('api_keys').set({ name }).where('id', '=', id).execute()
}

/** Returns false if another transaction has deleted the key. */
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

/** Marks all keys of the user as deleted, in every environment, and returns them. */
export async function deleteAllOfUser({ query }: Transaction, userId: string, now: number) {
  const keys = query.updateTable('api_keys').set({ deleted_at: now }).where('user_id', '=', userId)
  const deleted = await keys.where('deleted_at', 'is', null).returning(['id', 'name', 'account_id']).execute()
  return deleted.map(({ id, name, account_id: accountId }) => ({ id, name, accountId }))
}

export async function markExpired({ query }: Transaction, id: string, now: number): Promise<void> {
  const key = query.updateTable('api_keys').set({ expired_at: now }).where('id', '=', id)
  await key.where('expired_at', 'is', null).execute()
}

/** Marks every key of the account that has expired, so that a clock that steps back cannot reactivate one. */
export async function markAllExpired({ query }: Transaction, accountId: string, now: number): Promise<void> {
  const keys = query.updateTable('api_keys').set({ expired_at: now }).where('account_id', '=', accountId)
  await keys.where('expired_at', 'is', null).where('expires_at', '<=', now).execute()
}

export interface KeyUse {
  at: number
  /** The caller's address and user agent; `null` for an open stream, which does not change the stored ones. */
  by: string | null
}

export async function markUsed({ query }: Transaction, uses: [id: string, use: KeyUse][]): Promise<void> {
  // In the same order in all processes, which prevents deadlocks.
  for (const [id, { at, by }] of uses.toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const use = by === null ? { last_used_at: at } : { last_used_at: at, last_used_by: by }
    await query.updateTable('api_keys').set(use).where('id', '=', id).execute()
  }
}
