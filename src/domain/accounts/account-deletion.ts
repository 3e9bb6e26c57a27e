/**
 * Deletes an account with everything that it has, also its environments. The service may be running. When the deletion is
 * interrupted, the next one deletes the rest: the row of the account is the last.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { accountTables, countAccountRows, deleteAccountRows } from '../../storage/account-rows.ts'
import type { Contents } from '../../storage/blobs/contents.ts'
import { findHiddenOfAccount, findRunsToHide, hideOrStopRuns } from '../../storage/runs/run-maintenance.ts'
import { type Store, StoreUnavailable, type Transaction } from '../../storage/store.ts'
import { lockAccountAndUser } from '../api-keys/api-keys.sql.ts'
import { eraseBatch, rowsMax } from '../run-api/run-erasure.ts'
import { type Account, toAccount } from './accounts.ts'

/** Proves what was deleted. It has no data of the account but its id and name. */
export interface DeletionReceipt {
  accountId: string
  name: string
  startedAt: string
  finishedAt: string
  /** Rows that the account had when the deletion started, by table; without those that have none. */
  deleted: Record<string, number>
  /** Rows that were left when it had ended, in all tables. */
  left: number
  /** The name of the environment that was deleted. */
  environment?: string
  /** Of the account's environments besides the first, if it had several. */
  environments?: DeletionReceipt[]
}

/** Lets other processes write between transactions. */
const breakMilliseconds = 5
const unavailableMilliseconds = { pause: 100, max: 60_000 }
const runningPollMilliseconds = 200

/** @param contents whose blobs are deleted, too. If they cannot be, maintenance deletes them later. */
export async function deleteAccount(
  store: Store,
  account: Account,
  contents: Pick<Contents, 'deleteUnused'>,
  now = Date.now,
): Promise<DeletionReceipt> {
  const receipt = await deleteUnscrubbed(store, account, now)
  await retry(() => store.scrub())
  // The account is deleted: no failure of blobs may hide that. Maintenance repeats it, and logs why it fails.
  await deleteBlobs(contents).catch(() => {})
  return { ...receipt, finishedAt: new Date(now()).toISOString() }
}

async function deleteUnscrubbed(store: Store, account: Account, now: () => number): Promise<DeletionReceipt> {
  const { id, name, ownerId, environment } = account
  const startedAt = new Date(now()).toISOString()
  const deleted = await countAll(store, id)
  // Before the environments: no user can add another one.
  await retry(() => store.write((tx) => close(tx, id, now())))
  for (const each of await findOthers(store, id)) await retry(() => store.write((tx) => close(tx, each.id, now())))
  const environments: DeletionReceipt[] = []
  for (;;) {
    for (const each of await findOthers(store, id)) environments.push(await deleteUnscrubbed(store, each, now))
    await endRuns(store, id, now)
    await deleteRows(store, id)
    // A request that was authenticated before may have queued a run meanwhile.
    if (await deleteAccountRow(store, id, ownerId)) break
  }
  const left = Object.values(await countAll(store, id)).reduce((sum, count) => sum + count, 0)
  return {
    ...{ accountId: id, name, startedAt, finishedAt: new Date(now()).toISOString(), deleted, left },
    ...(ownerId !== id && environment !== null && { environment }),
    ...(environments.length > 0 && { environments }),
  }
}

/** The environments of the account besides the first. */
async function findOthers({ read }: Store, id: string): Promise<Account[]> {
  return (await read.query.selectFrom('accounts').selectAll().where('parent_id', '=', id).execute()).map(toAccount)
}

async function deleteBlobs(contents: Pick<Contents, 'deleteUnused'>): Promise<void> {
  while (await contents.deleteUnused()) await delay(breakMilliseconds)
}

