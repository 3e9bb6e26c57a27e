/**
 * Whose run is started next. Accounts take turns: the one with the fewest running runs first, and among equals the one
 * whose turn is longest ago, so that one account's thousands do not keep another's waiting. Within an account the highest
 * priority goes first, then the oldest.
 */
import type { Transaction } from '../../storage/store.ts'
import type { Claimable } from './claim.ts'
import { countRunning, type Running, runningOf } from './runs.sql.ts'

/** The first run of an account and a workflow. */
export interface QueueHead {
  id: string
  account_id: string
  workflow_id: string
  priority: number
  /** `null` where it is handed out without a job. */
  job_id: string | null
  browser_context_id: string | null
}

/** One that has not started in time is not started any more, even before it is marked as expired. */
const isReady = `status = 'queued' AND delayed = 0 AND waits_for_context = 0
  AND (expires_at IS NULL OR expires_at > ? OR attempts > 0)`
const inOrder = 'ORDER BY account_id, workflow_id, priority DESC, id LIMIT 1'

/** How many are compared for one decision; whoever is not among them is at the next, which begins behind these. */
const headsMax = 500

/** The last account that is there with all of its workflows, where there may be more heads. */
function lastOf(heads: readonly QueueHead[]): string | undefined {
  if (heads.length < headsMax) return undefined
  const cut = heads.at(-1)?.account_id
  return heads.findLast(({ account_id }) => account_id !== cut)?.account_id ?? cut
}

const uuidLength = 36
/** A run's id, its account and its workflow in one value, so that one look into an index finds all of them. */
const placeOf = `SELECT id || account_id || workflow_id FROM runs WHERE ${isReady}`
const [idIn, accountIn, workflowIn] = [
  `substr(place, 1, ${uuidLength})`,
  `substr(place, ${uuidLength + 1}, ${uuidLength})`,
  `substr(place, ${2 * uuidLength + 1})`,
]
const columnOf = (name: string) => `(SELECT ${name} FROM runs WHERE id = ${idIn}) AS ${name}`

/**
 * One or two looks into the index for each head: with GROUP BY, both stores read past every run that waits, and SQLite
 * does with `(account_id, workflow_id) > (…)` too. Nothing is joined: where many runs have come since PostgreSQL counted
 * its rows, it takes the table for a small one, and reads all of it.
 */
const headsSql = `WITH RECURSIVE heads (number, place) AS (
  SELECT 1, (${placeOf} AND account_id > ? ${inOrder})
  UNION ALL
  SELECT number + 1, COALESCE(
      (${placeOf} AND account_id = ${accountIn} AND workflow_id > ${workflowIn} ${inOrder}),
      (${placeOf} AND account_id > ${accountIn} ${inOrder}))
    FROM heads WHERE place IS NOT NULL AND number < ${headsMax})
  SELECT ${idIn} AS id, ${accountIn} AS account_id, ${workflowIn} AS workflow_id,
      ${columnOf('priority')}, ${columnOf('job_id')}, ${columnOf('browser_context_id')}
    FROM heads WHERE place IS NOT NULL`

const headSql = `SELECT id, account_id, workflow_id, priority, job_id, browser_context_id FROM runs
  WHERE ${isReady} AND account_id = ? AND workflow_id = ? ORDER BY priority DESC, id LIMIT 1`

/** Who claims, and what of. */
export interface Claimer {
  workflows: readonly Claimable[]
  /** How many runs of one account may run at the same time; 0 for any number. */
  accountConcurrency: number
  /** The account that had the last turn. */
  after: string
}

export class FairSchedule {
  readonly #heads: QueueHead[]
  readonly #running: Running
  readonly #workflows: ReadonlyMap<string, Claimable>
  readonly #accountConcurrency: number
  /** By account, those who are next first. */
  readonly #places = new Map<string, number>()
  /** The account behind which there may be more; `undefined` when all are among these. */
  readonly last: string | undefined

