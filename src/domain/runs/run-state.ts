/** The states of a run and the moves between them, as the document's RunStatus has them. */

export const transitions = {
  queued: ['running', 'cancelled', 'expired'],
  running: ['succeeded', 'failed', 'timedOut', 'cancelled', 'queued'],
  succeeded: [],
  failed: [],
  timedOut: [],
  cancelled: [],
  expired: [],
} as const satisfies Record<string, readonly string[]>

export type RunStatus = keyof typeof transitions

export type RunReason =
  | 'attemptFailed'
  | 'workerStopped'
  | 'workerLost'
  | 'workflowFailed'
  | 'workflowExited'
  | 'outputInvalid'
  | 'contextNotSaved'
  | 'timeLimit'
  | 'cancelRequested'
  | 'notStartedInTime'

export function isFinal(status: RunStatus): boolean {
  return transitions[status].length === 0
}

/** How an attempt ended. */
export type Outcome =
  | { kind: 'succeeded'; output: unknown }
  | { kind: 'failed'; reason: FailureReason; error: RunError }
  | { kind: 'timedOut' }
  | { kind: 'cancelled' }
  /** The worker stops and hands the run back. */
  | { kind: 'workerStopped' }
  /** The worker let its lease run out. */
  | { kind: 'workerLost' }

/** Why an attempt counts as failed. */
export type FailureReason = 'workflowFailed' | 'workflowExited' | 'outputInvalid' | 'contextNotSaved'

export interface RunError {
  name: string
  message: string
}

/** What the decision after an attempt depends on. */
export interface AttemptHistory {
  cancelRequested: boolean
  /** Failed attempts before this one. */
  failures: number
  /** Lost workers before this one. */
  losses: number
  retry: { maxAttempts: number; backoffSeconds: number; backoffFactor: number }
}

/** What becomes of a run after an attempt. */
export type Next =
  | { status: 'queued'; reason: RunReason; delaySeconds: number }
  | { status: 'succeeded' | 'failed' | 'timedOut' | 'cancelled'; reason: RunReason | null }

/** For outcomes that no retry policy has a say in: a run that was lost or handed back is queued again, whatever it is. */
export const noRetry = { maxAttempts: 1, backoffSeconds: 0, backoffFactor: 1 }

/** A run whose workers die this often is likely what kills them. */
export const lossesMax = 5

/** Decides what becomes of a run after an attempt. A cancelled run ends as cancelled, whatever its attempt did. */
export function nextAfter(outcome: Outcome, { cancelRequested, failures, losses, retry }: AttemptHistory): Next {
  if (cancelRequested || outcome.kind === 'cancelled') return { status: 'cancelled', reason: 'cancelRequested' }
  switch (outcome.kind) {
    case 'succeeded':
      return { status: 'succeeded', reason: null }
    case 'timedOut':
      return { status: 'timedOut', reason: 'timeLimit' }
    case 'workerStopped':
      return { status: 'queued', reason: 'workerStopped', delaySeconds: 0 }
    case 'workerLost':
      if (losses + 1 >= lossesMax) return { status: 'failed', reason: 'workerLost' }
      return { status: 'queued', reason: 'workerLost', delaySeconds: 0 }
    case 'failed': {
      if (failures + 1 >= retry.maxAttempts) return { status: 'failed', reason: outcome.reason }
      const delaySeconds = retry.backoffSeconds * retry.backoffFactor ** failures
      return { status: 'queued', reason: 'attemptFailed', delaySeconds }
    }
  }
}
