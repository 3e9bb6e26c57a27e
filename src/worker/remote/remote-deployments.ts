/** Deployments as a worker outside of the service reads them. They never change, so each is read once. */
import type { ExecutionClient } from '../../client/clients.ts'
import { DeploymentUnavailable } from '../../domain/deployments/deployment-files.ts'
import { type Snapshot, unpackBundle } from '../../domain/deployments/snapshot.ts'
import { Workflows } from '../../domain/workflows/workflows.ts'

interface Loaded {
  snapshot: Snapshot
  workflows: Workflows
}

/** Deployments in memory. */
const loadedMax = 20

export class RemoteDeployments {
  readonly #client: ExecutionClient
  /** By ID, the most recently read last. */
  readonly #loaded = new Map<string, Promise<Loaded>>()

  constructor(client: ExecutionClient) {
    this.#client = client
  }

  /** The service says which deployment a run is pinned to. */
  readonly currentIds: readonly string[] = []

  current(): Workflows {
    return new Workflows([])
  }

  listAll(): [] {
    return []
  }

  claimable() {
    return { find: () => undefined, scopeOf: () => '', hasLimits: false, load: async () => {} }
  }

  async open(): Promise<this> {
    return this
  }

  onChange(): () => void {
    return () => {}
  }

  close(): void {}

  async find(id: string) {
    const { snapshot } = await this.#get(id)
    return { id, accountId: null, createdAt: 0, sizeBytes: 0, isRemote: false, workflows: snapshot.workflows }
  }

  async findWorkflows(id: string): Promise<Workflows> {
    return (await this.#get(id)).workflows
  }

  async readFiles(id: string) {
    const { files, externals } = (await this.#get(id)).snapshot
    return { files, externals, directory: null }
  }

  #get(id: string): Promise<Loaded> {
    const loading = this.#loaded.get(id) ?? this.#read(id)
    this.#loaded.delete(id)
    this.#loaded.set(id, loading)
    const [oldest] = this.#loaded.keys()
    if (this.#loaded.size > loadedMax && oldest !== undefined) this.#loaded.delete(oldest)
    loading.catch(() => this.#loaded.delete(id))
    return loading
  }

  async #read(deploymentId: string): Promise<Loaded> {
    const { data, error } = await this.#client.getDeploymentBundle({
      params: { path: { deploymentId } },
      parseAs: 'arrayBuffer',
    })
    if (error) throw new DeploymentUnavailable(`It cannot be read from the service: ${error.detail || error.title}.`)
    const snapshot = await unpackBundle(new Uint8Array(data))
    return { snapshot, workflows: new Workflows(snapshot.workflows, deploymentId) }
  }
}
