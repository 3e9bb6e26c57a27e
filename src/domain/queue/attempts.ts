/**
 * Starts and completes attempts, and leases and releases their browser contexts, always in the caller's transaction. A
 * run whose browser context is leased by another run leaves the queue until the context is released, so claims skip it.
 */
import {
  type ClaimedRun,
  type InsertedRun,
  insertedRunColumns,
  type NewEvent,
  type NewLease,
  tagRows,
} from '../../storage/runs/run-statements.ts'
import { deleteWaits, expireAt } from '../../storage/runs/sign-in-statements.ts'
import type { Transaction } from '../../storage/store.ts'
import type { RunsTable, SignInKind } from '../../storage/tables/run-tables.ts'
import { describeVersions, findValues, waitReason } from '../account-values/account-values.sql.ts'
import type { ValueWait } from '../account-values/declared-values.ts'
import {
  acquireContextLease,
  type ContextLease,
  isContextLeased,
  type LeasedContext,
  recordContextUse,
  releaseContextLease,
} from '../browser-contexts/context-lease.ts'
import { setCheckOutcome } from '../browser-contexts/sign-ins.sql.ts'
import type { FileOfRun } from '../files/file-of-run.ts'
import { toRunError } from '../runs/reported-values.ts'
import {
  attemptsOf,
  type DeploymentProblem,
  type PersistContext,
  type Report,
  toDeploymentProblem,
} from '../runs/run.ts'
import {
  deploymentUnavailable,
  type EndedSignIn,
  type FailedAttempt,
  type FinishedRun,
  type NextState,
  nextState,
  type Outcome,
  type RetryPolicy,
  type SignedOutRun,
  toFinishedRun,
} from '../runs/run-state.ts'
import type { DeclaredValues } from '../workflows/workflow.ts'
import type { Concurrency, Throttle } from '../workflows/workflow-limits.ts'
import { addAttemptEnd, attemptError, executedUntil, insertErrorWords } from './attempt-history.ts'
import type { ClaimCandidate } from './claim.ts'
import type { NewRun } from './enqueue-batcher.ts'
import { groupCapacity, permitsStart, recordStart, type ScopeOf, throttleId } from './limits.ts'
import { appendEvents, appendStatus, statusReport, toNewEvent } from './runs.sql.ts'
import {
  retryPolicyOf,
  type SignInDependencies,
  signInAfterCheck,
  startMilliseconds,
  suspendUntilSignedIn,
} from './sign-in-runs.ts'
import {
  type KnownWaits,
  reachWaits,
  type StoredWaits,
  suspendRun,
  type WaitDependencies,
  type WaitRequest,
} from './waits.ts'

/** What claiming a workflow's runs depends on. */
export interface Claimable {
  id: string
  concurrency?: Concurrency | undefined
  throttle?: Throttle | undefined
  /** Whether its runs may have a browser context. */
  usesBrowser: boolean
  /** Versions whose runs the claim leaves to other workers. */
  otherVersions?: readonly string[]
}

/** A worker's lease on one attempt of a run. */
export interface Lease {
  runId: string
  workerId: string
  /** The attempt's number, which is the fencing token. */
  attempt: number
}

