/** Deployments in memory: all current ones, and those whose runs were executed last. */
import type { Store } from '../../storage/store.ts'
import { Workflows } from '../workflows/workflows.ts'
import { type Deployment, findDeployment } from './deployments.sql.ts'

interface Loaded {
  deployment: Deployment
  workflows: Workflows
}

/** In addition to the current ones. */
const loadedMax = 100

export class LoadedDeployments {
  readonly #store: Store
  /** By ID, most recently used last. Deployments never change. */
  readonly #loaded = new Map<string, Loaded>()
  #kept: ReadonlySet<string> = new Set()

  constructor(store: Store) {
    this.#store = store
  }

  /** Keeps these deployments in memory, in place of those of the last call. */
  keep(ids: readonly string[]): void {
    this.#kept = new Set(ids)
  }

  /** @returns `undefined` if the store does not have it. */
  async get(id: string): Promise<Loaded | undefined> {
    const loaded = this.#loaded.get(id) ?? (await this.#read(id))
    if (!loaded) return undefined
    this.#loaded.delete(id)
    this.#loaded.set(id, loaded)
    for (const each of this.#loaded.keys()) {
      if (this.#loaded.size <= loadedMax + this.#kept.size) break
      if (!this.#kept.has(each)) this.#loaded.delete(each)
    }
    return loaded
  }

  async #read(id: string): Promise<Loaded | undefined> {
    const deployment = await findDeployment(this.#store.read, id)
    // Another call may have read it in the meantime, and compiled its schemas.
    return this.#loaded.get(id) ?? (deployment && { deployment, workflows: new Workflows(deployment.workflows, id) })
  }
}
