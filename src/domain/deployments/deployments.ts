/**
 * Deployments of workflows: immutable snapshots in the store, and which of them is current. An account sees the
 * workflows of the installation's current deployment and of its own, which replace those with the same ID.
 */
import { readColumns } from '../../storage/runs/run-lookups.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import { type Actor, type ApiKeyUse, type NewEntry, recordAuditOfAccounts, toActor } from '../audit-log/audit-log.ts'
import type { Claimable } from '../queue/attempts.ts'
import type { ScopeOf } from '../queue/limits.ts'
import type { Workflow } from '../workflows/workflow.ts'
import { Workflows } from '../workflows/workflows.ts'
import { ClaimableWorkflows, keyOf, type RemotelyClaimable } from './claimable-workflows.ts'
import {
  type Activation,
  type ActivationKind,
  activate,
  type Deployment,
  findActivationState,
  findActivations,
  findCurrentActivations,
  findDeployment,
  findFiles,
  findRemoteWorkflows,
  insertDeployment,
  type ListedDeployment,
  listDeployments,
  type RemoteWorkflow,
} from './deployments.sql.ts'
import {
  type BreakingVersion,
  compareVersions,
  findBreakingVersions,
  findWorkflowChanges,
  type WorkflowChange,
} from './evolution.ts'
import {
  packContent,
  type Snapshot,
  type SnapshotContent,
  SnapshotDamaged,
  sizeOfFiles,
  snapshotId,
  unpackContent,
} from './snapshot.ts'

/** The workflows that an account sees. */
export interface WorkflowRegistry {
  current(accountId: string): Workflows
  /** Of a deployment that runs are pinned to; by default, the current ones count. */
  findWorkflows?(id: string): Promise<Workflows | undefined>
  /** Whether workers outside of the service execute the workflow's new runs; by default, none does. */
  isRemote?(accountId: string, workflowId: string): boolean
  /** Identifies the runs that share a workflow's concurrency limit; by default, those of the same workflow ID. */
  readonly scopeOf?: ScopeOf
}

/** What a change of the current deployment found, compared with what is current when it is written. */
export interface Checked<Result> {
  /** What breaks callers. Without `result`, nothing was changed because of that. */
  breaking: BreakingVersion[]
  result?: Result
}

export interface DeployResult {
  deployment: Deployment
  /** Whether it was not current before. */
  activated: boolean
  /** The deployment that was current before. For an account without one of its own, that is the installation's. */
  previous: Deployment | undefined
  /** What callers see of each of its workflows, and of those that they no longer see in the deployment before. */
  changes: WorkflowChange[]
}

/** Until a refresh that failed is tried again. */
const retryMilliseconds = 1000

export class Deployments implements WorkflowRegistry {
  readonly #store: Store
  readonly #onError: (error: unknown) => void
  readonly #now: () => number
  readonly #loaded: LoadedDeployments
  #installation = new Workflows([])
  #installationId: string | undefined
  /** Of accounts with a deployment: their registries. */
  #byAccount = new Map<string, Workflows>()
  #claimable: ClaimableWorkflows
  #activationState: string | undefined
  /** What is executed outside of the service, by account. */
  #remote: ReadonlyMap<string, Workflows> = new Map()
  /** All registered versions of these workflows, by account and workflow. */
  #remoteVersions: ReadonlyMap<string, readonly string[]> = new Map()
  /** Deployments whose workflows are executed outside of the service. */
  #remoteIds: ReadonlySet<string> = new Set()
  #refreshing: Promise<void> | undefined
  #stopListening: (() => void) | undefined
  #currentIds: readonly string[] = []
  readonly #listeners = new Set<() => void>()

  /**
   * @param onError called when a refresh fails, which is tried again within a second.
   * @param validates whether values of runs are checked: a process that checks none need not compile large schemas.
   */
  constructor(
    store: Store,
    onError: (error: unknown) => void = () => {},
    now: () => number = Date.now,
    { validates = true }: { validates?: boolean } = {},
  ) {
    this.#store = store
    this.#onError = onError
    this.#now = now
    this.#loaded = new LoadedDeployments(store, validates)
    this.#claimable = new ClaimableWorkflows(this)
  }

  /** Resolves when the current deployments are loaded. From then on, changes by any process apply within a second. */
  async open(): Promise<this> {
    await this.refresh()
    this.#stopListening = this.#store.listen('deployments', () => this.#follow())
    return this
  }

