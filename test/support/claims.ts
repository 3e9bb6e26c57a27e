/** Lets tests act as a worker on the queue, with a clock that they control. */
import type { Claim, Claimable } from '../../src/domain/queue/attempts.ts'
import type { ClaimableWorkflows } from '../../src/domain/queue/claim.ts'
import type { RunQueue } from '../../src/domain/queue/run-queue.ts'
import { eventsAfter } from '../../src/domain/queue/runs.sql.ts'
import type { Workflows } from '../../src/domain/workflows/workflows.ts'
import type { Domain } from './domain.ts'

export const leaseSeconds = 15
export const noRetry = { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 2 }

/** The result of a failed attempt. */
export const failedAttempt = {
  kind: 'failed',
  reason: 'workflowFailed',
  error: { name: 'Error', message: 'The server did not respond.' },
} as const

/** Creates a clock that advances only on request. It does not determine when runs are created. */
export function createManualClock() {
  let at = Date.now()
  return {
    now: () => at,
    advance: (seconds: number) => {
      at += seconds * 1000
    },
    /** @param time a timestamp of a run: what is due then is due now. */
    set: (time: number | null) => {
      at = time ?? Number.NaN
    },
  }
}

/** For a worker that claims runs of these workflows only, whatever is deployed. */
export function claimableOf(workflows: Workflows | readonly Claimable[]): ClaimableWorkflows {
  const listed = 'list' in workflows ? workflows.list() : workflows
  const hasLimits = listed.some((workflow) => workflow.concurrency !== undefined)
  return {
    find: (_, workflowId) => listed.find(({ id }) => id === workflowId),
    scopeOf: ({ workflow_id }) => workflow_id,
    hasLimits,
    load: async () => {},
  }
}

export async function claimAll(queue: RunQueue, { workflows }: Domain, slots = 100): Promise<Claim[]> {
  return queue.claim('worker', claimableOf(workflows), slots, leaseSeconds)
}

export async function claimOne(domain: Domain, workerId = 'worker'): Promise<Claim> {
  const [claim] = await domain.queue.claim(workerId, claimableOf(domain.workflows), 1, leaseSeconds)
  if (!claim) throw new Error('No run was claimed.')
  return claim
}

export async function statusHistory({ store }: Domain, runId: string) {
  const events = await eventsAfter(store.read, runId, 0, 1000)
  return events.filter(({ type }) => type === 'status').map(({ data }) => [data.status, data.attempt, data.reason])
}
