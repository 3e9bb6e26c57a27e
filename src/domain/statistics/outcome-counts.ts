/** The outcomes of runs, and how many runs have each. */
import type { RunStatus } from '../runs/run-state.ts'

export const outcomes = ['succeeded', 'failed', 'timedOut', 'cancelled', 'expired'] as const satisfies RunStatus[]
export type OutcomeCounts = Record<(typeof outcomes)[number], number>

export function noRuns(): OutcomeCounts {
  return { succeeded: 0, failed: 0, timedOut: 0, cancelled: 0, expired: 0 }
}

export function addCounts(counts: OutcomeCounts, others: OutcomeCounts): void {
  for (const outcome of outcomes) counts[outcome] += others[outcome]
}

export function sumCounts(counts: OutcomeCounts): number {
  return outcomes.reduce((sum, outcome) => sum + counts[outcome], 0)
}
