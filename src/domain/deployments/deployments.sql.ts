/** Reads and writes deployments and their activations. */
import { statement, type Transaction } from '../../storage/store.ts'
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
}

export type ActivationKind = 'deploy' | 'rollback'

export interface Activation {
  accountId: string | null
  deploymentId: string
  kind: ActivationKind
  directory: string | null
  at: number
}

const sumActivations = statement<{ sum: number }, []>(
  'SELECT CAST(COALESCE(SUM(id), 0) AS BIGINT) AS sum FROM deployment_activations',
)

const findCurrent = statement<{ account_id: string | null; deployment_id: string }, []>(
  `SELECT account_id, deployment_id FROM deployment_activations
    WHERE id IN (SELECT MAX(id) FROM deployment_activations GROUP BY account_id)`,
)

/** Changes with each activation, even if one of another account with a higher ID was committed before. 0 without any. */
export async function findActivationState(tx: Transaction): Promise<number> {
  const [row] = await tx.all(sumActivations, [])
  return row?.sum ?? 0
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
  const columns = ['id', 'account_id', 'created_at', 'workflows', 'size_bytes'] as const
  const row = await query.selectFrom('deployments').select(columns).where('id', '=', id).executeTakeFirst()
  if (!row) return undefined
  return {
    id: row.id,
    accountId: row.account_id,
    createdAt: row.created_at,
    workflows: JSON.parse(row.workflows),
    sizeBytes: row.size_bytes,
  }
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
  { id, accountId, createdAt, workflows, sizeBytes }: Deployment,
  files: Uint8Array,
): Promise<void> {
  const row = { id, account_id: accountId, created_at: createdAt, size_bytes: sizeBytes, files }
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
