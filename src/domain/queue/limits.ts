/** Running runs by workflow and by account, compared with their concurrency limits. */

import type { PurgeTarget } from '../../storage/purge-target.ts'
import { inList } from '../../storage/statement-values.ts'
import { type Statement, statement, type Transaction } from '../../storage/store.ts'
import type { ThrottlesTable } from '../../storage/tables/run-tables.ts'
import { type GroupMember, groupOf } from '../runs/run.ts'
import { type Concurrency, isStoredRate, type Throttle } from '../workflows/workflow-limits.ts'
import type { Claimable } from './attempts.ts'

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

// Runs that share a limit or a rate per key: those of an account and workflow with the same concurrency key. A claim that
// finds the group at its limit or rate puts its run aside, out of the queue's index, so that the runs behind it do not
// wait for it. A run of the group that ends makes the next one ready again, and so does the time at which the rate permits it.

/** Whether the workflow has a limit or a rate per key. */
export function isLimitedByKey(workflow: Pick<Claimable, 'concurrency' | 'throttle'>): boolean {
  return workflow.concurrency?.per === 'key' || workflow.throttle?.per === 'key'
}

/**
 * How many more runs of the group may start. Claims of groups are exclusive, so no other process starts one at the same
 * time.
 */
export async function groupCapacity(tx: Transaction, group: string | null, { limit, per }: Concurrency) {
  if (group === null || per !== 'key') return Number.POSITIVE_INFINITY
  const [row] = await tx.all(tx.statements.countRunningOfGroup, [group])
  return limit - (row?.count ?? 0)
}

/**
 * Resumes the next run of each of the runs' groups. Called when they leave the queue without a count of their group: they
 * may be those that were to start next, and nothing would resume another while the group has a running run.
 */
export async function resumeNextOfGroups(
  tx: Transaction,
  runs: readonly { concurrency_group: string | null }[],
): Promise<void> {
  const groups = new Set(runs.flatMap(({ concurrency_group: group }) => group ?? []))
  // In the same order in all processes, which prevents deadlocks.
  for (const group of [...groups].sort()) await tx.all(tx.statements.resumeNextOfGroup, [group])
}

/** Groups that are examined at once. The next ones follow a second later. */
const examinedGroupsMax = 500
/** Each resumed group costs a statement. */
const resumedGroupsMax = 100

/** The current definition of a workflow; `undefined` when it is not deployed any more. */
type FindWorkflow = (run: GroupMember) => Claimable | undefined

/**
 * Finds groups whose next run was not resumed although it may start. The run that was to start before it was cancelled,
 * a claim put it aside while another run of the group ended, or a deployment has raised the limit or the rate.
 *
 * @param after the last group of the page before; '' to begin with the first group.
 */
export async function findStartableGroups(
  tx: Transaction,
  findWorkflow: FindWorkflow,
  after: string,
): Promise<{ groups: string[]; last: string }> {
  const waiting = await tx.all(tx.statements.waitingGroups, [after, examinedGroupsMax])
  const startable = waiting.filter((group) => {
    const [account_id = '', workflow_id = ''] = group.id.split(' ')
    const workflow = findWorkflow({ account_id, workflow_id })
    const isThrottled = isStoredRate(group, workflow?.throttle)
    const concurrency = workflow?.concurrency
    // Without a definition, the limit is unknown, but not below 1.
    const limit = !workflow ? 1 : concurrency?.per === 'key' ? concurrency.limit : Number.POSITIVE_INFINITY
    return group.running < limit && !isThrottled
  })
  const resumed = startable.slice(0, resumedGroupsMax).map(({ id }) => id)
  const isCut = startable.length > resumed.length
  const last = isCut ? resumed.at(-1) : waiting.length === examinedGroupsMax ? waiting.at(-1)?.id : ''
  return { groups: resumed, last: last ?? '' }
}

export async function resumeGroups(tx: Transaction, groups: readonly string[]): Promise<void> {
  for (const group of groups) await tx.all(tx.statements.resumeNextOfGroup, [group])
}

// Throttles limit how many attempts of a workflow start within any period, over all processes. Each start is a row,
// numbered within its throttle: with a limit of 10, the next start waits until the tenth-last one is a period ago.
// Starts are counted and stored by the claim, in its transaction.

interface ThrottledRun {
  account_id: string
  workflow_id: string
}

