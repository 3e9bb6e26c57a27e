/** Running runs by workflow and by account, compared with their concurrency limits. */
import type { Transaction } from '../../storage/store.ts'

/** How many runs may run at the same time; Infinity without a limit. */
export interface ConcurrencyLimits {
  ofWorkflow(run: { workflow_id: string; account_id: string }): number
  ofAccount: number
}

/** Identifies the runs that share a workflow's limit. Accounts may have different workflows of the same ID. */
export type ScopeOf = (run: { workflow_id: string; account_id: string }) => string

export class RunningCounts {
  /** By the scope of the limit, which by default is the workflow's ID. */
  readonly byWorkflow = new Map<string, number>()
  readonly byAccount = new Map<string, number>()
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
  }

  ofAccount(accountId: string): number {
    return this.byAccount.get(accountId) ?? 0
  }

  /** Whether the workflow or the account of the run has reached its limit. */
  isAtLimit(run: { workflow_id: string; account_id: string }, limits: ConcurrencyLimits): boolean {
    const ofWorkflow = this.byWorkflow.get(this.#scopeOf(run)) ?? 0
    return ofWorkflow >= limits.ofWorkflow(run) || this.ofAccount(run.account_id) >= limits.ofAccount
  }

  copy(): RunningCounts {
    const copy = new RunningCounts(this.#scopeOf)
    for (const [id, count] of this.byWorkflow) copy.byWorkflow.set(id, count)
    for (const [id, count] of this.byAccount) copy.byAccount.set(id, count)
    return copy
  }
}
