/** Running runs by workflow and by account, compared with their concurrency limits. */
import type { Transaction } from '../../storage/store.ts'

/** How many runs may run at the same time; Infinity without a limit. */
export interface ConcurrencyLimits {
  ofWorkflow(run: { workflow_id: string; account_id: string }): number
  /** Limits the runs of a workflow within one account. */
  ofWorkflowInAccount?(run: { workflow_id: string; account_id: string }): number
  ofAccount: number
}

/** Identifies the runs that share a workflow's limit. Accounts may have different workflows of the same ID. */
export type ScopeOf = (run: { workflow_id: string; account_id: string }) => string

export class RunningCounts {
  /** By the scope of the limit, which by default is the workflow's ID. */
  readonly byWorkflow = new Map<string, number>()
  readonly byAccount = new Map<string, number>()
  readonly #byWorkflowInAccount = new Map<string, number>()
  readonly #scopeOf: ScopeOf

  constructor(scopeOf: ScopeOf = ({ workflow_id }) => workflow_id) {
    this.#scopeOf = scopeOf
  }

  static async read(tx: Transaction, scopeOf?: ScopeOf): Promise<RunningCounts> {
    const counts = new RunningCounts(scopeOf)
    for (const row of await tx.all(tx.statements.countRunning, [])) counts.add(row, row.count)
    return counts
  }

  add(run: { workflow_id: string; account_id: string }, count = 1): void {
    const { account_id } = run
    const scope = this.#scopeOf(run)
    this.byWorkflow.set(scope, (this.byWorkflow.get(scope) ?? 0) + count)
    this.byAccount.set(account_id, this.ofAccount(account_id) + count)
    this.#byWorkflowInAccount.set(inAccount(run), this.#ofWorkflowInAccount(run) + count)
  }

  ofAccount(accountId: string): number {
    return this.byAccount.get(accountId) ?? 0
  }

  #ofWorkflowInAccount(run: { workflow_id: string; account_id: string }): number {
    return this.#byWorkflowInAccount.get(inAccount(run)) ?? 0
  }

  /** Whether the run must wait for a limit of its workflow or account. */
  isAtLimit(run: { workflow_id: string; account_id: string }, limits: ConcurrencyLimits): boolean {
    return this.reachedLimit(run, limits) !== undefined
  }

  /** The limit for which the run must wait; `undefined` without one. */
  reachedLimit(
    run: { workflow_id: string; account_id: string },
    limits: ConcurrencyLimits,
  ): { per: 'workflow' | 'workflowInAccount' | 'account'; limit: number } | undefined {
    const ofWorkflow = this.byWorkflow.get(this.#scopeOf(run)) ?? 0
    const limit = limits.ofWorkflow(run)
    if (ofWorkflow >= limit) return { per: 'workflow', limit }
    const limitInAccount = limits.ofWorkflowInAccount?.(run) ?? Number.POSITIVE_INFINITY
    if (this.#ofWorkflowInAccount(run) >= limitInAccount) return { per: 'workflowInAccount', limit: limitInAccount }
    const isFull = this.ofAccount(run.account_id) >= limits.ofAccount
    return isFull ? { per: 'account', limit: limits.ofAccount } : undefined
  }
}

function inAccount({ account_id, workflow_id }: { workflow_id: string; account_id: string }): string {
  return `${account_id} ${workflow_id}`
}
