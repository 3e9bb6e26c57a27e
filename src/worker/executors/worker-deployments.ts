/** Owns the files of the deployments that this worker executes: each is written once, when the first run needs it. */
import type { Logger } from 'pino'
import { DeploymentFiles, DeploymentUnavailable, servicePackage } from '../../domain/deployments/deployment-files.ts'
import type { Deployments } from '../../domain/deployments/deployments.ts'
import type { Claim } from '../../domain/queue/attempts.ts'
import type { Identity } from '../../domain/workflows/executor-identity.ts'
import type { ExecutorUsers } from '../../domain/workflows/executor-users.ts'
import type { Workflows } from '../../domain/workflows/workflows.ts'
import { StoreUnavailable } from '../../storage/store.ts'
import { retryUntilAvailable } from '../attempt/reporter.ts'
import type { ModulesToLoad } from './executor-process.ts'

/** A deployment whose files are on disk. */
export interface DeployedWorkflows extends Omit<ModulesToLoad, 'usesBrowser'> {
  readonly id: string
  /** Its definitions, whatever is current. */
  workflows: Workflows
}

/** Deployments that no run uses are kept up to this number, for later runs that are pinned to them. */
const unusedMax = 10
/** A deployment that could not be opened is not tried again sooner, whatever the number of its runs. */
const retryMilliseconds = 1000

interface Entry {
  opening: Promise<DeployedWorkflows>
  users: number
  failedAt: number | undefined
}

interface WorkerDeploymentsOptions {
  deployments: Pick<
    Deployments,
    'close' | 'onChange' | 'currentIds' | 'current' | 'find' | 'findWorkflows' | 'readFiles'
  > & { open(): Promise<unknown> }
  /** The user that executors run as, if not the worker's. */
  identity: Identity
  /** Lease a group to each deployment. */
  users?: ExecutorUsers | undefined
  /** Where packages with native code are searched first. */
  directory: string | undefined
  log: Logger
}

export class WorkerDeployments {
  readonly #options: WorkerDeploymentsOptions
  readonly #files: DeploymentFiles
  /** By ID, most recently used last. */
  readonly #entries = new Map<string, Entry>()
  #unsubscribe = () => {}

  constructor(options: WorkerDeploymentsOptions) {
    this.#options = options
    this.#files = new DeploymentFiles(options.identity, 'deployments', options.users)
  }

  /** Resolves when it knows what is current. @param onChange called when that changes. */
  async open(onChange: () => void): Promise<void> {
    const { deployments } = this.#options
    await retryUntilAvailable(() => deployments.open())
    this.#unsubscribe = deployments.onChange(onChange)
  }

  /** The current deployment of the installation. */
  get currentId(): string | undefined {
    return this.#options.deployments.currentIds[0]
  }

  get filesPrefix(): string {
    return this.#files.filesPrefix
  }

  /** Stops following what is current. */
  drain(): void {
    this.#unsubscribe()
    this.#options.deployments.close()
  }

  /** The deployment that executes a run: the one that validated it or, before there were deployments, the current one. */
  idFor({ accountId, workflowId, deploymentId }: Claim): string {
    const id = deploymentId ?? this.#options.deployments.current(accountId).deploymentOf(workflowId)
    if (id === null) throw new DeploymentUnavailable(`No deployment has the workflow ${workflowId} now.`)
    return id
  }

  /**
   * Keeps the files of the deployment until `release`.
   *
   * @throws {DeploymentUnavailable} there is nothing to release then.
   */
  async acquire(id: string): Promise<DeployedWorkflows> {
    const known = this.#entries.get(id)
    const isExpired = known?.failedAt !== undefined && performance.now() - known.failedAt > retryMilliseconds
    const entry = known && !isExpired ? known : this.#open(id)
    this.#entries.delete(id)
    this.#entries.set(id, entry)
    entry.users += 1
    try {
      return await entry.opening
    } catch (error) {
      entry.users -= 1
      throw error
    }
  }

  /** Returns the deployments whose files are removed next: no process may use them any more. */
  release(id: string): string[] {
    const entry = this.#entries.get(id)
    if (entry) entry.users -= 1
    return this.#removeUnused()
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#entries.values()].map(({ opening }) => opening))
    this.#entries.clear()
    await this.#files.close().catch((error: unknown) => {
      this.#options.log.warn({ err: error }, 'removing the files of deployments failed; a later worker removes them')
    })
  }

  #open(id: string): Entry {
    const entry: Entry = { opening: this.#write(id), users: 0, failedAt: undefined }
    entry.opening.catch(() => {
      entry.failedAt = performance.now()
    })
    return entry
  }

  #removeUnused(): string[] {
    if (this.#entries.size <= unusedMax) return []
    const unused = [...this.#entries].filter(([, { users }]) => users === 0)
    const removed = unused.slice(0, Math.max(0, unused.length - unusedMax))
    for (const [id, { opening }] of removed) {
      this.#entries.delete(id)
      void opening.then(({ directory }) => this.#files.remove(directory)).catch(() => {})
    }
    return removed.map(([id]) => id)
  }

  async #write(id: string): Promise<DeployedWorkflows> {
    const own = this.#options.directory
    const { deployment, workflows, content } = await retryUntilAvailable(() => this.#read(id))
    const places = [content.directory, own, servicePackage].filter((each) => each != null)
    const directory = await this.#files.write(id, content, places)
    const modules = Object.fromEntries(deployment.workflows.map((workflow) => [workflow.id, workflow.module]))
    return { id, directory, modules, workflows }
  }

  async #read(id: string) {
    const { deployments } = this.#options
    try {
      const deployment = await deployments.find(id)
      const workflows = await deployments.findWorkflows(id)
      const content = await deployments.readFiles(id)
      if (deployment && workflows && content) return { deployment, workflows, content }
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error
      throw new DeploymentUnavailable('It cannot be read from the store.', { cause: error })
    }
    throw new DeploymentUnavailable('It is not in the store.')
  }
}
