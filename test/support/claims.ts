/** What a worker does with the queue, for tests that are one; and a clock that they move. */
import type { Claim } from '../../src/domain/runs/attempts.ts'
import type { RunQueue } from '../../src/domain/runs/run-queue.ts'
import { eventsAfter } from '../../src/domain/runs/runs.sql.ts'
import type { Domain } from './domain.ts'

export const leaseSeconds = 15
export const noRetry = { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 2 }

/** How an attempt failed. */
export const failedAttempt = {
  kind: 'failed',
  reason: 'workflowFailed',
  error: { name: 'Error', message: 'The far side did not answer.' },
} as const

/** A clock that stands still until it is told to go on. Runs do not ask it when they were created. */
export function createManualClock() {
  let at = Date.now()
  return {
    now: () => at,
    advance: (seconds: number) => {
      at += seconds * 1000
    },
    /** @param moment as in a run: what is due then, however long it took to get there. */
    set: (moment: number | null) => {
      at = moment ?? Number.NaN
    },
  }
}

export async function claimAll(queue: RunQueue, { workflows }: Domain, slots = 100): Promise<Claim[]> {
  return queue.claim('worker', workflows.list(), slots, leaseSeconds)
}

export async function claimOne(domain: Domain, workerId = 'worker'): Promise<Claim> {
  const [claim] = await domain.queue.claim(workerId, domain.workflows.list(), 1, leaseSeconds)
  if (!claim) throw new Error('There was no run to claim.')
  return claim
}

export async function statusHistory({ store }: Domain, runId: string) {
  const events = await eventsAfter(store.read, runId, 0, 1000)
  return events.filter(({ type }) => type === 'status').map(({ data }) => [data.status, data.attempt, data.reason])
}
