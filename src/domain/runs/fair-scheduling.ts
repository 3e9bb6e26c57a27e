/**
 * Fair scheduling: decides which run is claimed next. The account with the fewest running runs goes first, and among
 * equals the one served least recently, so that thousands of runs of one account do not delay another's. Within an
 * account, the highest priority goes first, then the oldest run.
 */
import { type QueueHead, queueHeadsMax } from '../../storage/run-statements.ts'
import type { Transaction } from '../../storage/store.ts'
import type { Claimable } from './attempts.ts'
import { type ConcurrencyLimits, RunningCounts } from './concurrency-limits.ts'

interface Claimer {
  workflows: readonly Claimable[]
  /** How many runs of one account may run at the same time; 0 for no limit. */
  accountConcurrency: number
  /** The account served last. */
  after: string
}

type Candidate = QueueHead & { workflow: Claimable }

/** A snapshot of queue heads and running runs, kept up to date by the changes that its user reports. */
export class FairSchedule {
  readonly heads: QueueHead[]
  readonly #running: RunningCounts
  readonly #claimer: Claimer
  readonly #workflows: ReadonlyMap<string, Claimable>
  readonly #limits: ConcurrencyLimits
  /** The order of accounts, least recently served first. */
  readonly #places = new Map<string, number>()
  /** The account after which the next snapshot starts; `undefined` when this one has all queue heads. */
  readonly continueAfter: string | undefined

  private constructor(heads: QueueHead[], running: RunningCounts, claimer: Claimer, continueAfter?: string) {
    this.heads = heads
    this.#running = running
    this.#claimer = claimer
    this.continueAfter = continueAfter
    this.#workflows = new Map(claimer.workflows.map((workflow) => [workflow.id, workflow]))
    this.#limits = {
      ofWorkflow: (id) => this.#workflows.get(id)?.concurrencyLimit ?? Number.POSITIVE_INFINITY,
      ofAccount: claimer.accountConcurrency || Number.POSITIVE_INFINITY,
    }
    for (const { account_id } of heads) {
      if (!this.#places.has(account_id)) this.#places.set(account_id, this.#places.size)
    }
  }

  /** Reads at most `queueHeadsMax` queue heads, starting after the account served last, and wraps around. */
  static async read(tx: Transaction, claimer: Claimer, now: number): Promise<FairSchedule> {
    const { after } = claimer
    const heads = await tx.all(tx.statements.queueHeads, [now, after, now, now])
    let continueAfter = lastCompleteAccount(heads)
    if (after !== '' && heads.length < queueHeadsMax) {
      const fromStart = await tx.all(tx.statements.queueHeads, [now, '', now, now])
      heads.push(...fromStart.filter(({ account_id }) => account_id <= after))
      const last = lastCompleteAccount(fromStart)
      if (last !== undefined && last < after) continueAfter = last
    }
    const running = heads.length > 0 ? await RunningCounts.read(tx) : new RunningCounts()
    return new FairSchedule(heads, running, claimer, continueAfter)
  }

  copy(): FairSchedule {
    return new FairSchedule([...this.heads], this.#running.copy(), this.#claimer)
  }

  /** The run to claim next; `undefined` when every queue head is at a limit or of an unknown workflow. */
  next(): Candidate | undefined {
    let best: Candidate | undefined
    for (const head of this.heads) {
      const workflow = this.#workflows.get(head.workflow_id)
      if (!workflow || this.#running.isAtLimit(head, this.#limits)) continue
      if (!best || this.#isBefore(head, best)) best = { ...head, workflow }
    }
    return best
  }

  /** The head was claimed: its account goes to the end, and the run behind it becomes a head. */
  async claimed(tx: Transaction, head: QueueHead, now: number): Promise<void> {
    this.#running.add(head)
    this.#places.set(head.account_id, Math.max(...this.#places.values()) + 1)
    await this.skip(tx, head, now)
  }

  /** The head cannot be claimed now: the run behind it becomes a head. */
  async skip(tx: Transaction, head: QueueHead, now: number): Promise<void> {
    this.drop(head)
    const [next] = await tx.all(tx.statements.queueHead, [now, head.account_id, head.workflow_id])
    if (next) this.heads.push(next)
  }

  /** Other workers have taken every run of the head's account and workflow. */
  drop(head: QueueHead): void {
    const index = this.heads.findIndex(({ id }) => id === head.id)
    if (index >= 0) this.heads.splice(index, 1)
  }

  #isBefore(a: QueueHead, b: QueueHead): boolean {
    if (a.account_id === b.account_id) return a.priority > b.priority || (a.priority === b.priority && a.id < b.id)
    const difference = this.#running.ofAccount(a.account_id) - this.#running.ofAccount(b.account_id)
    if (difference !== 0) return difference < 0
    return (this.#places.get(a.account_id) ?? 0) < (this.#places.get(b.account_id) ?? 0)
  }
}

/** The last account whose heads were all read, or the only one; `undefined` when no account was cut off. */
function lastCompleteAccount(heads: readonly QueueHead[]): string | undefined {
  if (heads.length < queueHeadsMax) return undefined
  const cut = heads.at(-1)?.account_id
  return heads.findLast(({ account_id }) => account_id !== cut)?.account_id ?? cut
}
