/** Claims the runs that fair scheduling has picked, in the caller's transaction. */
import type { ClaimTerms } from '../../storage/run-statements.ts'
import type { Transaction } from '../../storage/store.ts'
import { type Claim, startSingly, toClaim } from './attempts.ts'
import { isLimitedByKey, resumeNextOfGroups } from './concurrency-groups.ts'
import type { FairSchedule, PickedRuns } from './fair-scheduling.ts'

export interface Batch {
  claims: Claim[]
  /** Runs that now wait for their browser contexts, concurrency groups or throttles. */
  skipped: number
  more: boolean
  /** The account after which the next snapshot starts; `undefined` to start where this one did. */
  lastAccount: string | undefined
}

/** Skipping a run takes several statements. After this many, a transaction ends, so that others can write. */
export const skippedMax = 100

export async function claimPicks(
  tx: Transaction,
  schedule: FairSchedule,
  picks: readonly PickedRuns[],
  terms: ClaimTerms,
): Promise<Batch> {
  const { workerId } = terms
  const claims: Claim[] = []
  const isPlain = ({ head, workflow }: PickedRuns) =>
    head.has_context === 0 && !isLimitedByKey(workflow) && !workflow.throttle
  const plain = picks.filter(isPlain)
  const rows = plain.length > 0 ? await tx.statements.claimRuns(tx, plain, terms) : []
  for (const pick of plain) {
    const claimed = rows.filter((row) => row.account_id === pick.accountId && row.workflow_id === pick.workflowId)
    claimed.sort((a, b) => b.priority - a.priority || (a.id < b.id ? -1 : 1))
    claims.push(...claimed.map((row) => toClaim(row, workerId)))
  }
  await resumeNextOfGroups(tx, rows)
  let skipped = 0
  for (const pick of picks) {
    if (isPlain(pick)) continue
    const claim = await startSingly(tx, pick, terms, schedule.scopeOf)
    if (claim) claims.push(claim)
    else skipped += 1
  }
  return { claims, skipped, more: schedule.hasMore(picks, claims), lastAccount: schedule.lastAccount }
}
