/** Reads and writes deployments and their activations. */

import { dayMilliseconds, type PurgeTarget } from '../../storage/purge-target.ts'
import { findPinnedRun } from '../../storage/runs/run-maintenance.ts'
import { statement, type Transaction } from '../../storage/store.ts'
import { firstIdAt } from '../runs/run.ts'
import type { DeployedWorkflow } from './snapshot.ts'

export interface Deployment {
  /** SHA-256 in hexadecimal. */
  id: string
  /** The account that alone sees its workflows; `null` for all accounts. */
  accountId: string | null
  createdAt: number
  workflows: DeployedWorkflow[]
  /** Of the files, before compression. */
  sizeBytes: number
  /** Whether workers outside of the service execute it, which have its code. */
  isRemote: boolean
}

export type ActivationKind = 'deploy' | 'rollback'

export interface Activation {
  accountId: string | null
  deploymentId: string
  kind: ActivationKind
  directory: string | null
  at: number
}

const sumActivations = statement<{ deployed: number; remote: number }, []>(
  `SELECT (SELECT CAST(COALESCE(SUM(id), 0) AS BIGINT) FROM deployment_activations) AS deployed,
    (SELECT CAST(COALESCE(SUM(id), 0) AS BIGINT) FROM remote_workflows) AS remote`,
)

const findCurrent = statement<{ account_id: string | null; deployment_id: string }, []>(
  `SELECT account_id, deployment_id FROM deployment_activations
    WHERE id IN (SELECT MAX(id) FROM deployment_activations GROUP BY account_id)`,
)

/** Changes with each activation, even if one of another account with a higher ID was committed before. */
export async function findActivationState(tx: Transaction): Promise<string> {
  const [row] = await tx.all(sumActivations, [])
  return `${row?.deployed ?? 0}/${row?.remote ?? 0}`
}

/** A version of a workflow that workers outside of the service execute. */
export interface RemoteWorkflow {
  accountId: string
  workflowId: string
  version: string
  deploymentId: string
}

/** Of an account, or of all. */
export async function findRemoteWorkflows({ query }: Transaction, accountId?: string): Promise<RemoteWorkflow[]> {
  let rows = query.selectFrom('remote_workflows').selectAll()
  if (accountId !== undefined) rows = rows.where('account_id', '=', accountId)
  return (await rows.orderBy('id').execute()).map(({ account_id, workflow_id, version, deployment_id }) => ({
    ...{ accountId: account_id, workflowId: workflow_id },
    ...{ version, deploymentId: deployment_id },
  }))
}

/** The newest activation of each account and of the installation. */
export async function findCurrentActivations(
  tx: Transaction,
): Promise<Pick<Activation, 'accountId' | 'deploymentId'>[]> {
  const rows = await tx.all(findCurrent, [])
  return rows.map(({ account_id, deployment_id }) => ({ accountId: account_id, deploymentId: deployment_id }))
}

/** The activations of an account or of the installation, newest first. */
export async function findActivations({ query }: Transaction, accountId: string | null): Promise<Activation[]> {
  const rows = await query
    .selectFrom('deployment_activations')
    .selectAll()
    .where('account_id', accountId === null ? 'is' : '=', accountId)
    .orderBy('id', 'desc')
    .execute()
  return rows.map(({ account_id, deployment_id, ...rest }) => ({
    ...rest,
    accountId: account_id,
    deploymentId: deployment_id,
  }))
}

export async function findDeployment({ query }: Transaction, id: string): Promise<Deployment | undefined> {
  const columns = ['id', 'account_id', 'created_at', 'workflows', 'size_bytes', 'is_remote'] as const
  const row = await query.selectFrom('deployments').select(columns).where('id', '=', id).executeTakeFirst()
  if (!row) return undefined
  return {
    id: row.id,
    accountId: row.account_id,
    createdAt: row.created_at,
    workflows: JSON.parse(row.workflows),
    sizeBytes: row.size_bytes,
    isRemote: row.is_remote === 1,
  }
}

/** A row of the list of an account's deployments. */
export interface ListedDeployment {
  id: string
  createdAt: number
}

/** The account's deployments, newest first, that come after a position. */
export async function listDeployments(
  { query }: Transaction,
  accountId: string,
  after: ListedDeployment | undefined,
  limit: number,
): Promise<ListedDeployment[]> {
  let rows = query.selectFrom('deployments').select(['id', 'created_at']).where('account_id', '=', accountId)
  rows = rows.where('is_remote', '=', 0)
  if (after) {
    const { id, createdAt } = after
    rows = rows.where((row) =>
      row.or([row('created_at', '<', createdAt), row.and([row('created_at', '=', createdAt), row('id', '<', id)])]),
    )
  }
  const found = await rows.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(limit).execute()
  return found.map(({ id, created_at }) => ({ id, createdAt: created_at }))
}