/** A started attempt, with what its worker needs. */
export interface Claim extends Lease {
  accountId: string
  workflowId: string
  /** The deployment to which the run is pinned; `null` in tests without deployments. */
  deploymentId: string | null
  variables: Record<string, unknown>
  /** Encrypted. */
  secrets: Uint8Array | null
  /** Results of the steps that earlier attempts finished, encrypted. */
  steps: { name: string; value: Uint8Array }[]
  /** Of the secrets and settings of the account, when the run was claimed. */
  valuesVersion?: number | undefined
  browserContextId: string | null
  persistContext: PersistContext
  /** Allows the run to store a new version of its browser context; `null` when it only reads it or has none. */
  contextLease: ContextLease | null
  /** The number of the browser context's version, which the attempt has at the earliest. */
  contextVersion?: number | undefined
  /** Whether a run signs the browser context in when this one finds that it is signed out. */
  hasSignIn: boolean
  /** If the run signs its browser context in, or checks whether it is signed in. */
  signsIn: SignInKind | null
  /** When the run could first start. */
  availableAt: number
  /** The attempt's number for callers. The parts of an attempt that waited have the same. */
  number: number
  /** Whether the run has reached a wait, so that its steps and waits are repeated in their order. */
  hasWaits: boolean
  /** For how long the earlier parts of the attempt have executed. */
  executedMilliseconds: number
  /** By `performance.now()`, when the lease ends unless it is renewed, if the service has told a worker outside of it. */
  leaseEnd?: number
  /** What is left of the time limit, if the service tells it to a worker outside of it. */
  timeLeftSeconds?: number
  /** What the run gets of its account, if the service tells it to a worker outside of it. */
  declared?: DeclaredValues
  /** The files in its variables, if the service names them to a worker outside of it. */
  files?: readonly FileOfRun[]
  /** The run that called this one. */
  parentRunId: string | null
  /** The W3C `traceparent` of the request that queued the run. */
  traceContext: string | null
}

/**
 * Starts an attempt of a run that has a browser context, a concurrency group or a throttle. Returns `undefined` if the
 * run was cancelled or expired, or waits for its context, group or throttle. No other process may claim at the same time,
 * which keeps the runs of one context in order, a group within its limit, and starts within their rate.
 */
export async function startSingly(
  tx: Transaction,
  { head, workflow }: ClaimCandidate,
  newLease: NewLease,
  scopeOf: ScopeOf,
): Promise<Claim | undefined> {
  const { at, workerId, leaseExpiresAt } = newLease
  const [run] = await tx.all(tx.statements.findClaimable, [at, head.id])
  if (!run?.claimable) return undefined
  const { concurrency_group: group, browser_context_id: contextId } = run
  const { concurrency, throttle } = workflow
  // A run that goes on after a wait has started before.
  const throttled =
    throttle && run.continues === 0 ? { throttle, id: throttleId(throttle, head, group, scopeOf) } : undefined
  const capacity = concurrency ? await groupCapacity(tx, group, concurrency) : Number.POSITIVE_INFINITY
  if (capacity <= 0 || (throttled && !(await permitsStart(tx, throttled.id, throttled.throttle, at)))) {
    // Runs of a throttle per account or workflow stay ready: the next snapshot leaves out their queue heads.
    if (capacity <= 0 || throttled?.id === group) await tx.all(tx.statements.waitForGroup, [run.id])
    // It may have been resumed for its context, which another run can use now.
    if (contextId !== null) await tx.all(tx.statements.resumeNextForContext, [contextId])
    return undefined
  }
  const lease = await leaseContext(tx, run, at)
  if (lease === 'wait') {
    // It may have been resumed for its group; another run of the group can start now.
    if (group !== null) await tx.all(tx.statements.resumeNextOfGroup, [group])
    return undefined
  }
  const [row] = await tx.all(tx.statements.claimRun, [at, at, workerId, leaseExpiresAt, head.id])
  if (!row) throw new Error(`Run ${head.id} could not be claimed although it was locked.`)
  await appendStatus(tx, row, 'running', null, at)
  const permitsAnother = !throttled || (await recordStart(tx, throttled.id, throttled.throttle, at))
  // Another one may start too, for example after a deployment has raised the limit.
  if (group !== null && capacity > 1 && permitsAnother) await tx.all(tx.statements.resumeNextOfGroup, [group])
  const steps = row.attempts === 1 && row.rerun_of === null ? [] : await tx.all(tx.statements.findSteps, [row.id])
  return toClaim({ ...row, steps }, workerId, lease)
}