/** Identifies the starts that are counted together. @param group the run's concurrency group, for a rate per key. */
export function throttleId(
  { per }: Pick<Throttle, 'per'>,
  run: ThrottledRun,
  group: string | null,
  scopeOf: ScopeOf = ({ workflow_id }) => workflow_id,
): string {
  if (per === 'key') return group ?? groupOf(run, undefined)
  return per === 'account' ? `${run.account_id} ${run.workflow_id}` : scopeOf(run)
}

/** Whether no run may start yet. A row of another rate, from before a deployment, says nothing. */
export function isAtRate(row: ThrottlesTable | undefined, throttle: Throttle, now: number): boolean {
  return row !== undefined && isStoredRate(row, throttle) && row.permits_at > now
}

/** Reads the rows of these throttles by id. Only a throttle at its rate has one. */
export async function findThrottles(tx: Transaction, ids: Iterable<string>): Promise<Map<string, ThrottlesTable>> {
  const distinct = [...new Set(ids)]
  if (distinct.length === 0) return new Map()
  const { marks, values } = inList(distinct)
  const rows = await tx.all<ThrottlesTable>(`SELECT * FROM throttles WHERE id IN (${marks})`, values)
  return new Map(rows.map((row) => [row.id, row]))
}

/** Whether a run may start now. If not, stores when the next one may. Claims of throttled runs are exclusive. */
export async function permitsStart(tx: Transaction, id: string, throttle: Throttle, now: number): Promise<boolean> {
  const count = await countStarts(tx, id)
  return storePermit(tx, id, throttle, count, now)
}

/** Counts a start; returns whether another run may start now. */
export async function recordStart(tx: Transaction, id: string, throttle: Throttle, now: number): Promise<boolean> {
  const number = (await countStarts(tx, id)) + 1
  await tx.all(tx.statements.insertStart, [id, number, now, now + throttle.periodSeconds * 1000])
  await tx.all(tx.statements.deleteStarts, [id, number - throttle.limit])
  return storePermit(tx, id, throttle, number, now)
}

async function countStarts(tx: Transaction, id: string): Promise<number> {
  const [latest] = await tx.all(tx.statements.latestStart, [id])
  return latest?.number ?? 0
}

async function storePermit(
  tx: Transaction,
  id: string,
  { limit, periodSeconds }: Throttle,
  count: number,
  now: number,
): Promise<boolean> {
  const [start] = count < limit ? [] : await tx.all(tx.statements.findStart, [id, count - limit + 1])
  const permitsAt = start ? start.started_at + periodSeconds * 1000 : 0
  if (permitsAt <= now) await tx.all(tx.statements.deleteThrottle, [id])
  else await tx.all(tx.statements.setThrottle, [id, limit, periodSeconds, permitsAt])
  return permitsAt <= now
}

/**
 * Resumes the next run of each group whose throttle permits a start now. Runs of other throttles stayed ready: the next
 * claim starts them.
 */
export async function resumePermitted(tx: Transaction, now: number): Promise<void> {
  const permitted = await tx.all(tx.statements.deletePermitting, [now, now])
  // In the same order in all processes, which prevents deadlocks.
  for (const id of permitted.map((row) => row.id).sort()) await tx.all(tx.statements.resumeNextOfGroup, [id])
}

const purgedMax = 1000
/** Starts are purged this long after they count, since most are deleted by later ones. */
const purgeDelayMilliseconds = 60 * 60 * 1000

const findExpiredStart: Statement<{ throttle_id: string }, [until: number]> = statement(
  'SELECT throttle_id FROM throttle_starts WHERE expires_at <= ? ORDER BY expires_at LIMIT 1',
)

const deleteExpiredStarts: Statement<object, [until: number]> = statement(`DELETE FROM throttle_starts
  WHERE (throttle_id, number) IN (SELECT throttle_id, number FROM throttle_starts
    WHERE expires_at <= ? ORDER BY expires_at LIMIT ${purgedMax})`)

export function expiredStarts(now: () => number): PurgeTarget {
  const until = () => now() - purgeDelayMilliseconds
  return {
    concurrent: true,
    next: async (tx) => (await tx.all(findExpiredStart, [until()]))[0]?.throttle_id,
    async remove(tx) {
      await tx.all(deleteExpiredStarts, [until()])
    },
  }
}
