/** Who is told, after the commit, what has become of runs: whoever counts them. */
import type { RunReason, RunStatus } from './run-state.ts'

export interface FinishedRun {
  workflowId: string
  status: RunStatus
  reason: RunReason | null
  /** From the start of its first attempt; `undefined` when it had none. */
  seconds: number | undefined
}

/** Told of what this process did itself. It must not throw. */
export interface RunObserver {
  finished(run: FinishedRun): void
  /** Workers were silent past their leases on so many runs. */
  leasesExpired(count: number): void
}

export function finishedRun(
  row: { workflow_id: string; started_at: number | null },
  { status, reason }: { status: RunStatus; reason: RunReason | null },
  at: number,
): FinishedRun {
  const seconds = row.started_at === null ? undefined : Math.max(0, at - row.started_at) / 1000
  return { workflowId: row.workflow_id, status, reason, seconds }
}
