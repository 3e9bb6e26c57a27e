/** Deploys WORKFLOWS_DIR when a service starts, if its content differs from what was deployed last. */
import type { Logger } from 'pino'
import type { Actor } from '../audit-log/audit-log.ts'
import { NoWorkflows } from './build-snapshot.ts'
import type { Deployments } from './deployments.ts'
import type { Snapshot } from './snapshot.ts'

const startOfService: Actor = { kind: 'operator', id: null, name: 'start of the service' }

/**
 * Deploys for all accounts. A directory without workflows changes nothing: the service may have been given none, and its
 * workflows by a command.
 *
 * @param building of the directory.
 * @returns a function that logs what was done, for a start that succeeds.
 * @throws {WorkflowError}
 */
export async function deployDirectory(
  deployments: Deployments,
  directory: string,
  building: Promise<Snapshot>,
  log: Logger,
): Promise<() => void> {
  const snapshot = await building.catch((error: unknown) => {
    if (error instanceof NoWorkflows) return undefined
    throw error
  })
  if (!snapshot) return () => {}
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
