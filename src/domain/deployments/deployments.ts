/**
 * Deployments of workflows: immutable snapshots in the store, and which of them is current. An account sees the
 * workflows of the installation's current deployment and of its own, which replace those with the same ID.
 */
import type { Store } from '../../storage/store.ts'
import type { Actor } from '../audit-log/audit-log.ts'
import type { ScopeOf } from '../runs/concurrency-limits.ts'
import type { Workflow } from '../workflows/workflow.ts'
import { Workflows } from '../workflows/workflows.ts'
import { activateEarlier, type DeployOptions, deploySnapshot, isLastDeployed } from './activations.ts'
import { type Claimable, ClaimableWorkflows } from './claimable-workflows.ts'
import { type Deployment, findActivationState, findCurrentActivations, findFiles, findPins } from './deployments.sql.ts'
import { type BreakingVersion, findBreakingVersions } from './evolution.ts'
import { LoadedDeployments } from './loaded-deployments.ts'
import { type Snapshot, type SnapshotContent, SnapshotDamaged, snapshotId, unpackContent } from './snapshot.ts'

/** The workflows that an account sees. */
export interface WorkflowRegistry {
  current(accountId: string): Workflows
  /** Identifies the runs that share a workflow's concurrency limit; by default, those of the same workflow ID. */
  readonly scopeOf?: ScopeOf
}

export interface DeployResult {
  deployment: Deployment
  /** Whether it was not current before. */
  activated: boolean
  /** The deployment that was current before. */
  previous: Deployment | undefined
}

export class Deployments implements WorkflowRegistry {
  readonly #store: Store
  readonly #onError: (error: unknown) => void
  readonly #now: () => number
  readonly #loaded: LoadedDeployments
  #installation = new Workflows([])
  /** Of accounts with a deployment: their registries. */
  #byAccount = new Map<string, Workflows>()
  #claimable: ClaimableWorkflows
  #activationState = 0
  #refreshing: Promise<void> | undefined
  #stopListening: (() => void) | undefined
  #currentIds: readonly string[] = []
  readonly #listeners = new Set<() => void>()

  /** @param onError called when a refresh fails, which is tried again within a second. */
  constructor(store: Store, onError: (error: unknown) => void = () => {}, now: () => number = Date.now) {
    this.#store = store
    this.#onError = onError
    this.#now = now
    this.#loaded = new LoadedDeployments(store)
    this.#claimable = new ClaimableWorkflows(this)
  }