/** Inserts a run, and starts its first attempt. Nothing may limit its start, and it has no files and no results of steps. */
export async function insertStarted(tx: Transaction, run: NewRun, newLease: NewLease): Promise<Claim> {
  const { at, workerId, leaseExpiresAt } = newLease
  const row = { ...run, secrets: run.secrets?.() ?? null, status: 'running' as const }
  const values = [...insertedRunColumns.map((column) => row[column]), at, at, workerId, leaseExpiresAt]
  const [[inserted]] = await Promise.all([
    tx.all(tx.statements.insertStarted, values),
    tx.statements.insertTerms(tx, tagRows([row])),
  ])
  return toClaim({ ...row, ...inserted, ...firstAttempt, steps: [] }, workerId)
}

const firstAttempt = {
  attempts: 1,
  continuations: 0,
  continues: 0,
  executed_ms: 0,
  has_waits: 0,
  signs_in: null,
} as const

/** Leases the run's browser context; `null` if the run has none, `wait` when another run leases it. */
async function leaseContext(
  tx: Transaction,
  run: Pick<RunsTable, 'id' | 'browser_context_id' | 'persist_context'>,
  at: number,
): Promise<LeasedContext | null | 'wait'> {
  if (run.browser_context_id === null) return null
  if (run.persist_context === 'never') return (await recordContextUse(tx, run.browser_context_id, at)) ?? null
  const lease = await acquireContextLease(tx, run.browser_context_id, run.id, at)
  if (lease) return lease
  // If the context was deleted, do not wait for it: the run fails when it requests its browser.
  if (!(await isContextLeased(tx, run.browser_context_id))) return null
  await tx.all(tx.statements.waitForContext, [run.id])
  return 'wait'
}

type StartedRun = Pick<ClaimedRun, keyof InsertedRun | keyof typeof firstAttempt | 'values_version' | 'steps'>

export function toClaim(row: StartedRun, workerId: string, context: LeasedContext | null = null): Claim {
  return {
    runId: row.id,
    workerId,
    attempt: row.attempts,
    accountId: row.account_id,
    workflowId: row.workflow_id,
    deploymentId: row.deployment_id,
    variables: JSON.parse(row.variables),
    secrets: row.secrets,
    steps: row.steps,
    valuesVersion: row.values_version,
    browserContextId: row.browser_context_id,
    persistContext: (row.persist_context as PersistContext | null) ?? 'never',
    contextLease: context?.lease ?? null,
    contextVersion: context?.version,
    hasSignIn: context?.hasSignIn ?? false,
    signsIn: row.signs_in,
    availableAt: row.available_at ?? row.created_at,
    number: attemptsOf(row),
    hasWaits: row.has_waits === 1,
    executedMilliseconds: row.continues === 1 ? row.executed_ms : 0,
    parentRunId: row.parent_run_id,
    traceContext: row.trace_context,
  }
}

/** Stores the waits that a run has reached, and suspends it if the request says so and none of them has ended. */
export async function waitInAttempt(
  tx: Transaction,
  dependencies: WaitDependencies,
  row: RunsTable,
  request: WaitRequest & { known: KnownWaits },
  reports: readonly Report[],
  at: number,
): Promise<StoredWaits> {
  await recordProgress(tx, row.id, reports)
  const results = await reachWaits(tx, dependencies, row, request, reports, at)
  if (results.isSuspended) await resumeOthers(tx, row)
  return results
}

/** Appends reported events, and stores the last progress among them in the run. */
export async function recordReports(tx: Transaction, { runId }: Lease, reports: readonly Report[]): Promise<void> {
  await Promise.all([appendEvents(tx, runId, reports), recordProgress(tx, runId, reports)])
}

async function recordProgress(tx: Transaction, runId: string, reports: readonly Report[]): Promise<void> {
  const progress = lastProgress(reports)
  if (progress !== null) await tx.all(tx.statements.setProgress, [progress, runId])
}