  close(): void {
    this.#stopListening?.()
    this.#stopListening = undefined
  }

  #follow(): void {
    this.refresh().catch((error: unknown) => {
      this.#onError(error)
      setTimeout(() => this.#stopListening && this.#follow(), retryMilliseconds).unref()
    })
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

  current(accountId: string): Workflows {
    return this.#byAccount.get(accountId) ?? this.#installation
  }

  /** The workflows of the installation, which accounts without a deployment see. */
  get installation(): Workflows {
    return this.#installation
  }

  readonly scopeOf: ScopeOf = (run) => this.#claimable.scopeOf(run)

  /** Whether workers outside of the service execute the workflow's new runs. */
  isRemote(accountId: string, workflowId: string): boolean {
    const id = this.#remoteIds.size > 0 ? this.current(accountId).deploymentOf(workflowId) : null
    return id !== null && this.#remoteIds.has(id)
  }

  /** The versions of the workflow that workers outside of the service have registered. */
  remoteVersions(accountId: string, workflowId: string): readonly string[] {
    return this.#remoteVersions.get(keyOf(accountId, workflowId)) ?? []
  }

  /** The workflows whose runs a worker may claim: current ones, and removed ones with unfinished runs. */
  claimable(): ClaimableWorkflows {
    return this.#claimable
  }

  /** Those that a worker outside of the service may claim. */
  claimableRemotely(
    accountId: string,
    workflowIds: ReadonlySet<string>,
    { deployed, browser }: { deployed: boolean; browser: boolean },
  ): RemotelyClaimable {
    const find = (account: string, id: string) => {
      if (account !== accountId) return undefined
      const workflow = this.current(account).get(id)
      if (this.isRemote(account, id)) return workflowIds.has(id) ? workflow : undefined
      // Signing in needs the store: its seed, its lease and the runs that wait for it.
      if (workflow?.signsIn || workflow?.checksSession) return undefined
      return deployed && (browser || !workflow?.usesBrowser) ? workflow : undefined
    }
    const { scopeOf, hasLimits } = this.#claimable
    return { accountId, find, scopeOf, hasLimits, load: async () => {} }
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
    const pins = await readColumns(this.#store.read, ['id', 'workflow_id', 'deployment_id'], runIds)
    const found = pins.map(
      async ({ id, workflow_id, deployment_id }): Promise<[string, Workflow | 'missing' | undefined]> => {
        const loaded = deployment_id === null ? undefined : await this.#loaded.get(deployment_id)
        if (deployment_id === null || loaded?.deployment.isRemote) return [id, undefined]
        return [id, loaded?.workflows.get(workflow_id) ?? 'missing']
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

  /** The account's own deployments, newest first, that come after a position. */
  listOwn(accountId: string, after: ListedDeployment | undefined, limit: number): Promise<ListedDeployment[]> {
    return listDeployments(this.#store.read, accountId, after, limit)
  }

  /** The activations of the account's own deployments, newest first: the first one is of the current deployment. */
  listActivations(accountId: string): Promise<Activation[]> {
    return findActivations(this.#store.read, accountId)
  }

  /** The installation's current deployment, which serves every account below its own; `undefined` if it has none. */
  async findInstallation(): Promise<Deployment | undefined> {
    return this.#installationId === undefined ? undefined : this.find(this.#installationId)
  }

  /** The workflows whose new version in the snapshot, or absence from it, would break their callers. */
  async findBreakingVersions(deployed: Deployable, accountId: string | null): Promise<BreakingVersion[]> {
    const { current, next, own } = this.#compare(deployed, accountId)
    await own.compileLarge(accountId)
    return findBreakingVersions(this.#store.read, current, next, accountId, this.#now())
  }

  /** What callers would see. */
  findChanges(deployed: Deployable, accountId: string | null): WorkflowChange[] {
    return findWorkflowChanges(this.#compare(deployed, accountId))
  }

  /** What callers see, and what they would see. @param deployed the installation's, for an account, replaces its own. */
  #compare({ workflows, accountId: owner }: Deployable, accountId: string | null) {
    const own = new Workflows(owner === null && accountId !== null ? [] : workflows)
    if (accountId === null) return { current: this.#installation, next: own, own }
    return { current: this.current(accountId), next: this.#withoutOwn(accountId).with(own), own }
  }

  /** Whether the snapshot is what was deployed last, even if it was rolled back. */
  isLastDeployed(snapshot: Snapshot, accountId: string | null): Promise<boolean> {
    return isLastDeployed(this.#store, snapshot, accountId)
  }

  /** Stores the snapshot and makes it current, in all processes within a second. @throws {WorkflowError} */
  async deploy(snapshot: Snapshot, options: DeployOptions): Promise<DeployResult> {
    const changes = this.findChanges(snapshot, options.accountId)
    return this.#toResult(await deploySnapshot(this.#store, snapshot, options, this.#now()), changes)
  }

  /** Deploys as `deploy` does, unless that breaks callers. */
  deployChecked(
    snapshot: Snapshot,
    options: DeployOptions & { allowBreaking: boolean },
  ): Promise<Checked<DeployResult>> {
    return this.#whileUnchanged(async (basedOn) => {
      const breaking = await this.findBreakingVersions(snapshot, options.accountId)
      if (breaking.length > 0 && !options.allowBreaking) return { breaking }
      return { breaking, result: await this.deploy(snapshot, { ...options, basedOn }) }
    })
  }

  /**
   * Makes a deployment of the account current again, unless that breaks callers; `undefined` if there is none with this ID.
   * The installation's current deployment sets the account's own aside: its callers see the installation's workflows.
   */
  async activate(
    accountId: string,
    id: string,
    { by, allowBreaking }: { by: Actor | ApiKeyUse; allowBreaking: boolean },
  ): Promise<Checked<DeployResult> | undefined> {
    return this.#whileUnchanged(async (basedOn) => {
      const deployment = await this.find(id)
      const isOwn = deployment?.accountId === accountId && !deployment.isRemote
      if (!deployment || !(isOwn || id === this.#installationId)) return undefined
      const changes = this.findChanges(deployment, accountId)
      const breaking = await this.findBreakingVersions(deployment, accountId)
      if (breaking.length > 0 && !allowBreaking) return { breaking }
      const options = { accountId, by, at: this.#now(), basedOn, installationId: this.#installationId }
      const activated = await activateStored(this.#store, options, () => id)
      return activated && { breaking, result: await this.#toResult(activated, changes) }
    })
  }

  /** Calls `work` with what is current, and again if that has changed before `work` has written. */
  async #whileUnchanged<Result>(work: (basedOn: string | undefined) => Promise<Result>): Promise<Result> {
    for (;;) {
      await this.refresh()
      try {
        return await work(this.#activationState)
      } catch (error) {
        if (!(error instanceof ActivationsChanged)) throw error
      }
    }
  }

  async #toResult(
    { deployment, activated, previousId }: SnapshotDeployed,
    changes: WorkflowChange[],
  ): Promise<DeployResult> {
    await this.changed()
    const before = previousId ?? (deployment.accountId === null ? undefined : this.#installationId)
    const previous = before === undefined ? undefined : await this.find(before)
    return { deployment: (await this.find(deployment.id)) ?? deployment, activated, previous, changes }
  }

  /**
   * Makes the deployment before the current one current; returns `undefined` when there is none. Before the first one of an
   * account came the installation's.
   */
  async rollback(accountId: string | null, by: Actor): Promise<Deployment | undefined> {
    await this.refresh()
    const installationId = accountId === null ? undefined : this.#installationId
    const options = { accountId, by, at: this.#now(), installationId }
    const choose = (activations: readonly Activation[]) =>
      activations.length === 0 ? undefined : (stackOf(activations).at(-2) ?? installationId)
    const activated = await activateStored(this.#store, options, choose)
    if (!activated?.activated) return undefined
    return (await this.#toResult(activated, [])).deployment
  }

  /** What the account sees in addition to its own deployment. */
  #withoutOwn(accountId: string): Workflows {
    return this.#remote.get(accountId)?.with(this.#installation) ?? this.#installation
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
    const activated = await Promise.all(
      (await findCurrentActivations(read)).map(async ({ accountId, deploymentId }) => {
        const loaded = await this.#loaded.get(deploymentId)
        if (!loaded) throw new Error(`Deployment ${deploymentId} is current but not in the store.`)
        return { accountId, ...loaded }
      }),
    )
    // An account that has activated the installation's deployment follows it, as accounts without a deployment do.
    const current = activated.filter(({ accountId, deployment }) => accountId === deployment.accountId)
    current.sort((a, b) => Number(a.accountId !== null) - Number(b.accountId !== null))
    const remote = await this.#readRemote()
    this.#remote = remote
    this.#currentIds = current.map(({ deployment }) => deployment.id)
    this.#loaded.keep([...this.#currentIds, ...this.#remoteIds])
    const installation = current.find(({ accountId }) => accountId === null)
    this.#installation = installation?.workflows ?? new Workflows([])
    this.#installationId = installation?.deployment.id
    const own = new Map(current.map(({ accountId, workflows }) => [accountId, workflows]))
    own.delete(null)
    this.#byAccount = new Map(
      [...new Set([...own.keys(), ...remote.keys()])].flatMap((accountId) => {
        if (accountId === null) return []
        const base = this.#withoutOwn(accountId)
        const deployed = own.get(accountId)
        return [[accountId, deployed ? base.with(deployed) : base]]
      }),
    )
    this.#claimable = new ClaimableWorkflows(this)
    this.#activationState = state
    for (const listener of this.#listeners) listener()
  }

  /** The highest version of each workflow that workers outside of the service have registered, by account. */
  async #readRemote(): Promise<Map<string, Workflows>> {
    const highest = new Map<string, RemoteWorkflow>()
    const versions = new Map<string, string[]>()
    for (const each of await findRemoteWorkflows(this.#store.read)) {
      const key = keyOf(each.accountId, each.workflowId)
      versions.set(key, [...(versions.get(key) ?? []), each.version])
      const known = highest.get(key)
      if (!known || compareVersions(each.version, known.version) > 0) highest.set(key, each)
    }
    const byAccount = new Map<string, Workflows>()
    // At once, so that accounts with large schemas share the threads that compile them.
    const read = [...highest.values()].map(async ({ accountId, deploymentId }) => {
      return { accountId, loaded: await this.#loaded.get(deploymentId) }
    })
    for (const { accountId, loaded } of await Promise.all(read)) {
      if (loaded) byAccount.set(accountId, byAccount.get(accountId)?.with(loaded.workflows) ?? loaded.workflows)
    }
    this.#remoteVersions = versions
    this.#remoteIds = new Set([...highest.values()].map(({ deploymentId }) => deploymentId))
    return byAccount
  }

  /** Applies a change of the store in all processes, in this one before it resolves. */
  async changed(): Promise<void> {
    this.#store.notify('deployments')
    await this.refresh()
  }
}

/** What is to be deployed, or is in the store already. */
type Deployable = Pick<Snapshot, 'workflows'> & Partial<Pick<Deployment, 'accountId'>>

// Changes which deployment is current, and records it in the audit logs of the accounts that it affects.

interface DeployOptions {
  /** The account that alone sees the workflows; `null` for all accounts of the installation. */
  accountId: string | null
  by: Actor | ApiKeyUse
  /** Where packages with native code are searched first; `null` if it is not on the machines of workers. */
  directory: string | null
  /**
   * Changes nothing if this deployment already has the content of the snapshot. With `lastDeployed`, a rollback stays in
   * effect.
   */
  unless?: 'current' | 'lastDeployed'
  /** The state of activations that the caller has read. */
  basedOn?: string | undefined
  /** The name of the environment whose deployment this is the copy of. */
  promotedFrom?: string | undefined
}

/** Another deployment has become current since the caller has read what is. */
class ActivationsChanged extends Error {}

async function requireUnchanged(tx: Transaction, basedOn: string | undefined): Promise<void> {
  if (basedOn !== undefined && (await findActivationState(tx)) !== basedOn) throw new ActivationsChanged()
}

interface SnapshotDeployed {
  deployment: Deployment
  /** Whether it was not current before. */
  activated: boolean
  /** The deployment that was current before. */
  previousId: string | undefined
}

/** Stores the snapshot and makes it current. */
async function deploySnapshot(
  store: Store,
  snapshot: Snapshot,
  { accountId, by, directory, unless = 'current', basedOn, promotedFrom }: DeployOptions,
  at: number,
): Promise<SnapshotDeployed> {
  const id = snapshotId(snapshot, accountId)
  const { workflows } = snapshot
  const deployment = { id, accountId, createdAt: at, workflows, sizeBytes: sizeOfFiles(snapshot), isRemote: false }
  const compare = async (tx: Transaction) => {
    const activations = await findActivations(tx, accountId)
    const last = unless === 'current' ? activations[0]?.deploymentId : lastDeployed(activations)
    return { deployment, activated: last !== id, previousId: activations[0]?.deploymentId }
  }
  const before = await compare(store.read)
  if (!before.activated) return before
  const files = await packContent(snapshot)
  return store.write(async (tx) => {
    await requireUnchanged(tx, basedOn)
    // Another process may have deployed it in the meantime.
    const compared = await compare(tx)
    if (!compared.activated) return compared
    await insertDeployment(tx, deployment, files)
    await recordActivation(tx, deployment, { kind: 'deploy', directory, by, at, promotedFrom })
    return compared
  })
}

async function isLastDeployed(store: Store, snapshot: Snapshot, accountId: string | null): Promise<boolean> {
  return lastDeployed(await findActivations(store.read, accountId)) === snapshotId(snapshot, accountId)
}

function lastDeployed(activations: readonly Activation[]): string | undefined {
  return activations.find(({ kind }) => kind === 'deploy')?.deploymentId
}

interface ActivateOptions extends Pick<DeployOptions, 'accountId' | 'by' | 'basedOn'> {
  at: number
  /** For an account: what serves it without a deployment of its own. */
  installationId: string | undefined
}

/**
 * Makes a stored deployment current. Returns `undefined` if there is none.
 *
 * @param choose gets the activations, newest first.
 */
function activateStored(
  store: Store,
  { accountId, by, at, basedOn, installationId }: ActivateOptions,
  choose: (activations: readonly Activation[]) => string | undefined,
): Promise<SnapshotDeployed | undefined> {
  return store.write(async (tx) => {
    await requireUnchanged(tx, basedOn)
    const find = async (id: string | undefined) => (id === undefined ? undefined : findDeployment(tx, id))
    const activations = await findActivations(tx, accountId)
    const chosen = await find(choose(activations))
    const isFollowing = chosen?.accountId === null && accountId !== null
    // Of the installation's deployments, only the current one serves accounts.
    const deployment = isFollowing ? await find(installationId) : chosen
    if (!deployment) return undefined
    const { id } = deployment
    const before = await find(activations[0]?.deploymentId)
    const previousId = before?.accountId === accountId ? before?.id : installationId
    if (previousId === id) return { deployment, activated: false, previousId }
    // One that was rolled back is deployed again: a rollback then returns to what is current now.
    const isEarlier = isFollowing || stackOf(activations).includes(id)
    const deployed = activations.find(({ kind, deploymentId }) => kind === 'deploy' && deploymentId === id)
    const activation = isEarlier
      ? ({ kind: 'rollback', directory: null } as const)
      : ({ kind: 'deploy', directory: deployed?.directory ?? null } as const)
    await recordActivation(tx, { ...deployment, accountId }, { ...activation, by, at })
    return { deployment, activated: true, previousId }
  })
}

interface RecordedActivation extends Pick<DeployOptions, 'by' | 'directory' | 'promotedFrom'> {
  kind: ActivationKind
  at: number
}

async function recordActivation(
  tx: Transaction,
  { id, accountId, workflows }: Deployment,
  { kind, directory, by, at, promotedFrom }: RecordedActivation,
): Promise<void> {
  await activate(tx, { accountId, deploymentId: id, kind, directory, at })
  const action = kind === 'deploy' ? 'workflows.deployed' : 'workflows.rolledBack'
  const scope = accountId === null ? 'all accounts' : 'this account'
  const details = { workflows: workflows.length, for: scope, ...(promotedFrom !== undefined && { promotedFrom }) }
  const accounts = tx.query.selectFrom('accounts').select('id')
  const affected = await (accountId === null ? accounts : accounts.where('id', '=', accountId)).execute()
  const entry: NewEntry = { action, by: await toActor(tx, by), subject: { id, name: id.slice(0, 12) }, details, at }
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

// Deployments in memory: all current ones, and those whose runs were executed last.

interface Loaded {
  deployment: Deployment
  workflows: Workflows
}

/** In addition to the current ones. */
const loadedMax = 100

class LoadedDeployments {
  readonly #store: Store
  readonly #validates: boolean
  /** By ID, most recently used last. Deployments never change. */
  readonly #loaded = new Map<string, Loaded>()
  #kept: ReadonlySet<string> = new Set()

  constructor(store: Store, validates: boolean) {
    this.#store = store
    this.#validates = validates
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
    if (!deployment) return undefined
    const workflows = new Workflows(deployment.workflows, id)
    // Not awaited: the schemas of one account must not delay a start, nor what others deploy.
    if (this.#validates) void workflows.compileLarge(deployment.accountId)
    // Another call may have read it in the meantime, and compiled its schemas.
    return this.#loaded.get(id) ?? { deployment, workflows }
  }
}
