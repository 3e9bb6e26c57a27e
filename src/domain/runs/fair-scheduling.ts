/**
 * Fair scheduling: decides which runs are claimed next. Accounts are served in the order of their ids, so that
 * thousands of runs of one account do not delay another's. `AccountOrder` chooses among the next accounts. Within an
 * account, the highest priority goes first, then the oldest run.
 */
import { type QueueHead, queueHeadsMax } from '../../storage/queue-heads.ts'
import type { ClaimedQueue } from '../../storage/run-statements.ts'
import type { Transaction } from '../../storage/store.ts'
import { concurrencyOf, limitPer } from '../workflows/concurrency.ts'
import { AccountOrder, type OwnAttempts, type ServedAccounts } from './account-order.ts'
import type { Claim, Claimable } from './attempts.ts'
import { isLimitedByKey } from './concurrency-groups.ts'
import { type ConcurrencyLimits, RunningCounts, type ScopeOf } from './concurrency-limits.ts'
import { findThrottles, isAtRate, throttleId } from './throttles.ts'

/** The workflows whose runs a worker claims. */
export interface ClaimableWorkflows {
  /** The definition whose concurrency limit and throttle apply; `undefined` if no run of this workflow can be executed. */
  find(accountId: string, workflowId: string): Claimable | undefined
  /** Identifies the runs that share the workflow's concurrency limit or throttle. */
  readonly scopeOf: ScopeOf
  /** Whether any of them has a concurrency limit. */
  readonly hasLimits: boolean
  /** Loads definitions that `find` does not have. */
  load(heads: readonly QueueHead[]): Promise<void>
}

export interface Claimer {
  workflows: ClaimableWorkflows
  /** How many runs of one account may run at the same time; 0 for no limit. */
  accountConcurrency: number
  own?: OwnAttempts | undefined
  served: ServedAccounts
}

export function hasLimits({ workflows, accountConcurrency }: Claimer): boolean {
  return accountConcurrency > 0 || workflows.hasLimits
}

/** Runs to claim: the first of an account and workflow. */
export interface PickedRuns extends ClaimedQueue {
  head: QueueHead
  workflow: Claimable
}

/** A snapshot of the queue heads of the accounts whose turn is next. */
export class FairSchedule {
  readonly #heads: readonly QueueHead[]
  readonly #running: RunningCounts
  readonly #claimer: Claimer
  readonly #limits: ConcurrencyLimits
  readonly #picks = new Map<QueueHead, PickedRuns>()
  #picked = 0
  /** Heads that can still be picked. */
  readonly #candidates: Set<QueueHead>
  readonly #order: AccountOrder
  /** The account after which the next snapshot starts; `undefined` when this one has all queue heads. */
  readonly continueAfter: string | undefined
  /** The account that was picked last. */
  lastAccount: string | undefined