/** The last progress among the reports, as it is stored in the run. */
function lastProgress(reports: readonly Report[]): string | null {
  const progress = reports.findLast(({ type }) => type === 'progress')
  return progress ? JSON.stringify({ percent: progress.data.percent, message: progress.data.message }) : null
}

export function nextStateOfRow(
  { cancel_requested, failures, losses, signs_in }: RunsTable,
  outcome: Outcome,
  retry: RetryPolicy,
): NextState {
  const policy = retryPolicyOf({ signs_in }, retry)
  return nextState(outcome, { cancelRequested: cancel_requested === 1, failures, losses, retry: policy })
}

/** What observers learn when an attempt has ended. */
export interface EndedAttempt {
  /** Unless it is queued again or waits. */
  finished: FinishedRun | undefined
  /** If it failed. */
  failed: FailedAttempt | undefined
  /** If it found no session. */
  signedOut?: SignedOutRun | undefined
  /** If it was the end of a run that signs in. */
  signIn?: EndedSignIn | undefined
}

/** Ends the attempt of a locked run: the run finishes, waits, or is queued again. */
export async function completeAttempt(
  tx: Transaction,
  row: RunsTable,
  given: Outcome,
  retry: RetryPolicy,
  at: number,
  signIns?: SignInDependencies,
): Promise<EndedAttempt> {
  const outcome = await withoutSession(tx, row, toRetried(row, given, retry), at, signIns)
  if ('sessionSeconds' in outcome) return { finished: undefined, failed: undefined, signedOut: outcome }
  const decided = nextStateOfRow(row, outcome, retry)
  if (decided.status === 'waiting' && outcome.kind === 'waiting' && (await suspendRun(tx, row, outcome, at))) {
    await resumeOthers(tx, row)
    return { finished: undefined, failed: undefined }
  }
  // A run that waits for nothing goes on at once.
  const next = decided.status === 'waiting' ? ({ ...decided, status: 'queued', delaySeconds: 0 } as const) : decided
  const isRetried = next.status === 'queued'
  const isDelayed = isRetried && next.delaySeconds > 0
  const hasOutput = next.status === 'succeeded' && outcome.kind === 'succeeded'
  const error = attemptError(outcome)
  const failure = outcome.kind === 'failed' ? JSON.stringify(toRunError(outcome.error)) : row.error
  await appendEvents(tx, row.id, [statusReport(attemptsOf(row), next.status, next.reason, at, error)])
  const [ended = row] = await tx.all(tx.statements.completeAttempt, [
    next.status,
    next.reason,
    row.failures + (outcome.kind === 'failed' ? 1 : 0),
    row.losses + (outcome.kind === 'workerLost' ? 1 : 0),
    isDelayed ? 1 : 0,
    isRetried ? null : at,
    isDelayed ? at + Math.round(next.delaySeconds * 1000) : row.available_at,
    hasOutput ? JSON.stringify(outcome.output) : row.output,
    hasOutput ? null : failure,
    next.status === 'succeeded' ? row.attempt_ends : await addAttemptEnd(tx, row, at),
    executedUntil(row, at, outcome.kind === 'workerLost'),
    row.id,
  ])
  if (failure !== null && (next.status === 'failed' || next.status === 'timedOut')) {
    await insertErrorWords(tx, { ...row, status: next.status }, JSON.parse(failure), error?.stack ?? null)
  }
  // Later attempts read the steps, and runs that repeat this one from a step.
  if (next.status === 'succeeded') await tx.all(tx.statements.deleteSteps, [row.id])
  const losesBrowser = outcome.kind === 'failed' || (isRetried && outcome.kind !== 'waiting')
  if (losesBrowser && row.signs_in !== null) await forgetProgress(tx, row)
  if (isRetried && row.signs_in !== null)
    await tx.all(expireAt, [at + Math.round(next.delaySeconds * 1000) + startMilliseconds, row.id])
  await resumeOthers(tx, row, !isRetried)
  if (given.kind === 'signedOut' && row.signs_in === 'check' && !isRetried && signIns)
    await signInAfterCheck(tx, signIns, row, given.contextVersion, at)
  const failed = error && {
    runId: row.id,
    workflowId: row.workflow_id,
    attempt: attemptsOf(row),
    errorName: error.name,
  }
  const signIn = isRetried || row.signs_in === null ? undefined : { kind: row.signs_in, status: next.status }
  return { finished: isRetried ? undefined : toFinishedRun(ended, next, at), failed: failed ?? undefined, signIn }
}

