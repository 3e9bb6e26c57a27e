/** The outcome of an attempt: from its last event, with secrets masked, or because it was interrupted. */
import { type Redact, type ReportedError, toFailure, toSuccess } from '../../domain/queue/outcomes.ts'
import type { FailureReason, Outcome } from '../../domain/runs/run-state.ts'
import type { Workflows } from '../../domain/workflows/workflows.ts'
import type { AttemptMessage } from '../executors/messages.ts'

export type LastEvent =
  | Extract<AttemptMessage, { type: 'returned' | 'threw' | 'suspended' | 'signedOut' }>
  | { type: 'exited'; name: string; message: string; stack: string | null }

/**
 * @param redact masks secrets, and in errors also cookies, which an output may contain.
 * @param runningStep the step that the process was executing when it ended.
 */
export function toOutcome(
  event: Exclude<LastEvent, { type: 'suspended' | 'signedOut' }>,
  workflows: Workflows,
  workflowId: string,
  redact: { output: Redact; error: Redact },
  runningStep: string | null,
): Outcome {
  const failed = (reason: FailureReason, error: ReportedError) => toFailure(reason, redact.error(error))
  if (event.type === 'threw') {
    const { reason, name, message, stack, step } = event
    return failed(reason, { name, message, stack, step })
  }
  if (event.type === 'exited') {
    const { name, message, stack } = event
    return failed('workflowExited', { name, message, stack, step: runningStep })
  }
  return toSuccess(JSON.parse(event.output), workflows, workflowId, redact)
}

/** Why an attempt is ended from outside. */
export type Interruption = 'timeLimit' | 'cancelled' | 'workerStopped' | 'leaseLost'

export const abortMessages: Record<Interruption, string> = {
  timeLimit: "The attempt exceeded the workflow's time limit.",
  cancelled: 'The run was cancelled.',
  workerStopped: 'The worker is stopping.',
  leaseLost: "The worker lost the run's lease.",
}

/** @param step the step that was running, with secrets masked. */
export function interruptedOutcome(
  why: Interruption,
  limitSeconds: number,
  step: string | null,
): Outcome | 'leaseLost' {
  if (why === 'leaseLost') return 'leaseLost'
  return why === 'timeLimit' ? { kind: 'timedOut', limitSeconds, step } : { kind: why }
}
