/** The state machine of runs: statuses, transitions, and what follows an attempt. */

/** The transitions that the contract's RunStatus describes. */
export const transitions = {
  queued: ['running', 'cancelled', 'expired'],
  running: ['succeeded', 'failed', 'timedOut', 'cancelled', 'queued', 'waiting'],
  waiting: ['queued', 'cancelled', 'expired'],
  succeeded: [],
  failed: [],
  timedOut: [],
  cancelled: [],
  expired: [],
} as const satisfies Record<string, readonly string[]>

export type RunStatus = keyof typeof transitions

/** In the store only: a deleted run that is being erased. It is in no list, and is not found. */
export const deletedStatus = 'deleted'

/** In the store only: the reason of a queued run whose worker could not get its deployment. `waitingFor` shows it. */
export const deploymentUnavailable = 'deploymentUnavailable'

export type FailureReason = 'workflowFailed' | 'nonRetryable' | 'workflowExited' | 'outputInvalid' | 'contextNotSaved'

export type RunReason =
  | FailureReason
  | 'attemptFailed'
  | 'workerStopped'
  | 'workerLost'
  | 'timeLimit'
  | 'cancelRequested'
  | 'notStartedInTime'
  | 'needsSignIn'
  | 'waiting'

export function isFinal(status: RunStatus): boolean {
  return transitions[status].length === 0
}

export type Outcome =
  | { kind: 'succeeded'; output: unknown }
  | { kind: 'failed'; reason: FailureReason; error: RunError & Partial<AttemptError> }
  /** `step` is the one that was running. */
  | { kind: 'timedOut'; limitSeconds?: number; step?: string | null }
  | { kind: 'cancelled' }
  /** The worker is stopping and returns the run to the queue. */
  | { kind: 'workerStopped' }
  /** The lease expired. */
  | { kind: 'workerLost' }
  /** The run waits, and leaves its worker. */
  | ({ kind: 'waiting' } & Suspension)
  /** The run has no session: it waits until its browser context is signed in. */
  | ({ kind: 'signedOut' } & SignedOut)

export interface Suspension {
  /** For how long this part has executed. */
  executedMilliseconds: number
  /** The waits that the run waits for. */
  names: readonly string[]
}

export interface SignedOut {
  executedMilliseconds: number
  /** The number of the browser context's version that the attempt could start with at the earliest. */
  contextVersion: number | undefined
  /** How the attempt fails if its browser context has no sign-in. */
  error: RunError & Partial<AttemptError>
}

export interface RunError {
  name: string
  message: string
}

/** Why an attempt did not succeed. */
export interface AttemptError extends RunError {
  /** The calls of the workflow's own source, a line each. */
  stack: string | null
  /** The step that failed, or that was running. */
  step: string | null
}

export interface RetryPolicy {
  maxAttempts: number
  backoffSeconds: number
  backoffFactor: number
}

/** What decides whether another attempt follows. */
export interface RetryState {
  cancelRequested: boolean
  /** Failed attempts before this one. */
  failures: number
  /** Lost workers before this one. */
  losses: number
  retry: RetryPolicy
}

export type NextState =
  | { status: 'waiting'; reason: RunReason }
  | { status: 'queued'; reason: RunReason; delaySeconds: number }
  | { status: 'succeeded' | 'failed' | 'timedOut' | 'cancelled'; reason: RunReason | null }

/** For outcomes that the retry policy does not apply to, such as a lost worker. */
export const noRetry: RetryPolicy = { maxAttempts: 1, backoffSeconds: 0, backoffFactor: 1 }

/** A run that loses this many workers probably crashes them, and fails. */
export const lossesMax = 5

/** A year. */
export const backoffSecondsMax = 365 * 24 * 60 * 60

/** Seconds before the attempt that follows one more failure than this. */
export function delayOf({ backoffSeconds, backoffFactor }: RetryPolicy, failures: number): number {
  return backoffSeconds === 0 ? 0 : Math.min(backoffSecondsMax, backoffSeconds * backoffFactor ** failures)
}

/** A cancelled run ends as cancelled, whatever the outcome of its attempt. */
export function nextState(outcome: Outcome, { cancelRequested, failures, losses, retry }: RetryState): NextState {
  if (cancelRequested || outcome.kind === 'cancelled') return { status: 'cancelled', reason: 'cancelRequested' }
  switch (outcome.kind) {
    case 'succeeded':
      return { status: 'succeeded', reason: null }
    case 'timedOut':
      return { status: 'timedOut', reason: 'timeLimit' }
    case 'workerStopped':
      return { status: 'queued', reason: 'workerStopped', delaySeconds: 0 }
    case 'waiting':
    case 'signedOut':
      return { status: 'waiting', reason: 'waiting' }
    case 'workerLost':
      if (losses + 1 >= lossesMax) return { status: 'failed', reason: 'workerLost' }
      return { status: 'queued', reason: 'workerLost', delaySeconds: 0 }
    case 'failed': {
      if (failures + 1 >= retry.maxAttempts || outcome.reason === 'nonRetryable')
        return { status: 'failed', reason: outcome.reason }
      return { status: 'queued', reason: 'attemptFailed', delaySeconds: delayOf(retry, failures) }
    }
  }
}

/** A run has found that it is signed out. */
export interface SignedOutRun {
  /** How long the session has lasted, if a run signed in before and this one is the first that has found its end. */
  sessionSeconds: number | undefined
}

export interface EndedSignIn {
  kind: 'check' | 'signIn' | 'byHand'
  status: RunStatus
}

export interface FinishedRun {
  workflowId: string
  status: RunStatus
  reason: RunReason | null
  /** Since its first attempt started, or the execution of its last one if it has waited; `undefined` for a run without one. */
  seconds: number | undefined
}

/** An attempt that failed, timed out or lost its worker. */
export interface FailedAttempt {
  runId: string
  workflowId: string
  attempt: number
  /** With secrets masked. */
  errorName: string
}

/** Called after the commit, for changes made by this process. Must not throw. */
export interface RunObserver {
  finished(run: FinishedRun): void
  attemptFailed?(attempt: FailedAttempt): void
  leasesExpired(count: number): void
  /** Called when this process gets or loses the lease on the store's maintenance. */
  maintains?(isOwner: boolean): void
  signedOut?(run: SignedOutRun): void
  signInEnded?(signIn: EndedSignIn): void
}

export function toFinishedRun(
  row: { workflow_id: string; started_at: number | null },
  { status, reason }: { status: RunStatus; reason: RunReason | null },
  at: number,
): FinishedRun {
  const seconds = row.started_at === null ? undefined : Math.max(0, at - row.started_at) / 1000
  return { workflowId: row.workflow_id, status, reason, seconds }
}