  /** Resolves when the current deployments are loaded. From then on, changes by any process apply within a second. */
  async open(): Promise<this> {
    await this.refresh()
    // Called once a second too, in case a notification is lost.
    this.#stopListening = this.#store.listen('deployments', () => {
      this.refresh().catch(this.#onError)
    })
    return this
  }

  close(): void {
    this.#stopListening?.()
  }

  /** Calls `listener` after each change of what is current. Returns a function that removes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** All current deployments, that of the installation first. */
  get currentIds(): readonly string[] {
    return this.#currentIds
  }

  /** The workflows that the account sees now. */
  current(accountId: string): Workflows {
    return this.#byAccount.get(accountId) ?? this.#installation
  }

  /** The workflows of the installation, which accounts without a deployment see. */
  get installation(): Workflows {
    return this.#installation
  }

  readonly scopeOf: ScopeOf = (run) => this.#claimable.scopeOf(run)

  /** The workflows whose runs a worker may claim: current ones, and removed ones with unfinished runs. */
  claimable(): ClaimableWorkflows {
    return this.#claimable
  }

  /** All current workflows of any account. Several may have the same ID. */
  listAll(): readonly Claimable[] {
    return [...new Set([this.#installation, ...this.#byAccount.values()].flatMap((workflows) => workflows.list()))]
  }

  /** Compiles the schemas of all current workflows, with pauses. Otherwise each is compiled at its first use. */
  async warm(): Promise<void> {
    for (const workflows of [this.#installation, ...this.#byAccount.values()]) await workflows.warm()
  }

  /** For `ClaimableWorkflows`: the definitions in the runs' own deployments. */
  async findPinned(runIds: readonly string[]): Promise<ReadonlyMap<string, Workflow | 'missing' | undefined>> {
    const pins = await findPins(this.#store.read, runIds)
    const found = pins.map(
      async ({ id, workflowId, deploymentId }): Promise<[string, Workflow | 'missing' | undefined]> => {
        if (deploymentId === null) return [id, undefined]
        return [id, (await this.findWorkflows(deploymentId))?.get(workflowId) ?? 'missing']
      },
    )
    return new Map(await Promise.all(found))
  }

  /** Of any deployment in the store. */
  async find(id: string): Promise<Deployment | undefined> {
    return (await this.#loaded.get(id))?.deployment
  }

  /** The workflows of one deployment, to execute the runs that are pinned to it. */
  async findWorkflows(id: string): Promise<Workflows | undefined> {
    return (await this.#loaded.get(id))?.workflows
  }

  /**
   * The files of a deployment, checked against its ID, with the directory that was deployed last with this content.
   *
   * @throws {SnapshotDamaged}
   */
  async readFiles(id: string): Promise<(SnapshotContent & { directory: string | null }) | undefined> {
    const deployment = await this.find(id)
    const row = deployment && (await findFiles(this.#store.read, id))
    if (!row) return undefined
    const content = await unpackContent(row.files)
    if (snapshotId({ ...content, workflows: deployment.workflows }, deployment.accountId) !== id) {
      throw new SnapshotDamaged('The files of the deployment are not those that were deployed.')
    }
    return { ...content, directory: row.directory }
  }

  /** The workflows whose new version in the snapshot would break their callers. */
  findBreakingVersions({ workflows }: Snapshot, accountId: string | null): Promise<BreakingVersion[]> {
    const current = accountId === null ? this.#installation : this.current(accountId)
    return findBreakingVersions(this.#store.read, current, workflows, accountId, this.#now())
  }

  /** Whether the snapshot is what was deployed last, even if it was rolled back. */
  isLastDeployed(snapshot: Snapshot, accountId: string | null): Promise<boolean> {
    return isLastDeployed(this.#store, snapshot, accountId)
  }

  /** Stores the snapshot and makes it current, in all processes within a second. @throws {WorkflowError} */
  async deploy(snapshot: Snapshot, options: DeployOptions): Promise<DeployResult> {
    const { deployment, activated, previousId } = await deploySnapshot(this.#store, snapshot, options, this.#now())
    await this.#changed()
    const previous = previousId === undefined ? undefined : await this.find(previousId)
    return { deployment: (await this.find(deployment.id)) ?? deployment, activated, previous }
  }

  /** Makes the deployment before the current one current; returns `undefined` when there is none. */
  async rollback(accountId: string | null, by: Actor): Promise<Deployment | undefined> {
    const id = await activateEarlier(this.#store, accountId, by, this.#now())
    await this.#changed()
    return id === undefined ? undefined : this.find(id)
  }

  /** Loads what has changed since the last call. */
  refresh(): Promise<void> {
    // One after the other: a call during a refresh may be about a later change.
    const refreshing = (this.#refreshing ?? Promise.resolve()).catch(() => {}).then(() => this.#refresh())
    this.#refreshing = refreshing
    return refreshing
  }

  async #refresh(): Promise<void> {
    const { read } = this.#store
    const state = await findActivationState(read)
    if (state === this.#activationState) return
    const current = await Promise.all(
      (await findCurrentActivations(read)).map(async ({ accountId, deploymentId }) => {
        const loaded = await this.#loaded.get(deploymentId)
        if (!loaded) throw new Error(`Deployment ${deploymentId} is current but not in the store.`)
        return { accountId, ...loaded }
      }),
    )
    current.sort((a, b) => Number(a.accountId !== null) - Number(b.accountId !== null))
    this.#currentIds = current.map(({ deployment }) => deployment.id)
    this.#loaded.keep(this.#currentIds)
    this.#installation = current.find(({ accountId }) => accountId === null)?.workflows ?? new Workflows([])
    this.#byAccount = new Map(
      current.flatMap(({ accountId, workflows }) =>
        accountId === null ? [] : [[accountId, this.#installation.with(workflows)]],
      ),
    )
    this.#claimable = new ClaimableWorkflows(this)
    this.#activationState = state
    for (const listener of this.#listeners) listener()
  }

  async #changed(): Promise<void> {
    this.#store.notify('deployments')
    await this.refresh()
  }
}
