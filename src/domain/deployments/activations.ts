/** Changes which deployment is current, and records it in the audit logs of the accounts that it affects. */
import type { Store, Transaction } from '../../storage/store.ts'
import { type Actor, type NewEntry, recordAuditOfAccounts } from '../audit-log/audit-log.ts'
import {
  type Activation,
  type ActivationKind,
  activate,
  type Deployment,
  findActivations,
  findDeployment,
  insertDeployment,
} from './deployments.sql.ts'
import { packContent, type Snapshot, sizeOfFiles, snapshotId } from './snapshot.ts'

export interface DeployOptions {
  /** The account that alone sees the workflows; `null` for all accounts of the installation. */
  accountId: string | null
  by: Actor
  directory: string
  /**
   * Changes nothing if this deployment already has the content of the snapshot. With `lastDeployed`, a rollback stays in
   * effect.
   */
  unless?: 'current' | 'lastDeployed'
}

interface SnapshotDeployed {
  deployment: Deployment
  /** Whether it was not current before. */
  activated: boolean
  /** The deployment that was current before. */
  previousId: string | undefined
}

/** Stores the snapshot and makes it current. */
export async function deploySnapshot(
  store: Store,
  snapshot: Snapshot,
  { accountId, by, directory, unless = 'current' }: DeployOptions,
  at: number,
): Promise<SnapshotDeployed> {
  const id = snapshotId(snapshot, accountId)
  const { workflows } = snapshot
  const deployment = { id, accountId, createdAt: at, workflows, sizeBytes: sizeOfFiles(snapshot) }
  const compare = async (tx: Transaction) => {
    const activations = await findActivations(tx, accountId)
    const last = unless === 'current' ? activations[0]?.deploymentId : lastDeployed(activations)
    return { deployment, activated: last !== id, previousId: activations[0]?.deploymentId }
  }
  const before = await compare(store.read)
  if (!before.activated) return before
  const files = await packContent(snapshot)
  return store.write(async (tx) => {
    // Another process may have deployed it in the meantime.
    const compared = await compare(tx)
    if (!compared.activated) return compared
    await insertDeployment(tx, deployment, files)
    await recordActivation(tx, deployment, { kind: 'deploy', directory, by, at })
    return compared
  })
}

/** Whether the snapshot is what was deployed last. It is not current if it was rolled back. */
export async function isLastDeployed(store: Store, snapshot: Snapshot, accountId: string | null): Promise<boolean> {
  return lastDeployed(await findActivations(store.read, accountId)) === snapshotId(snapshot, accountId)
}

function lastDeployed(activations: readonly Activation[]): string | undefined {
  return activations.find(({ kind }) => kind === 'deploy')?.deploymentId
}

/** Makes the deployment before the current one current. Returns its ID, or `undefined` when there is none. */
export function activateEarlier(
  store: Store,
  accountId: string | null,
  by: Actor,
  at: number,
): Promise<string | undefined> {
  return store.write(async (tx) => {
    const activations = await findActivations(tx, accountId)
    const earlier = stackOf(activations).at(-2)
    const deployment = earlier === undefined ? undefined : await findDeployment(tx, earlier)
    if (!deployment) return undefined
    await recordActivation(tx, deployment, { kind: 'rollback', directory: null, by, at })
    return deployment.id
  })
}

async function recordActivation(
  tx: Transaction,
  { id, accountId, workflows }: Deployment,
  { kind, directory, by, at }: { kind: ActivationKind; directory: string | null; by: Actor; at: number },
): Promise<void> {
  await activate(tx, { accountId, deploymentId: id, kind, directory, at })
  const action = kind === 'deploy' ? 'workflows.deployed' : 'workflows.rolledBack'
  const details = { workflows: workflows.length, for: accountId === null ? 'all accounts' : 'this account' }
  const accounts = tx.query.selectFrom('accounts').select('id')
  const affected = await (accountId === null ? accounts : accounts.where('id', '=', accountId)).execute()
  const entry: NewEntry = { action, by, subject: { id, name: id.slice(0, 12) }, details, at }
  const ids = affected.map((account) => account.id)
  await recordAuditOfAccounts(tx, ids, entry)
}

/** What each rollback returns to, the current deployment last. @param activations newest first. */
function stackOf(activations: readonly Activation[]): string[] {
  const stack: string[] = []
  for (const { kind, deploymentId } of activations.toReversed()) {
    if (kind === 'rollback') stack.splice(Math.max(0, stack.lastIndexOf(deploymentId)))
    stack.push(deploymentId)
  }
  return stack
}