/** An attempt that found no session: suspended if one can sign in, and otherwise failed. What a check found is no failure. */
async function withoutSession(
  tx: Transaction,
  row: RunsTable,
  outcome: Outcome,
  at: number,
  signIns: SignInDependencies | undefined,
): Promise<Exclude<Outcome, { kind: 'signedOut' }> | SignedOutRun> {
  if (outcome.kind !== 'signedOut') return outcome
  if (row.cancel_requested === 1) return { kind: 'cancelled' }
  if (row.signs_in === 'check') {
    await tx.all(setCheckOutcome, ['signedOut', row.id])
    return { kind: 'succeeded', output: null }
  }
  const suspended = row.signs_in === null ? await suspendUntilSignedIn(tx, signIns, row, outcome, at) : undefined
  if (suspended) {
    // Unless a run signs in, another one may use the browser context now.
    const contextId = row.browser_context_id
    if (contextId !== null && !(await isContextLeased(tx, contextId)))
      await tx.all(tx.statements.resumeNextForContext, [contextId])
    await resumeOthers(tx, row)
    return suspended
  }
  return { kind: 'failed', reason: 'workflowFailed', error: outcome.error }
}

/** Another attempt to sign in has another browser, and codes count once: it repeats all steps and waits. */
async function forgetProgress(tx: Transaction, row: RunsTable): Promise<void> {
  await tx.all(tx.statements.deleteSteps, [row.id])
  if (row.has_waits === 1) await tx.all(deleteWaits, [row.id])
}

/** A slow site may be faster the next time, so a sign-in that reaches its time limit is retried. */
function toRetried(row: RunsTable, outcome: Outcome, retry: RetryPolicy): Outcome {
  const mayRetry = row.signs_in === 'signIn' && row.failures + 1 < retryPolicyOf(row, retry).maxAttempts
  const error = outcome.kind === 'timedOut' && mayRetry ? attemptError(outcome) : null
  return error ? { kind: 'failed', reason: 'workflowFailed', error } : outcome
}

/**
 * Releases the run's browser context, and resumes the next runs that wait for it and for its group. A run that signs in
 * keeps the context until it ends.
 */
async function resumeOthers(tx: Transaction, row: RunsTable, hasEnded = false): Promise<void> {
  const { browser_context_id: contextId } = row
  if (contextId !== null && (row.signs_in === null || hasEnded)) {
    const released = await releaseContextLease(tx, contextId, row.id)
    // The end of a run that signs in has released it.
    if (released || row.signs_in !== null) await tx.all(tx.statements.resumeNextForContext, [contextId])
  }
  if (row.concurrency_group !== null) await tx.all(tx.statements.resumeNextOfGroup, [row.concurrency_group])
}

/** Resumes the next run of each context that is free, and every run that waits for a deleted context. */
export async function resumeForFreeContexts(tx: Transaction): Promise<void> {
  const { freeContexts, resumeAllForContext, resumeNextForContext } = tx.statements
  for (const { id, deleted } of await tx.all(freeContexts, [])) {
    await tx.all(deleted ? resumeAllForContext : resumeNextForContext, [id])
  }
}

// Finishes attempts that succeeded, any number in one transaction.

/** A successful attempt to finish, and its last events. */
export interface Success {
  lease: Lease & Partial<Pick<Claim, 'number' | 'parentRunId'>>
  output: unknown
  reports: readonly Report[]
}

