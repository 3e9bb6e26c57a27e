/** Which failures are worth another try, which calls may have one, and after how long. */
import type { RetryRule } from './operation.ts'
import type { Limits } from './options.ts'
import { type Problem, problemTypes } from './problem.ts'

/** Statuses that say: later perhaps. A 500 is a fault that another try would meet again. */
const transientStatuses = [408, 429, 502, 503, 504]

export function isTransient({ status, type }: Problem): boolean {
  return transientStatuses.includes(status) || type === problemTypes.networkFailure || type === problemTypes.timeout
}

/** Whether the call may be sent again without doing what it does twice. */
export function mayRepeat(rule: RetryRule, problem: Problem): boolean {
  if (rule !== 'ifRefused') return isTransient(problem)
  // A 503 may follow a commit whose fsync failed. A gateway's 429 says nothing of the tries before it.
  return problem.status === 429 && problem.type !== 'about:blank'
}

/** The seconds before the next try, when `failures` have come one after the other; `undefined` when it would be too long. */
export function waitSeconds(
  failures: number,
  problem: Problem,
  { retryWaitSeconds, retryWaitSecondsMax }: Limits,
): number | undefined {
  const { retryAfterSeconds } = problem
  // At random, because all whom one failure has hit would come back at the same moment.
  if (retryAfterSeconds !== undefined && retryAfterSeconds > 0) {
    if (retryAfterSeconds > retryWaitSecondsMax) return undefined
    return retryAfterSeconds + (Math.random() * retryWaitSeconds) / 2
  }
  const longest = Math.min(retryWaitSeconds * 2 ** (failures - 1), retryWaitSecondsMax)
  return longest * (1 - Math.random() / 2)
}
