/**
 * Runs that sign browser contexts in. When a run finds that it is signed out, it is suspended, and one run signs in, under
 * the context's lease, whatever the number of runs that wait. A trigger of the store lets them go on when it has ended.
 */
import { v7 as uuid } from 'uuid'
import type { ValueEncryption } from '../../storage/encryption.ts'
import { setSignsIn } from '../../storage/runs/run-statements.ts'
import { findUseOfSession, suspendForSignIn } from '../../storage/runs/sign-in-statements.ts'
import { resume } from '../../storage/runs/wait-statements.ts'
import type { Transaction } from '../../storage/store.ts'
import type { RunsTable, SignInKind } from '../../storage/tables/run-tables.ts'
import type { ContextSignInsTable, SignInCause } from '../../storage/tables/tables.ts'
import type { Actor } from '../audit-log/audit-log.ts'
import { leaseForSignIn, releaseContextLease } from '../browser-contexts/context-lease.ts'
import { addEntry, lockSignIn, signInAad } from '../browser-contexts/sign-ins.sql.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { attemptsOf, toDeploymentProblem } from '../runs/run.ts'
import {
  delayOf,
  noRetry,
  type RetryPolicy,
  type RunError,
  type SignedOut,
  type SignedOutRun,
} from '../runs/run-state.ts'
import type { Secrets } from '../workflows/secrets.ts'
import { totpSecret } from '../workflows/totp.ts'
import { addAttemptEnd, executedUntil } from './attempt-history.ts'
import { insertRuns } from './enqueue-batcher.ts'
import { toMemberErrors } from './queue-problems.ts'
import { createRun } from './queue-request.ts'
import { appendEvents, statusReport } from './runs.sql.ts'

export interface SignInDependencies {
  encryption: ValueEncryption
  workflows: WorkflowRegistry
}

export interface SignInRequest {
  kind: SignInKind
  cause: SignInCause
  /** The run that found that it was signed out. */
  causedBy?: string
  /** Who asked for it. */
  actor?: Actor
  delaySeconds?: number
}

export type StartedSignIn = { kind: 'started'; runId: string } | { kind: 'refused'; detail: string }

/** A run that signs in and has not started by then expires: runs wait for it, so a person has to see why. */
export const startMilliseconds = 3_600_000

/** Failures of a site often end by themselves; a wrong password does not, and too many tries lock the account. */
const retriesMax = 3
const defaultRetry: RetryPolicy = { maxAttempts: 1 + retriesMax, backoffSeconds: 30, backoffFactor: 4 }

/** The retry policy of a run: for one that signs in, the workflow's within limits, or a default. */
export function retryPolicyOf({ signs_in }: Pick<RunsTable, 'signs_in'>, retry: RetryPolicy): RetryPolicy {
  if (signs_in === null) return retry
  if (signs_in !== 'signIn') return { ...retry, maxAttempts: 1 }
  if (retry.maxAttempts === 1) return defaultRetry
  return { ...retry, maxAttempts: Math.min(retry.maxAttempts, 1 + retriesMax) }
}

/**
 * Queues a run of the sign-in's workflow, and gives it the lease of the browser context if no run has it.
 *
 * @param signIn the locked row, without a run.
 */