/**
 * Finishes runs whose attempts succeeded and that nothing else depends on: most runs. Returns `undefined` for others,
 * and for lost leases.
 */
export async function finishSuccesses(
  tx: Transaction,
  successes: readonly Success[],
  at: number,
): Promise<(FinishedRun | undefined)[]> {
  // Two attempts of a run may arrive together when the worker lost the lease of the first: one statement finishes a run
  // once, and the caller completes the other attempt by itself.
  const last = new Map(successes.map((success) => [success.lease.runId, success]))
  // In order, as all transactions lock runs, which prevents deadlocks.
  const sorted = [...last.values()].sort((a, b) => (a.lease.runId < b.lease.runId ? -1 : 1))
  const attempts = sorted.map(({ lease, output, reports }) => {
    const { runId: id, attempt, workerId, parentRunId } = lease
    const values = { finishedAt: at, output: JSON.stringify(output), progress: lastProgress(reports) }
    return { id, attempt, workerId, parentRunId, ...values }
  })
  const events = sorted.flatMap(({ lease, reports }): NewEvent[] =>
    [...reports, statusReport(lease.number ?? lease.attempt, 'succeeded', null, at)].map((each) =>
      toNewEvent(lease.runId, each),
    ),
  )
  const rows = await tx.statements.finishRuns(tx, attempts, events)
  const byId = new Map(rows.map((row) => [row.id, toFinishedRun(row, { status: 'succeeded', reason: null }, at)]))
  return successes.map((each) => (last.get(each.lease.runId) === each ? byId.get(each.lease.runId) : undefined))
}

// Returns a claimed run to the queue because its worker cannot get the run's deployment, or what the workflow declares.

/** A run is tried again after 1, 2, 4, … seconds, and at least this often. */
const delaySecondsMax = 300

/** @param row a locked run of a lease, which is not cancelled. */
export async function handBack(tx: Transaction, row: RunsTable, message: string, at: number): Promise<void> {
  await returnToQueue(tx, row, { reason: deploymentUnavailable, message }, at)
}

interface Return {
  reason: string
  message: string
  /** By default, it doubles with each return for the same reason. */
  delaySeconds?: number
}

async function returnToQueue(tx: Transaction, row: RunsTable, given: Return, at: number): Promise<void> {
  const { reason, message } = given
  const before = toDeploymentProblem(row)
  // Problems of another kind do not count.
  const count = ((before.reason ?? deploymentUnavailable) === reason ? before.count : 0) + 1
  const { delaySeconds = Math.min(delaySecondsMax, 2 ** Math.min(count - 1, 10)) } = given
  const problem: DeploymentProblem = { message, count, reason }
  await tx.all(tx.statements.returnToQueue, [
    reason,
    delaySeconds > 0 ? 1 : 0,
    at + delaySeconds * 1000,
    JSON.stringify(problem),
    row.id,
  ])
  await appendStatus(tx, { ...row, continuations: row.continuations + 1 - row.continues }, 'queued', null, at)
  await resumeOthers(tx, row)
}

/** How long until a run is tried again that only a put wakes, in case the wake-up was lost. */
const missingSeconds = 3600

/**
 * Returns a run to the queue until the account has what is missing. If that has changed since the worker read it, the run
 * is tried again at once: `AccountValues.put` excludes other writes, and wakes only runs that wait.
 *
 * @param row a locked run of a lease, which is not cancelled.
 */
export async function waitForValue(
  tx: Transaction,
  row: RunsTable,
  { kind, name, detail, names, versions, isRetried }: ValueWait,
  at: number,
): Promise<void> {
  const isChanged = describeVersions(await findValues(tx, row.account_id, names)) !== versions
  const delay = isChanged ? { delaySeconds: 0 } : isRetried ? {} : { delaySeconds: missingSeconds }
  await returnToQueue(tx, row, { reason: waitReason(kind, name), message: detail, ...delay }, at)
}
