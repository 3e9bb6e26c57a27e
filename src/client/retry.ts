/** Which failures are transient, which calls may be retried, and how long to wait. */
import type { RetryRule } from './operation.ts'
import type { Limits } from './options.ts'
import { type Problem, problemTypes } from './problem.ts'

/** Not 500: a defect of the service would fail the same way again. */
const transientStatuses = [408, 429, 502, 503, 504]

export function isTransient({ status, type }: Problem): boolean {
  return transientStatuses.includes(status) || type === problemTypes.networkFailure || type === problemTypes.timeout
}

/** Whether the call can be sent again without executing it twice. */
export function mayRetry(rule: RetryRule, problem: Problem): boolean {
  if (rule !== 'ifRefused') return isTransient(problem)
  // A 503 may follow a commit whose fsync failed. A gateway's 429 says nothing about earlier tries.
  return problem.status === 429 && problem.type !== 'about:blank'
}

/** Wait before the next try, after `failures` in a row; `undefined` if `Retry-After` exceeds the limit. */
export function retryDelay(
  failures: number,
  { retryAfterSeconds }: Problem,
  { retryWaitSeconds, retryWaitSecondsMax }: Limits,
): number | undefined {
  // Jitter keeps clients that failed at the same moment from retrying at the same moment.
  if (retryAfterSeconds !== undefined && retryAfterSeconds > 0) {
    if (retryAfterSeconds > retryWaitSecondsMax) return undefined
    return retryAfterSeconds + (Math.random() * retryWaitSeconds) / 2
  }
  const longest = Math.min(retryWaitSeconds * 2 ** (failures - 1), retryWaitSecondsMax)
  return longest * (1 - Math.random() / 2)
}
