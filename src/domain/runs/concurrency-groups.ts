/**
 * Runs that share a limit per key: those of an account and workflow with the same concurrency key. A claim that finds
 * the group at its limit puts its run aside, out of the queue's index, so that the runs behind it are not held up. A run
 * of the group that ends makes the next one ready again.
 */
import type { Transaction } from '../../storage/store.ts'
import { type Concurrency, concurrencyOf } from '../workflows/concurrency.ts'
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

export function isLimitedByKey(workflow: Pick<Claimable, 'concurrency' | 'concurrencyLimit'>): boolean {
  return concurrencyOf(workflow)?.per === 'key'
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

/** Resumes the next run of each group that has none running: the run that would have resumed it is gone. */
export async function resumeForIdleGroups(tx: Transaction): Promise<void> {
  for (const { id } of await tx.all(tx.statements.idleGroups, [])) {
    await tx.all(tx.statements.resumeNextOfGroup, [id])
  }
}