export async function startSignIn(
  tx: Transaction,
  { encryption, workflows }: SignInDependencies,
  signIn: ContextSignInsTable,
  { kind, cause, causedBy, actor, delaySeconds = 0 }: SignInRequest,
  at: number,
): Promise<StartedSignIn> {
  const { browser_context_id: contextId, account_id: accountId, workflow_id: workflowId } = signIn
  const stored: Secrets =
    signIn.secrets === null ? {} : JSON.parse(encryption.decrypt(signIn.secrets, signInAad(accountId, contextId)))
  const { [totpSecret]: totp, ...secrets } = stored
  const workflow = workflows.current(accountId).get(workflowId)
  if (workflow && !workflow.signsIn)
    return { kind: 'refused', detail: '/workflowId names a workflow that does not sign in' }
  const queuer = { accountId, apiKeyId: null, userId: null }
  const request = { workflowId, variables: JSON.parse(signIn.variables), browserContextId: contextId }
  const added = totp === undefined ? undefined : { [totpSecret]: totp }
  const created = createRun({ workflows, encryption }, queuer, request, secrets, added)
  if (created.kind !== 'created') {
    const errors = toMemberErrors(created).map(({ pointer, detail }) => `${pointer} ${detail}`)
    return { kind: 'refused', detail: errors.join('; ') }
  }
  const { run } = created
  run.expires_at = at + Math.round(delaySeconds * 1000) + startMilliseconds
  if (delaySeconds > 0) Object.assign(run, { delayed: 1, available_at: at + Math.round(delaySeconds * 1000) })
  await insertRuns(tx, [run])
  await tx.all(setSignsIn, [kind, run.id])
  await leaseForSignIn(tx, contextId, run.id)
  const status = kind === 'check' ? signIn.status : 'signingIn'
  const rows = tx.query.updateTable('context_sign_ins').set({ run_id: run.id, status, next_check_at: null })
  await rows.where('browser_context_id', '=', contextId).execute()
  await addEntry(tx, {
    ...{ id: uuid(), browser_context_id: contextId, run_id: run.id, kind, cause, caused_by_run_id: causedBy ?? null },
    ...{ actor: actor ? JSON.stringify(actor) : null, started_at: at },
  })
  return { kind: 'started', runId: run.id }
}

/** Queues a run that signs in when a check has found no session. */
export async function signInAfterCheck(
  tx: Transaction,
  dependencies: SignInDependencies,
  row: RunsTable,
  contextVersion: number | undefined,
  at: number,
): Promise<void> {
  const signIn = row.browser_context_id === null ? undefined : await lockSignIn(tx, row.browser_context_id)
  if (signIn && signIn.run_id === null) await replaceSession(tx, dependencies, signIn, row, { contextVersion }, at)
}

/** A sign-in is fruitless if a run finds no session in its version within this time; later, the session has ended. */
const fruitlessMilliseconds = 3_600_000

/**
 * Queues a run that signs in because a run has found no session. If it has found none in the very version that the last
 * sign-in has stored, this is as a sign-in that has failed: it is repeated with backoff, and then a person is needed.
 *
 * @param signIn the locked row, without a run.
 */
async function replaceSession(
  tx: Transaction,
  dependencies: SignInDependencies,
  signIn: ContextSignInsTable,
  { id, workflow_id, signs_in }: RunsTable,
  { contextVersion }: Pick<SignedOut, 'contextVersion'>,
  at: number,
): Promise<void> {
  const { browser_context_id: contextId, account_id: accountId } = signIn
  const fruitless = (await isFruitless(tx, signIn, workflow_id, contextVersion, at)) ? signIn.fruitless + 1 : 0
  const counts = tx.query.updateTable('context_sign_ins').set({ fruitless })
  if (fruitless !== signIn.fruitless) await counts.where('browser_context_id', '=', contextId).execute()
  const { retry = noRetry } = dependencies.workflows.current(accountId).get(signIn.workflow_id) ?? {}
  const policy = retryPolicyOf({ signs_in: 'signIn' }, retry)
  if (fruitless >= policy.maxAttempts) return needSignIn(tx, contextId, stillSignedOut(fruitless, id, workflow_id), at)
  const cause = signs_in === 'check' ? 'checkDue' : 'signedOut'
  const delaySeconds = fruitless === 0 ? 0 : delayOf(policy, fruitless - 1)
  const request = { kind: 'signIn', cause, causedBy: id, delaySeconds } as const
  const started = await startSignIn(tx, dependencies, signIn, request, at)
  if (started.kind === 'refused') await needSignIn(tx, contextId, doesNotFit(started.detail), at)
}

async function isFruitless(
  tx: Transaction,
  { browser_context_id, signed_in_at, signed_in_version }: ContextSignInsTable,
  workflowId: string,
  contextVersion: number | undefined,
  at: number,
): Promise<boolean> {
  if (signed_in_at === null || at - signed_in_at > fruitlessMilliseconds) return false
  // A run has stored a newer version since, or this one has started with an older one.
  if (signed_in_version !== (contextVersion ?? signed_in_version)) return false
  return (await tx.all(findUseOfSession, [browser_context_id, workflowId, signed_in_at])).length === 0
}