/** Refuses every key, session and link, and ends what would queue runs or send events. */
async function close(tx: Transaction, accountId: string, at: number): Promise<void> {
  const keys = tx.query.updateTable('api_keys').set({ deleted_at: at })
  await keys.where('account_id', '=', accountId).where('deleted_at', 'is', null).execute()
  const links = tx.query.updateTable('sign_in_links').set({ ended_at: at })
  await links.where('account_id', '=', accountId).where('ended_at', 'is', null).execute()
  const users = tx.query.selectFrom('users').select('id').where('account_id', '=', accountId)
  await tx.query.deleteFrom('sessions').where('user_id', 'in', users).execute()
  await tx.query
    .updateTable('users')
    .set({ removed_at: at, password_hash: null })
    .where('account_id', '=', accountId)
    .where('removed_at', 'is', null)
    .execute()
  await tx.query.deleteFrom('schedules').where('account_id', '=', accountId).execute()
  await tx.query.deleteFrom('bulk_actions').where('account_id', '=', accountId).execute()
  await tx.query.deleteFrom('webhook_endpoints').where('account_id', '=', accountId).execute()
  await tx.query.deleteFrom('run_followers').where('account_id', '=', accountId).execute()
  // What belongs to the account by its rules is deleted before them.
  await tx.query.updateTable('notification_rules').set({ enabled: 0 }).where('account_id', '=', accountId).execute()
}

/** Waits for the workers that execute runs of the account: for the lease of one that has died, at most. */
async function endRuns(store: Store, accountId: string, now: () => number): Promise<void> {
  for (let isAnyLeft = true; isAnyLeft; ) {
    isAnyLeft = false
    let after = ''
    for (;;) {
      const runs = await store.read.all(findRunsToHide, [accountId, after])
      const last = runs.at(-1)
      if (!last) break
      after = last.id
      isAnyLeft = true
      const ids = runs.map(({ id }) => id)
      await retry(() => store.write((tx) => hideOrStopRuns(tx, ids, now())))
      await delay(breakMilliseconds)
    }
    if (!isAnyLeft) return
    store.notify('cancellations')
    await delay(runningPollMilliseconds)
  }
}

/** Erases the hidden runs with their events, steps and artifacts, as maintenance does. */
async function eraseRuns(store: Store, accountId: string): Promise<void> {
  const erase = async (tx: Transaction) => {
    const runs = await tx.all(findHiddenOfAccount, [accountId, rowsMax])
    await eraseBatch(tx, runs)
    return runs.length > 0
  }
  while (await retry(() => store.write(erase))) await delay(breakMilliseconds)
}

async function deleteRows(store: Store, accountId: string): Promise<void> {
  const write = async (work: (tx: Transaction) => Promise<unknown>) => {
    await retry(() => store.write(work))
    await delay(breakMilliseconds)
  }
  await eraseRuns(store, accountId)
  for (const table of accountTables)
    if (table.name !== 'accounts') await deleteAccountRows(store.read, write, table, accountId)
}

/** Returns whether the row of the account is deleted, which it is once nothing else of it is left. */
function deleteAccountRow(store: Store, accountId: string, ownerId: string): Promise<boolean> {
  return retry(() =>
    store.write(async (tx) => {
      // No environment is added meanwhile.
      await lockAccountAndUser(tx, ownerId, '')
      if ((await countEnvironments(tx, accountId)) > 0) return false
      for (const table of accountTables)
        if (table.name !== 'accounts' && (await countAccountRows(tx, table, accountId)) > 0) return false
      await tx.query.deleteFrom('accounts').where('id', '=', accountId).execute()
      // An account with one environment has no name for it.
      if (ownerId !== accountId && (await countEnvironments(tx, ownerId)) === 0)
        await tx.query.updateTable('accounts').set({ environment: null }).where('id', '=', ownerId).execute()
      return true
    }),
  )
}

/** Besides the first. */
async function countEnvironments({ query }: Transaction, ownerId: string): Promise<number> {
  const others = query.selectFrom('accounts').select((it) => it.fn.countAll<number>().as('count'))
  return (await others.where('parent_id', '=', ownerId).executeTakeFirstOrThrow()).count
}

async function countAll(store: Store, accountId: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const table of accountTables) {
    const count = await countAccountRows(store.read, table, accountId)
    if (count > 0) counts[table.name] = count
  }
  return counts
}

async function retry<Result>(act: () => Promise<Result>): Promise<Result> {
  const deadline = performance.now() + unavailableMilliseconds.max
  for (;;) {
    try {
      return await act()
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || performance.now() > deadline) throw error
      await delay(unavailableMilliseconds.pause)
    }
  }
}