/** The packed files, and the directory of the last deployment of this content. */
export async function findFiles(
  { query }: Transaction,
  id: string,
): Promise<{ files: Uint8Array; directory: string | null } | undefined> {
  const row = await query.selectFrom('deployments').select('files').where('id', '=', id).executeTakeFirst()
  const activation = await query
    .selectFrom('deployment_activations')
    .select('directory')
    .where('deployment_id', '=', id)
    .where('kind', '=', 'deploy')
    .orderBy('id', 'desc')
    .executeTakeFirst()
  return row && { files: row.files, directory: activation?.directory ?? null }
}

/** Does nothing if the same content is stored. */
export async function insertDeployment(
  { query }: Transaction,
  { id, accountId, createdAt, workflows, sizeBytes, isRemote }: Deployment,
  files: Uint8Array,
): Promise<void> {
  const row = {
    ...{ id, account_id: accountId, created_at: createdAt, size_bytes: sizeBytes, files },
    is_remote: isRemote ? (1 as const) : (0 as const),
  }
  await query
    .insertInto('deployments')
    .values({ ...row, workflows: JSON.stringify(workflows) })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

export async function activate({ query }: Transaction, activation: Activation): Promise<void> {
  const { accountId, deploymentId, kind, directory, at } = activation
  const row = { account_id: accountId, deployment_id: deploymentId, kind, directory, at }
  await query.insertInto('deployment_activations').values(row).execute()
}

// Deletes deployments that have not been current for RUN_RETENTION_DAYS and that no unfinished run needs.

/**
 * The time at which each deployment was superseded: the time of the next activation in its account. Leaves out
 * current deployments, and the last deployed ones: after a rollback, a service that starts with the same content
 * must find the latter to know that it was rolled back.
 */
const findSuperseded = statement<{ id: string; superseded_at: number }, []>(
  `SELECT deployment_id AS id, superseded_at FROM (
    SELECT id, deployment_id, LEAD(at) OVER (PARTITION BY COALESCE(account_id, '') ORDER BY id) AS superseded_at
    FROM deployment_activations) AS followed
  WHERE superseded_at IS NOT NULL
    AND id IN (SELECT MAX(id) FROM deployment_activations GROUP BY deployment_id)
    AND deployment_id NOT IN (SELECT deployment_id FROM deployment_activations WHERE id IN (
      SELECT MAX(id) FROM deployment_activations WHERE kind = 'deploy' GROUP BY account_id))
  ORDER BY superseded_at`,
)

/** A process may pin runs to a deployment for about a second after its end; clocks may differ. */
const slackMilliseconds = 60 * 60 * 1000

export function supersededDeployments(retentionDays: number, now: () => number): PurgeTarget {
  const next = async (tx: Transaction): Promise<string | undefined> => {
    const upTo = now() - retentionDays * dayMilliseconds
    for (const { id: superseded, superseded_at } of await tx.all(findSuperseded, [])) {
      if (superseded_at > upTo) break
      const [pinned] = await tx.all(findPinnedRun, [firstIdAt(superseded_at + slackMilliseconds), superseded])
      if (!pinned) return superseded
    }
    return undefined
  }
  return {
    next,
    async remove(tx) {
      const id = await next(tx)
      if (id === undefined) return
      await tx.query.deleteFrom('deployment_activations').where('deployment_id', '=', id).execute()
      await tx.query.deleteFrom('deployments').where('id', '=', id).execute()
    },
  }
}

const findUnseenVersions = statement<{ account_id: string; deployment_id: string }, [upTo: number]>(
  'SELECT account_id, deployment_id FROM remote_workflows WHERE seen_at <= ? ORDER BY seen_at, id',
)

const findRegistrations = statement<{ workflows: string }, [accountId: string]>(
  'SELECT workflows FROM workers WHERE account_id = ?',
)

/**
 * Versions of workflows that no worker outside of the service has registered for the retention period. A worker may run
 * for longer without registering again: its row keeps its versions.
 */
export function unseenRemoteWorkflows(retentionDays: number, now: () => number): PurgeTarget {
  const next = async (tx: Transaction): Promise<string | undefined> => {
    for (const version of await tx.all(findUnseenVersions, [now() - retentionDays * dayMilliseconds])) {
      const { account_id, deployment_id: id } = version
      const workers = await tx.all(findRegistrations, [account_id])
      const isRegistered = workers.some(({ workflows }) =>
        JSON.parse(workflows).some(({ deploymentId }: { deploymentId: string }) => deploymentId === id),
      )
      if (isRegistered) continue
      const [pinned] = await tx.all(findPinnedRun, [firstIdAt(now() + slackMilliseconds), id])
      if (!pinned) return id
    }
    return undefined
  }
  return {
    next,
    async remove(tx) {
      const id = await next(tx)
      if (id === undefined) return
      await tx.query.deleteFrom('remote_workflows').where('deployment_id', '=', id).execute()
      await tx.query.deleteFrom('deployments').where('id', '=', id).execute()
    },
  }
}
