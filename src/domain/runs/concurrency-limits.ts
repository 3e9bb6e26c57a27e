/** Running runs by workflow and by account, compared with their concurrency limits. */
import type { Transaction } from '../../storage/store.ts'

/** How many runs may run at the same time; Infinity without a limit. */
export interface ConcurrencyLimits {
  ofWorkflow(workflowId: string): number
  ofAccount: number
}

export class RunningCounts {
  readonly byWorkflow = new Map<string, number>()
  readonly byAccount = new Map<string, number>()

  static async read(tx: Transaction): Promise<RunningCounts> {
    const counts = new RunningCounts()
    for (const row of await tx.all(tx.statements.countRunning, [])) counts.add(row, row.count)
    return counts
  }

  add({ workflow_id, account_id }: { workflow_id: string; account_id: string }, count = 1): void {
    this.byWorkflow.set(workflow_id, (this.byWorkflow.get(workflow_id) ?? 0) + count)
    this.byAccount.set(account_id, this.ofAccount(account_id) + count)
  }

  ofAccount(accountId: string): number {
    return this.byAccount.get(accountId) ?? 0
  }

  /** Whether the workflow or the account of the run has reached its limit. */
  isAtLimit(run: { workflow_id: string; account_id: string }, limits: ConcurrencyLimits): boolean {
    const ofWorkflow = this.byWorkflow.get(run.workflow_id) ?? 0
    return ofWorkflow >= limits.ofWorkflow(run.workflow_id) || this.ofAccount(run.account_id) >= limits.ofAccount
  }

  copy(): RunningCounts {
    const copy = new RunningCounts()
    for (const [id, count] of this.byWorkflow) copy.byWorkflow.set(id, count)
    for (const [id, count] of this.byAccount) copy.byAccount.set(id, count)
    return copy
  }
}
