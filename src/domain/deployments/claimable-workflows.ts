/** The definitions by which workers claim runs: of current deployments, and of workflows that were removed since. */
import type { Claimable } from '../queue/attempts.ts'
import type { Workflow } from '../workflows/workflow.ts'
import type { Workflows } from '../workflows/workflows.ts'

/** A ready run whose workflow may be unknown. */
interface Head {
  id: string
  account_id: string
  workflow_id: string
}

interface Source {
  readonly installation: Workflows
  current(accountId: string): Workflows
  /** Of a deployment that runs are pinned to; by default, the current ones count. */
  findWorkflows?(id: string): Promise<Workflows | undefined>
  listAll(): readonly Claimable[]
  isRemote(accountId: string, workflowId: string): boolean
  /** Of the runs' own deployments. */
  findPinned(runIds: readonly string[]): Promise<ReadonlyMap<string, Workflow | 'missing' | undefined>>
}

/** See `ClaimableWorkflows` in claim.ts. */
export type RemotelyClaimable = Pick<ClaimableWorkflows, 'find' | 'scopeOf' | 'hasLimits' | 'load'> & {
  accountId: string
}

/**
 * A run is claimed by the current definition of its workflow, whose concurrency limit applies to all of its runs, and
 * executed by its own deployment. Valid until the next change of current deployments.
 */
export class ClaimableWorkflows {
  readonly #source: Source
  /** Of workflows that are not current any more: `null` for those that cannot be executed. */
  readonly #removed = new Map<string, Claimable | null>()
  #currentHasLimits: boolean | undefined

  constructor(source: Source) {
    this.#source = source
  }

  find(accountId: string, workflowId: string): Claimable | undefined {
    if (this.#source.isRemote(accountId, workflowId)) return undefined
    return (
      this.#source.current(accountId).get(workflowId) ?? this.#removed.get(keyOf(accountId, workflowId)) ?? undefined
    )
  }

  /** The workflow of an account's own deployment is another one than the installation's of the same ID. */
  readonly scopeOf = ({ account_id, workflow_id }: Pick<Head, 'account_id' | 'workflow_id'>): string => {
    const ofAccount = this.#source.current(account_id).deploymentOf(workflow_id)
    const isOwn = ofAccount !== this.#source.installation.deploymentOf(workflow_id)
    return isOwn ? keyOf(account_id, workflow_id) : workflow_id
  }

  /** Whether any of them has a concurrency limit. */
  get hasLimits(): boolean {
    // Asked at each claim: an installation may have thousands of workflows.
    this.#currentHasLimits ??= this.#source.listAll().some(hasLimit)
    return this.#currentHasLimits || [...this.#removed.values()].some((each) => each !== null && hasLimit(each))
  }

  /** Loads definitions that `find` does not have, from the deployments of these runs. */
  async load(heads: readonly Head[]): Promise<void> {
    const unknown = heads.filter(
      ({ account_id, workflow_id }) =>
        !this.find(account_id, workflow_id) && !this.#removed.has(keyOf(account_id, workflow_id)),
    )
    if (unknown.length === 0) return
    const pinned = await this.#source.findPinned(unknown.map(({ id }) => id))
    for (const { id, account_id, workflow_id } of unknown) {
      // The run is gone: it says nothing about others of the workflow.
      if (!pinned.has(id)) continue
      const found = pinned.get(id)
      // If the deployment is not in the store, the worker says so on the run.
      const workflow = found === 'missing' ? { id: workflow_id, usesBrowser: true } : (found ?? null)
      this.#removed.set(keyOf(account_id, workflow_id), workflow)
    }
  }
}

function hasLimit(workflow: Claimable): boolean {
  return workflow.concurrency !== undefined
}

export function keyOf(accountId: string, workflowId: string): string {
  return `${accountId} ${workflowId}`
}
