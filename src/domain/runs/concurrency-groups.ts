/**
 * Runs that share a limit or a rate per key: those of an account and workflow with the same concurrency key. A claim that
 * finds the group at its limit or rate puts its run aside, out of the queue's index, so that the runs behind it are not
 * held up. A run of the group that ends makes the next one ready again, and so does the time at which the rate permits it.
 */
import type { Transaction } from '../../storage/store.ts'
import { type Concurrency, concurrencyOf } from '../workflows/concurrency.ts'
import { isStoredRate } from '../workflows/throttle.ts'
import type { Claimable } from './attempts.ts'

interface GroupMember {
  account_id: string
  workflow_id: string
}

/** @param key `undefined` for runs without a key, which share a limit too. */
export function groupOf({ account_id, workflow_id }: GroupMember, key: string | undefined): string {
  return `${account_id} ${workflow_id} ${key ?? ''}`
}

/** `null` for a run without a key. */
export function keyOf(run: GroupMember & { concurrency_group: string | null }): string | null {
  return run.concurrency_group?.slice(groupOf(run, '').length) || null
}

/** Whether the workflow has a limit or a rate per key. */
export function isLimitedByKey(workflow: Pick<Claimable, 'concurrency' | 'concurrencyLimit' | 'throttle'>): boolean {
  return concurrencyOf(workflow)?.per === 'key' || workflow.throttle?.per === 'key'
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
export const examinedGroupsMax = 500
/** Each resumed group costs a statement. */
const resumedGroupsMax = 100

/** The current definition of a workflow; `undefined` when it is not deployed any more. */
export type FindWorkflow = (run: GroupMember) => Claimable | undefined

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
    const concurrency = workflow && concurrencyOf(workflow)
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