function stillSignedOut(times: number, runId: string, workflowId: string): RunError {
  const signedIn = times === 1 ? 'The sign-in has succeeded' : `The sign-in has succeeded ${times} times`
  const message = `${signedIn}, but run ${runId} of ${workflowId} has still found no session in the version that it stored.`
  return { name: 'StillSignedOut', message }
}

/** Says why a run that signs in has expired, unless an attempt of it has failed. The end of the run is recorded. */
export async function explainUnstarted(
  tx: Transaction,
  run: Pick<RunsTable, 'id' | 'signs_in' | 'browser_context_id' | 'deployment_problem'>,
): Promise<void> {
  const { id, signs_in, browser_context_id: contextId } = run
  if (signs_in === null || contextId === null) return
  const { message } = toDeploymentProblem(run)
  const task = signs_in === 'check' ? 'checks the session' : 'signs in'
  const detail = message
    ? `The run that ${task} could not start within an hour: ${message}`
    : `No worker has started the run that ${task} within an hour.`
  const error = JSON.stringify({ name: 'NotStarted', message: detail })
  const entries = tx.query.updateTable('context_sign_in_entries').set({ error })
  await entries.where('run_id', '=', id).where('error', 'is', null).execute()
  if (signs_in === 'check') return
  const rows = tx.query.updateTable('context_sign_ins').set({ error }).where('browser_context_id', '=', contextId)
  await rows.where('status', '=', 'needsSignIn').where('error', 'is', null).execute()
}

export function doesNotFit(detail: string): RunError {
  return { name: 'SignInDoesNotFit', message: `The workflow cannot sign in: ${detail}.` }
}

/** A person is needed, although no run is there that has failed to sign in. */
export async function needSignIn(tx: Transaction, contextId: string, error: RunError, at: number): Promise<void> {
  const change = { status: 'needsSignIn' as const, needs_sign_in_since: at, next_check_at: null }
  const rows = tx.query.updateTable('context_sign_ins').set({ ...change, error: JSON.stringify(error) })
  await rows.where('browser_context_id', '=', contextId).execute()
}

/** How long a run waits for a session, unless it expires before. */
const waitMilliseconds = 7 * 86_400_000

/**
 * Suspends a locked run that is signed out until its browser context is signed in again, and starts a run that signs in
 * unless one does, a person is needed, or another one has signed in since the run has got the context's version. Returns
 * `undefined` if the browser context has no sign-in: the attempt fails then.
 */
export async function suspendUntilSignedIn(
  tx: Transaction,
  dependencies: SignInDependencies | undefined,
  row: RunsTable,
  outcome: SignedOut,
  at: number,
): Promise<SignedOutRun | undefined> {
  const contextId = row.browser_context_id
  const signIn = contextId === null ? undefined : await lockSignIn(tx, contextId)
  if (!dependencies || !signIn || contextId === null) return undefined
  const expiresAt = row.expires_at !== null && row.expires_at > at ? row.expires_at : Number.POSITIVE_INFINITY
  await appendEvents(tx, row.id, [statusReport(attemptsOf(row), 'waiting', 'waiting', at)])
  const ends = await addAttemptEnd(tx, row, at)
  const waitsUntil = Math.min(expiresAt, at + waitMilliseconds)
  await tx.all(suspendForSignIn, [waitsUntil, outcome.executedMilliseconds, ends, executedUntil(row, at), row.id])
  await releaseContextLease(tx, contextId, row.id)
  if (signIn.signed_in_version > (outcome.contextVersion ?? signIn.signed_in_version)) {
    await tx.all(resume, [at, row.id])
    return { sessionSeconds: undefined }
  }
  if (signIn.run_id !== null || signIn.status === 'needsSignIn') return { sessionSeconds: undefined }
  await replaceSession(tx, dependencies, signIn, row, outcome, at)
  return { sessionSeconds: signIn.signed_in_at === null ? undefined : Math.max(0, at - signIn.signed_in_at) / 1000 }
}
