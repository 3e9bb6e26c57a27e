/** Outcomes of attempts, from what a worker reports, with secrets masked. */
import { jsonDepthMax } from '../../contract/i-json.ts'
import { toAttemptError } from '../runs/reported-values.ts'
import type { FailureReason, Outcome } from '../runs/run-state.ts'
import type { Workflows } from '../workflows/workflows.ts'

export interface ReportedError {
  name: string
  message: string
  stack?: string | null
  step?: string | null
}

export type Redact = <Value>(value: Value) => Value

/** @param error masked before it is truncated here, which could leave a part of a secret. */
export function toFailure(reason: FailureReason, error: ReportedError): Outcome {
  return { kind: 'failed', reason, error: toAttemptError(error) }
}

/**
 * The outcome of an attempt that returned: a failure if the output does not match its schema.
 *
 * @param redact masks secrets, and in errors also cookies, which an output may contain.
 */
export function toSuccess(
  output: unknown,
  workflows: Workflows,
  workflowId: string,
  redact: { output: Redact; error: Redact },
): Outcome {
  const invalid = (message: string) => toFailure('outputInvalid', redact.error({ name: 'OutputInvalid', message }))
  try {
    checkDepth(output)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return invalid(error.message)
  }
  const checked = workflows.checkOutput(workflowId, output)
  if ('masked' in checked) return { kind: 'succeeded', output: redact.output(checked.masked) }
  const errors = checked.errors.map(({ pointer, detail }) => `${pointer || 'the output'} ${detail}`).join('; ')
  return invalid(`The output does not match its schema: ${errors}`)
}

/** @throws {RangeError} that says which limit the output exceeds. */
function checkDepth(output: unknown): void {
  if (isDeeper(output, jsonDepthMax)) {
    throw new RangeError(
      `The output is nested more than ${jsonDepthMax} levels deep: flatten it, or store it as an artifact.`,
    )
  }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  for (const name in value) if (isDeeper((value as Record<string, unknown>)[name], levels - 1)) return true
  return false
}