  private constructor(heads: QueueHead[], running: Running, { workflows, accountConcurrency }: Claimer, last?: string) {
    this.#heads = heads
    this.last = last
    this.#running = running
    this.#workflows = new Map(workflows.map((workflow) => [workflow.id, workflow]))
    this.#accountConcurrency = accountConcurrency
    for (const { account_id } of heads)
      if (!this.#places.has(account_id)) this.#places.set(account_id, this.#places.size)
  }

  static async read(tx: Transaction, claimer: Claimer, now: number): Promise<FairSchedule> {
    const { after } = claimer
    const heads = await tx.all<QueueHead>(headsSql, [now, after, now, now])
    let last = lastOf(heads)
    // From the beginning again, up to where it began.
    if (after !== '' && heads.length < headsMax) {
      const others = await tx.all<QueueHead>(headsSql, [now, '', now, now])
      heads.push(...others.filter(({ account_id }) => account_id <= after))
      const lastOfOthers = lastOf(others)
      if (lastOfOthers !== undefined && lastOfOthers < after) last = lastOfOthers
    }
    const running = heads.length > 0 ? await countRunning(tx) : new Map()
    return new FairSchedule(heads, running, claimer, last)
  }

  copy(): FairSchedule {
    const running: Running = new Map([...this.#running].map(([workflowId, counts]) => [workflowId, new Map(counts)]))
    const claimer = {
      workflows: [...this.#workflows.values()],
      accountConcurrency: this.#accountConcurrency,
      after: '',
    }
    return new FairSchedule([...this.#heads], running, claimer)
  }

  get heads(): readonly QueueHead[] {
    return this.#heads
  }

  /** The run to be started next; `undefined` when there is none below the limits. */
  next(): (QueueHead & { workflow: Claimable }) | undefined {
    let best: (QueueHead & { workflow: Claimable }) | undefined
    for (const head of this.#heads) {
      const workflow = this.#workflows.get(head.workflow_id)
      if (!workflow || this.#isAtLimit(head, workflow)) continue
      if (!best || this.#isBefore(head, best)) best = { ...head, workflow }
    }
    return best
  }

  /** The account has had its turn; what is left of its runs takes part in the next ones. */
  async served(tx: Transaction, head: QueueHead, now: number): Promise<void> {
    const ofWorkflow = this.#running.get(head.workflow_id) ?? new Map<string, number>()
    ofWorkflow.set(head.account_id, (ofWorkflow.get(head.account_id) ?? 0) + 1)
    this.#running.set(head.workflow_id, ofWorkflow)
    this.#places.set(head.account_id, Math.max(...this.#places.values()) + 1)
    await this.passOver(tx, head, now)
  }

  /** The run is not to be started now; the one behind it may be. */
  async passOver(tx: Transaction, head: QueueHead, now: number): Promise<void> {
    this.drop(head)
    const [next] = await tx.all<QueueHead>(headSql, [now, head.account_id, head.workflow_id])
    if (next) this.#heads.push(next)
  }

  /** Others have taken all that there was. */
  drop(head: QueueHead): void {
    const index = this.#heads.findIndex(({ id }) => id === head.id)
    if (index >= 0) this.#heads.splice(index, 1)
  }

  #isAtLimit({ account_id }: QueueHead, { id, concurrencyLimit }: Claimable): boolean {
    if (concurrencyLimit !== null && runningOf(this.#running, { workflowId: id }) >= concurrencyLimit) return true
    return this.#accountConcurrency > 0 && this.#runningOf(account_id) >= this.#accountConcurrency
  }

  #isBefore(a: QueueHead, b: QueueHead): boolean {
    if (a.account_id === b.account_id) return a.priority > b.priority || (a.priority === b.priority && a.id < b.id)
    const difference = this.#runningOf(a.account_id) - this.#runningOf(b.account_id)
    if (difference !== 0) return difference < 0
    return (this.#places.get(a.account_id) ?? 0) < (this.#places.get(b.account_id) ?? 0)
  }

  #runningOf(accountId: string): number {
    return runningOf(this.#running, { accountId })
  }
}
