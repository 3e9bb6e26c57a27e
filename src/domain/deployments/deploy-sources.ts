/** Where a service gets deployments from: WORKFLOWS_DIR when it starts, and bundles that callers send. */
import { isUtf8 } from 'node:buffer'
import type { Logger } from 'pino'
import type { StorageUsage } from '../accounts/storage-usage.ts'
import type { Actor, ApiKeyUse } from '../audit-log/audit-log.ts'
import { FairRunner, TooMuchWork } from '../fair-runner.ts'
import { WorkflowError } from '../workflows/workflow.ts'
import { NoWorkflows } from './build-snapshot.ts'
import type { Bundle } from './bundle.ts'
import type { Checked, Deployments, DeployResult } from './deployments.ts'
import { describeBreaking } from './evolution.ts'
import { checkContent, type Snapshot, type SnapshotContent, type SnapshotFile, sizeOfFiles } from './snapshot.ts'

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

// Bundles that callers send. Their code runs while they are described, in a process that is limited in time and output.

export type SentDeployment =
  | { kind: 'disabled' | 'busy' }
  | { kind: 'invalid'; detail: string }
  | ({ kind: 'checked' } & Checked<DeployResult>)

interface SentBundlesDependencies {
  deployments: Deployments
  usage: StorageUsage
  /**
   * Loads a bundle and adds its definitions; `undefined` if this installation accepts no bundles.
   *
   * @throws {WorkflowError}
   */
  describe: ((bundle: Bundle, accountId: string) => Promise<Snapshot>) | undefined
}

/**
 * An account has one of the slots, so that its modules which load until their time is over leave the other to the next
 * account.
 */
const limits = { concurrency: 2, perAccountMax: 2 }

export class SentBundles {
  readonly #dependencies: SentBundlesDependencies
  readonly #runner = new FairRunner(limits)

  constructor(dependencies: SentBundlesDependencies) {
    this.#dependencies = dependencies
  }

  /**
   * Describes the bundle when a slot is free, and deploys it for the account.
   *
   * @param options.signal aborted when the caller has gone: a bundle that still waits is dropped.
   * @throws {Problem} 507 when the account may not store it.
   */
  async deploy(
    accountId: string,
    bundle: Bundle,
    options: { by: Actor | ApiKeyUse; allowBreaking: boolean; signal: AbortSignal },
  ): Promise<SentDeployment> {
    const { deployments, usage, describe } = this.#dependencies
    if (!describe) return { kind: 'disabled' }
    try {
      const content = toContent(bundle.content)
      const size = sizeOfFiles(content)
      usage.require(accountId, size)
      const work = () => describe({ ...bundle, content }, accountId)
      const snapshot = await this.#runner.run(accountId, work, options.signal)
      const checked = await deployments.deployChecked(snapshot, { ...options, accountId, directory: null })
      if (checked.result?.activated) usage.add(accountId, size)
      return { kind: 'checked', ...checked }
    } catch (error) {
      if (error instanceof TooMuchWork) return { kind: 'busy' }
      if (error instanceof WorkflowError) return { kind: 'invalid', detail: error.message }
      throw error
    }
  }
}

/** As the build of a directory writes it, so that equal files have equal hashes. @throws {WorkflowError} */
function toContent({ files, externals }: SnapshotContent): SnapshotContent {
  const content = {
    files: files.map(toFile).sort((a, b) => (a.path < b.path ? -1 : 1)),
    externals: [...new Set(externals)].sort(),
  }
  checkContent(content)
  return content
}

function toFile({ path, content, encoding, isExecutable }: SnapshotFile): SnapshotFile {
  const bytes = Buffer.from(content, encoding)
  const written = isUtf8(bytes)
    ? { content: bytes.toString() }
    : { content: bytes.toString('base64'), encoding: 'base64' as const }
  return { path, ...written, ...(isExecutable && { isExecutable }) }
}
