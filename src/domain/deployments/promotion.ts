/** Promotes what one environment of an account serves to another one: the same files and definitions, without a build. */
import type { Actor } from '../audit-log/audit-log.ts'
import type { Deployment } from './deployments.sql.ts'
import type { Checked, Deployments, DeployResult } from './deployments.ts'
import { type Snapshot, snapshotId } from './snapshot.ts'

/** What can be promoted. */
export interface Promotable {
  source: Deployment
  snapshot: Snapshot
  /** Where packages with native code are searched first. */
  directory: string | null
  /** SHA-256 of the files and definitions, in hexadecimal. IDs of deployments differ between environments, this does not. */
  contentHash: string
}

/**
 * The environment's current deployment, or the named one; `undefined` if it has none.
 *
 * @param accountId of the environment.
 * @throws {SnapshotDamaged}
 */
export async function readPromotable(
  deployments: Deployments,
  accountId: string,
  deploymentId?: string,
): Promise<Promotable | undefined> {
  const id = deploymentId ?? (await deployments.listActivations(accountId))[0]?.deploymentId
  const source = id === undefined ? undefined : await deployments.find(id)
  if (!source || source.accountId !== accountId || source.isRemote) return undefined
  const content = await deployments.readFiles(source.id)
  if (!content) return undefined
  const { directory, ...files } = content
  const snapshot = { ...files, workflows: source.workflows }
  return { source, snapshot, directory, contentHash: snapshotId(snapshot, null) }
}

interface PromoteOptions {
  /** The name of the source. */
  from: string
  /** The account of the environment to change. It belongs to the same account as the source. */
  accountId: string
  by: Actor
  allowBreaking: boolean
}

/** Deploys it in another environment, after the checks of every deployment. */
export function promote(
  deployments: Deployments,
  { snapshot, directory }: Promotable,
  { from, accountId, by, allowBreaking }: PromoteOptions,
): Promise<Checked<DeployResult>> {
  return deployments.deployChecked(snapshot, { accountId, by, directory, allowBreaking, promotedFrom: from })
}
