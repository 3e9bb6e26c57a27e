/** Counts the waiting and running runs of all accounts, and finds the oldest ready runs, for metrics. */
import type { Transaction } from '../../storage/store.ts'
import { type ConcurrencyLimits, RunningCounts, throttleId } from '../queue/limits.ts'
import type { WaitingFor } from '../runs/run.ts'
import type { Throttle } from '../workflows/workflow-limits.ts'

export interface QueueDepth {
  waiting: { workflowId: string; waitingFor: WaitingFor; count: number }[]
  running: { workflowId: string; count: number }[]
  /** For each workflow with ready runs, when the one that was queued first became available. */
  oldest: { workflowId: string; since: number }[]
}

/** What queued runs are compared with. */
export interface QueueLimits extends ConcurrencyLimits {
  /** The rate of the run's current workflow. */
  throttleOf?(run: { workflow_id: string; account_id: string }): Throttle | undefined
  /** Whether runs that wait for their group wait for a concurrency limit, and not for a rate alone. */
  isLimitedPerKey?(workflowId: string): boolean
}

/** Not a snapshot: a run that changes its status between two counts may be in both or in neither. */
export async function queueDepth(tx: Transaction, limits: QueueLimits): Promise<QueueDepth> {
  const ready = await tx.all(tx.statements.countReady, [])
  const running = await RunningCounts.read(tx)
  const delayed = await tx.all(tx.statements.countDelayed, [])
  const waitingForGroup = await tx.all(tx.statements.countWaitingForGroup, [])
  const waitingForContext = await tx.all(tx.statements.countWaitingForContext, [])
  const waiting = await tx.all(tx.statements.countWaiting, [])
  const throttles = new Set(
    limits.throttleOf ? (await tx.all(tx.statements.listThrottles, [])).map(({ id }) => id) : [],
  )
  const isThrottled = (each: (typeof ready)[number]) => {
    const throttle = throttles.size === 0 ? undefined : limits.throttleOf?.(each)
    return throttle !== undefined && throttle.per !== 'key' && throttles.has(throttleId(throttle, each, null))
  }
  const {
    concurrencyLimit = [],
    throttle = [],
    worker = [],
  } = Object.groupBy(ready, (each) =>
    running.isAtLimit(each, limits) ? 'concurrencyLimit' : isThrottled(each) ? 'throttle' : 'worker',
  )
  const isLimited = ({ workflow_id }: { workflow_id: string }) => limits.isLimitedPerKey?.(workflow_id) ?? true
  return {
    waiting: [
      ...sumByWorkflow('concurrencyLimit', [...concurrencyLimit, ...waitingForGroup.filter(isLimited)]),
      ...sumByWorkflow('throttle', [...throttle, ...waitingForGroup.filter((each) => !isLimited(each))]),
      ...sumByWorkflow('worker', worker),
      ...sumByWorkflow('delay', delayed),
      ...sumByWorkflow('browserContext', waitingForContext),
      ...waiting.map(({ workflow_id, waiting_for, count }) => {
        return { workflowId: workflow_id, waitingFor: waiting_for, count }
      }),
    ],
    running: [...running.byWorkflow].map(([workflowId, count]) => ({ workflowId, count })),
    oldest: await findOldest(tx, ready),
  }
}

/** One look-up for each workflow, since no index has the time at which a run became available. */
async function findOldest(tx: Transaction, ready: readonly { workflow_id: string; first_id: string }[]) {
  const oldest: QueueDepth['oldest'] = []
  for (const [workflowId, counts] of Map.groupBy(ready, ({ workflow_id }) => workflow_id)) {
    const [firstId = ''] = counts.map(({ first_id }) => first_id).sort()
    const [row] = await tx.all(tx.statements.availability, [firstId])
    if (row) oldest.push({ workflowId, since: Math.max(row.available_at, row.queued_at ?? 0) })
  }
  return oldest
}

function sumByWorkflow(waitingFor: WaitingFor, counts: readonly { workflow_id: string; count: number }[]) {
  const sums = new Map<string, number>()
  for (const { workflow_id, count } of counts) sums.set(workflow_id, (sums.get(workflow_id) ?? 0) + count)
  return [...sums].map(([workflowId, count]) => ({ workflowId, waitingFor, count }))
}
