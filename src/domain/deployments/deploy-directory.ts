/** Deploys WORKFLOWS_DIR when a service starts, if its content differs from what was deployed last. */
import type { Logger } from 'pino'
import type { Actor } from '../audit-log/audit-log.ts'
import { NoWorkflows } from './build-snapshot.ts'
import type { Deployments } from './deployments.ts'
import { describeBreaking } from './evolution.ts'
import type { Snapshot } from './snapshot.ts'

const startOfService: Actor = { kind: 'operator', id: null, name: 'start of the service' }

export interface DirectoryToDeploy {
  path: string
  building: Promise<Snapshot>
  allowBreaking: boolean
}

/**
 * Deploys for all accounts. A directory without workflows changes nothing: the service may have been given none, and its
 * workflows by a command. Nor does one that breaks callers: the service then serves the current workflows.
 *
 * @returns a function that logs what was done, for a start that succeeds.
 * @throws {WorkflowError}
 */
export async function deployDirectory(
  deployments: Deployments,
  { path: directory, building, allowBreaking }: DirectoryToDeploy,
  log: Logger,
): Promise<() => void> {
  const snapshot = await building.catch((error: unknown) => {
    if (error instanceof NoWorkflows) return undefined
    throw error
  })
  if (!snapshot) return () => {}
  if (!allowBreaking && !(await deployments.isLastDeployed(snapshot, null))) {
    await deployments.refresh()
    const breaking = await deployments.findBreakingVersions(snapshot, null)
    if (breaking.length > 0) {
      const problems = describeBreaking(breaking)
      return () =>
        log.error({ directory, problems }, 'WORKFLOWS_DIR breaks callers of its workflows and is not deployed')
    }
  }
  const options = { accountId: null, by: startOfService, directory, unless: 'lastDeployed' } as const
  const { deployment, activated, previous } = await deployments.deploy(snapshot, options)
  const deploymentId = deployment.id
  return () => {
    if (activated) log.info({ deploymentId, previousId: previous?.id, directory }, 'workflows deployed')
    else if (previous && previous.id !== deploymentId) {
      log.warn({ deploymentId, currentId: previous.id }, 'WORKFLOWS_DIR was rolled back and is not deployed again')
    }
  }
}
