/** The outcome of an attempt: from its last event, with secrets masked, or because it was interrupted. */
import { jsonDepthMax } from '../../contract/i-json.ts'
import { toAttemptError } from '../../domain/runs/reported-values.ts'
import type { Outcome } from '../../domain/runs/run-state.ts'
import type { Workflows } from '../../domain/workflows/workflows.ts'
import type { AttemptMessage } from '../executors/messages.ts'

interface ReportedError {
  name: string
  message: string
  stack?: string | null
  step?: string | null
}

type Redact = <Value>(value: Value) => Value

export type LastEvent =
  | Extract<AttemptMessage, { type: 'returned' | 'threw' | 'suspended' }>
  | { type: 'exited'; name: string; message: string; stack: string | null }

/**
 * @param redact masks secrets, and in errors also cookies, which an output may contain.
 * @param runningStep the step that the process was executing when it ended.
 */
export function toOutcome(
  event: Exclude<LastEvent, { type: 'suspended' }>,
  workflows: Workflows,
  workflowId: string,
  redact: { output: Redact; error: Redact },
  runningStep: string | null,
): Outcome {
  const failed = (reason: 'workflowFailed' | 'workflowExited' | 'outputInvalid', error: ReportedError) => {
    // Masked before it is truncated, which could leave a part of a secret.
    return { kind: 'failed', reason, error: toAttemptError(redact.error(error)) } as const
  }
  if (event.type === 'threw') {
    const { reason, name, message, stack, step } = event
    return failed(reason, { name, message, stack, step })
  }
  if (event.type === 'exited') {
    const { name, message, stack } = event
    return failed('workflowExited', { name, message, stack, step: runningStep })
  }
  try {
    const checked = workflows.checkOutput(workflowId, parseOutput(event.output))
    if ('masked' in checked) return { kind: 'succeeded', output: redact.output(checked.masked) }
    const errors = checked.errors.map(({ pointer, detail }) => `${pointer || 'the output'} ${detail}`).join('; ')
    return failed('outputInvalid', outputInvalid(`The output does not match its schema: ${errors}`))
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return failed('outputInvalid', outputInvalid(error.message))
  }
}

function outputInvalid(message: string): ReportedError {
  return { name: 'OutputInvalid', message }
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

/** Parses the output of a workflow. @throws {RangeError} that says which limit it exceeds. */
function parseOutput(json: string): unknown {
  const output: unknown = JSON.parse(json)
  if (isDeeper(output, jsonDepthMax)) {
    throw new RangeError(
      `The output is nested more than ${jsonDepthMax} levels deep: flatten it, or store it as an artifact.`,
    )
  }
  return output
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  for (const name in value) if (isDeeper((value as Record<string, unknown>)[name], levels - 1)) return true
  return false
}