  private constructor(
    heads: QueueHead[],
    throttled: ReadonlySet<QueueHead>,
    running: RunningCounts,
    claimer: Claimer,
    accountsMax: number,
  ) {
    this.#heads = heads
    this.#candidates = new Set(heads.filter((head) => !throttled.has(head)))
    this.#running = running
    this.#claimer = claimer
    this.#limits = {
      ofWorkflow: (run) => limitPer('workflow', claimer.workflows.find(run.account_id, run.workflow_id)),
      ofWorkflowInAccount: (run) => limitPer('account', claimer.workflows.find(run.account_id, run.workflow_id)),
      ofAccount: claimer.accountConcurrency || Number.POSITIVE_INFINITY,
    }
    const accounts = [...new Set(heads.map(({ account_id }) => account_id))]
    const { served, own } = claimer
    this.#order = new AccountOrder(accounts, { running, served, own })
    // The heads of the last account may be cut off.
    if (heads.length === queueHeadsMax) this.continueAfter = accounts.at(-2) ?? accounts.at(-1)
    else if (accounts.length === accountsMax) this.continueAfter = accounts.at(-1)
  }

  /** Reads the queue heads of the next accounts after one, `accountsMax` at most. */
  static async read(
    tx: Transaction,
    claimer: Claimer,
    { after, accountsMax, now }: { after: string; accountsMax: number; now: number },
  ): Promise<FairSchedule> {
    const heads = await tx.all(tx.statements.queueHeads, [after, accountsMax, now])
    const isCounted = heads.length > 0 && hasLimits(claimer)
    const running = isCounted ? await RunningCounts.read(tx, claimer.workflows.scopeOf) : new RunningCounts()
    if (!isCounted) for (const { account_id, running: count } of heads) running.byAccount.set(account_id, count)
    claimer.served.see(running, heads, now)
    const throttled = await findThrottledHeads(tx, heads, claimer.workflows, now)
    return new FairSchedule(heads, throttled, running, claimer, accountsMax)
  }

  /** Outside of a transaction: what it reads never changes. */
  async loadWorkflows(): Promise<void> {
    await this.#claimer.workflows.load(this.#heads)
  }

  /**
   * Picks up to `slots` runs that can be claimed within the limits, those of earlier calls included. Picks at most one
   * run with a browser context, a limit per key or a throttle of each account: which one is next depends on the run
   * behind it, which is not in the snapshot.
   */
  pick(slots: number): PickedRuns[] {
    const picks = this.#picks
    const candidates = this.#candidates
    this.#order.refresh([...picks.values()].flatMap(({ accountId, countMax }) => Array(countMax).fill(accountId)))
    for (; this.#picked < slots; this.#picked += 1) {
      const best = this.#best(candidates)
      if (!best) break
      const { head, workflow } = best
      const { account_id: accountId, workflow_id: workflowId } = head
      const pick = picks.get(head) ?? { head, workflow, accountId, workflowId, countMax: 0 }
      pick.countMax += 1
      picks.set(head, pick)
      this.lastAccount = accountId
      this.#running.add(head)
      this.#order.pick(accountId)
      const others = [...candidates].filter((each) => each.account_id === accountId)
      if (others.length > 1 || head.has_context || isLimitedByKey(workflow) || workflow.throttle)
        for (const each of others) candidates.delete(each)
    }
    return [...picks.values()]
  }

  /** Whether claiming the run must be exclusive: it is counted, or its browser context is leased. */
  isExclusive({ head, workflow }: Pick<PickedRuns, 'head' | 'workflow'>): boolean {
    const isCounted = concurrencyOf(workflow) !== null || workflow.throttle !== undefined
    return head.has_context === 1 || isCounted || this.#claimer.accountConcurrency > 0
  }

  get scopeOf(): ScopeOf {
    return this.#claimer.workflows.scopeOf
  }

  /** Whether any run of the snapshot must be claimed exclusively. */
  hasExclusive(): boolean {
    return this.#heads.some((head) => {
      const workflow = this.#claimer.workflows.find(head.account_id, head.workflow_id)
      return workflow !== undefined && this.isExclusive({ head, workflow })
    })
  }

  /** Whether there may be more runs to claim after these claims of the picks. */
  hasMore(picks: readonly PickedRuns[], claims: readonly Claim[]): boolean {
    if (this.continueAfter !== undefined || this.#heads.length > picks.length) return true
    return picks.some(({ accountId, workflowId, workflow, countMax }) => {
      const { length } = claims.filter((each) => each.accountId === accountId && each.workflowId === workflowId)
      // Runs with a browser context among them were left out.
      return length === countMax || workflow.usesBrowser
    })
  }

  #best(heads: Iterable<QueueHead>): { head: QueueHead; workflow: Claimable } | undefined {
    let best: { head: QueueHead; workflow: Claimable } | undefined
    for (const head of heads) {
      const workflow = this.#claimer.workflows.find(head.account_id, head.workflow_id)
      if (!workflow || this.#running.isAtLimit(head, this.#limits)) continue
      if (!best || this.#isBefore(head, best.head)) best = { head, workflow }
    }
    return best
  }

  #isBefore(a: QueueHead, b: QueueHead): boolean {
    if (a.account_id !== b.account_id) return this.#order.isBefore(a.account_id, b.account_id)
    return a.priority > b.priority || (a.priority === b.priority && a.id < b.id)
  }
}

/** Queue heads whose throttle per account or workflow is at its rate. A rate per key applies to single runs. */
async function findThrottledHeads(
  tx: Transaction,
  heads: readonly QueueHead[],
  workflows: ClaimableWorkflows,
  now: number,
): Promise<Set<QueueHead>> {
  const throttled = heads.flatMap((head) => {
    const { throttle } = workflows.find(head.account_id, head.workflow_id) ?? {}
    if (!throttle || throttle.per === 'key') return []
    return [{ head, throttle, id: throttleId(throttle, head, null, workflows.scopeOf) }]
  })
  if (throttled.length === 0) return new Set()
  const rows = await findThrottles(
    tx,
    throttled.map(({ id }) => id),
  )
  const waiting = throttled.filter(({ throttle, id }) => isAtRate(rows.get(id), throttle, now))
  return new Set(waiting.map(({ head }) => head))
}
