/** The deployments that this worker executes: each is read and written once, when the first run needs it. */
import { fileURLToPath } from 'node:url'
import { type DeploymentFiles, DeploymentUnavailable } from '../../domain/deployments/deployment-files.ts'
import type { Deployments } from '../../domain/deployments/deployments.ts'
import type { Workflows } from '../../domain/workflows/workflows.ts'
import { StoreUnavailable } from '../../storage/store.ts'
import { retryUntilAvailable } from '../attempt/reporter.ts'
import type { DeployedModules } from './executor-pool.ts'

/** A deployment whose files are on disk. */
export interface DeployedWorkflows extends DeployedModules {
  /** Its definitions, whatever is current. */
  workflows: Workflows
}

/** Deployments that no run uses are kept up to this number, for later runs that are pinned to them. */
const unusedMax = 10
/** A deployment that could not be opened is not tried again sooner, whatever the number of its runs. */
const retryMilliseconds = 1000

/** Its own packages, such as Playwright, are also there for workflows. */
const servicePackage = fileURLToPath(new URL('../../..', import.meta.url))

interface Entry {
  opening: Promise<DeployedWorkflows>
  users: number
  failedAt: number | undefined
}

export interface WorkerDeploymentsOptions {
  deployments: Deployments
  files: DeploymentFiles
  /** Where packages with native code are searched first. */
  directory: string | undefined
  /** Called before the files of a deployment are removed. */
  onRemoved(id: string): void
}

export class WorkerDeployments {
  readonly #options: WorkerDeploymentsOptions
  /** By ID, most recently used last. */
  readonly #entries = new Map<string, Entry>()

  constructor(options: WorkerDeploymentsOptions) {
    this.#options = options
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

  release(id: string): void {
    const entry = this.#entries.get(id)
    if (entry) entry.users -= 1
    this.#removeUnused()
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#entries.values()].map(({ opening }) => opening))
    this.#entries.clear()
    await this.#options.files.close()
  }

  #open(id: string): Entry {
    const entry: Entry = { opening: this.#write(id), users: 0, failedAt: undefined }
    entry.opening.catch(() => {
      entry.failedAt = performance.now()
    })
    return entry
  }

  #removeUnused(): void {
    if (this.#entries.size <= unusedMax) return
    const unused = [...this.#entries].filter(([, { users }]) => users === 0)
    for (const [id, { opening }] of unused.slice(0, Math.max(0, unused.length - unusedMax))) {
      this.#entries.delete(id)
      this.#options.onRemoved(id)
      void opening.then(({ directory }) => this.#options.files.remove(directory)).catch(() => {})
    }
  }

  async #write(id: string): Promise<DeployedWorkflows> {
    const { files, directory: own } = this.#options
    const { deployment, workflows, content } = await retryUntilAvailable(() => this.#read(id))
    const places = [content.directory, own, servicePackage].filter((each) => each != null)
    const directory = await files.write(id, content, places)
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
