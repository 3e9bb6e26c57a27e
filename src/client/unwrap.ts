/** For callers who would rather catch an error than look at it. */
import type { Answer } from './operation.ts'
import { ProblemError } from './problem.ts'

/**
 * The data of an answer.
 *
 * @example
 * const run = unwrap(await client.getRun({ params: { path: { runId } } }))
 *
 * @throws {ProblemError} when the answer has an error instead.
 */
export function unwrap<Data>(answer: Answer<Data>): Data {
  if (answer.error) throw new ProblemError(answer.error)
  return answer.data
}
