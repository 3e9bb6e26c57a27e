/** A run as the domain reads it, the time in a run's id, and the AAD of encrypted columns. */
import { v7 as uuid } from 'uuid'
import type { EncryptedColumn } from '../../storage/encrypted-columns.ts'
import type { RunsTable, WaitKind } from '../../storage/tables/run-tables.ts'
import type { Artifact } from './artifact.ts'
import { type AttemptError, deploymentUnavailable, type RunError, type RunReason, type RunStatus } from './run-state.ts'

/** What exactly a run waits for. */
export interface WaitDetail {
  kind: WaitingFor
  /** Such as the name of a secret; the document lists the others. */
  name?: string
  /** A sentence for people. */
  message: string
}

/** @param name left out if it is `null`. */
export function waitDetail(kind: WaitingFor, name: string | null, message: string): WaitDetail {
  return name === null ? { kind, message } : { kind, name, message }
}

/** The concurrency limit or throttle for which a queued run waits; `undefined` if it waits for none. */
export type DescribeLimit = (run: RunsTable) => WaitDetail | undefined

/**
 * A run as it was read. Times are milliseconds since 1970. Fields are declared only, since initializing each costs a second
 * assignment. An object literal with a prototype took 3 µs per run.
 */
export class Run {
  declare id: string
  declare accountId: string
  /** The API key that queued the run, or the user who did so in the dashboard. */
  declare apiKeyId: string | null
  declare userId: string | null
  declare workflowId: string
  declare workflowVersion: string
  /** The deployment that validated the run and executes it; `null` in tests without deployments. */
  declare deploymentId: string | null
  declare status: RunStatus
  declare reason: RunReason | null
  declare waitingFor: WaitingFor | null
  /** `null` if `waitingFor` says all. */
  declare waitingForDetail: WaitDetail | null
  /** Its place among the runs that wait with it; `undefined` in lists and for runs that wait for something else. */
  declare queuePosition: number | undefined
  declare cancelRequested: boolean
  /** The API key or the user that cancelled it. */
  declare cancelledBy: { apiKeyId: string | null; userId: string | null }
  declare priority: number
  /** In the order of the request. */
  declare tags: readonly string[]
  declare concurrencyKey: string | null
  /** The concurrency group for which it waits. */
  declare waitsForGroup: string | null
  declare attempts: number
  /** The latest attempts, oldest first; `undefined` in lists. */
  declare attemptHistory: RunAttempt[] | undefined
  /** `variables` and `output` as they are stored. */
  declare json: { variables: string; output: string }
  declare error: RunError | null
  declare progress: RunProgress | null
  declare browserContextId: string | null
  declare persistContext: PersistContext | null
  /** The schedule that queued the run, and the time that it is for. */
  declare scheduleId: string | null
  declare scheduledFor: number | null
  /** The run that this one repeats; it may have been deleted. */
  declare rerunOf: string | null
  /** The run that called this one; it may have been deleted. */
  declare parentRunId: string | null
  declare artifacts: Artifact[]
  declare createdAt: number
  declare availableAt: number | null
  declare expiresAt: number | null
  declare startedAt: number | null
  declare finishedAt: number | null

  constructor(
    row: RunsTable,
    describeLimit: DescribeLimit,
    artifacts: Artifact[],
    attemptHistory: RunAttempt[] | undefined,
  ) {
    const limit = row.status === 'queued' ? describeLimit(row) : undefined
    const waiting = waitingFor(row, limit)
    this.id = row.id
    this.accountId = row.account_id
    this.apiKeyId = row.api_key_id
    this.userId = row.user_id
    this.workflowId = row.workflow_id
    this.workflowVersion = row.workflow_version
    this.deploymentId = row.deployment_id
    this.status = row.status as RunStatus
    this.reason = isHandedBack(waiting) ? null : (row.reason as RunReason | null)
    this.waitingFor = waiting
    this.waitingForDetail = waitingForDetail(row, waiting, limit)
    this.queuePosition = undefined
    this.cancelRequested = row.cancel_requested === 1
    this.cancelledBy = { apiKeyId: row.cancelled_by_key_id, userId: row.cancelled_by_user_id }
    this.priority = row.priority
    this.tags = row.tags === null ? [] : JSON.parse(row.tags)
    this.concurrencyKey = keyOf(row)
    this.waitsForGroup = row.waiting_for === 'concurrencyGroup' ? row.concurrency_group : null
    this.attempts = attemptsOf(row)
    this.attemptHistory = attemptHistory
    this.json = { variables: row.variables, output: row.output ?? 'null' }
    this.error = parseJson(row.error)
    this.progress = parseJson(row.progress)
    this.browserContextId = row.browser_context_id
    this.persistContext = row.persist_context as PersistContext | null
    this.scheduleId = row.schedule_id
    this.scheduledFor = row.scheduled_for
    this.rerunOf = row.rerun_of
    this.parentRunId = row.parent_run_id
    this.artifacts = artifacts
    this.createdAt = row.created_at
    // The column has, for a run that waits for a session, the time at which it expires.
    this.availableAt = row.status === 'waiting' ? null : row.available_at
    this.expiresAt = row.expires_at
    this.startedAt = row.started_at
    this.finishedAt = row.finished_at
  }

  /** With every secret masked. Parsed at each access. */
  get variables(): Record<string, unknown> {
    return JSON.parse(this.json.variables)
  }

  /** Parsed at each access. */
  get output(): unknown {
    return JSON.parse(this.json.output)
  }
}

export type WaitingFor =
  | 'worker'
  | 'delay'
  | 'concurrencyLimit'
  | 'throttle'
  | 'browserContext'
  | 'deployment'
  | 'secret'
  | 'setting'
  | 'signIn'
  | WaitKind

/** When the browser's cookies and storage become the browser context's new version. */
export type PersistContext = 'never' | 'onSuccess' | 'always'

export interface RunProgress {
  percent: number
  message: string | null
}

/** An event of a run; `data` contains the members specific to its type. */
export interface RunEvent {
  /** Counts from 1 within the run, without gaps. */
  sequence: number
  at: number
  type: 'status' | 'log' | 'progress' | 'step' | 'artifact'
  data: Record<string, unknown>
}

export type Report = Omit<RunEvent, 'sequence'>

/** `waiting`: a part of an attempt, which the next entry continues. */
export type AttemptOutcome =
  | 'succeeded'
  | 'failed'
  | 'timedOut'
  | 'cancelled'
  | 'workerStopped'
  | 'workerLost'
  | 'waiting'

export interface RunAttempt {
  /** From 1. The parts of an attempt that waited have the same. */
  number: number
  startedAt: number
  finishedAt: number | null
  /** `null` while it runs. */
  outcome: AttemptOutcome | null
  error: AttemptError | null
}

/** Why the run's worker could not get its deployment, or a secret or setting. */
export interface DeploymentProblem {
  /** A sentence for callers. */
  message: string
  /** How often workers have handed the run back for this reason. */
  count: number
  /** The reason in the store. `deploymentUnavailable` if it is absent. */
  reason?: string
}

export function toDeploymentProblem({
  deployment_problem: json,
}: Pick<RunsTable, 'deployment_problem'>): DeploymentProblem {
  return json === null ? { message: '', count: 0 } : JSON.parse(json)
}

/** Attempts as callers count them: claims that continue one after a wait, or that were handed back, do not count. */
export function attemptsOf({ attempts, continuations }: Pick<RunsTable, 'attempts' | 'continuations'>): number {
  return attempts - continuations
}

/** The bytes of the columns that may be large. */
export function sizeOf({ variables, output, error }: RunsTable): number {
  return variables.length + (output?.length ?? 0) + (error?.length ?? 0)
}

function waitingFor(row: RunsTable, limit: WaitDetail | undefined): WaitingFor | null {
  if (row.status === 'waiting') return row.waiting_for as WaitKind | 'signIn'
  if (row.status !== 'queued') return null
  if (row.reason === deploymentUnavailable) return 'deployment'
  if (row.reason?.startsWith('secret:')) return 'secret'
  if (row.reason?.startsWith('setting:')) return 'setting'
  if (row.delayed === 1) return 'delay'
  if (row.waiting_for === 'browserContext') return 'browserContext'
  return limit?.kind ?? 'worker'
}

function isHandedBack(waiting: WaitingFor | null): waiting is 'deployment' | 'secret' | 'setting' {
  return waiting === 'deployment' || waiting === 'secret' || waiting === 'setting'
}

function waitingForDetail(row: RunsTable, waiting: WaitingFor | null, limit: WaitDetail | undefined) {
  if (isHandedBack(waiting)) {
    const name = waiting === 'deployment' ? row.deployment_id : (row.reason?.slice(`${waiting}:`.length) ?? null)
    return waitDetail(waiting, name, toDeploymentProblem(row).message)
  }
  return limit !== undefined && waiting === limit.kind ? limit : null
}

export interface GroupMember {
  account_id: string
  workflow_id: string
}

/** @param key `undefined` for runs without a key, which share a limit too. */
export function groupOf({ account_id, workflow_id }: GroupMember, key: string | undefined): string {
  return `${account_id} ${workflow_id} ${key ?? ''}`
}

/** `null` for a run without a key. */
export function keyOf(run: GroupMember & { concurrency_group: string | null }): string | null {
  return run.concurrency_group?.slice(groupOf(run, '').length) || null
}

function parseJson<Value>(json: string | null): Value | null {
  return json === null ? null : JSON.parse(json)
}

/**
 * The lower bound of run ids created at or after this time: a version 7 UUID begins with 48 bits of milliseconds (RFC
 * 9562, section 5.7). No run has this id, because its version digit is 0.
 */
export function firstIdAt(milliseconds: number): string {
  const time = Math.min(Math.max(0, milliseconds), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`
}

/** Random bytes for many ids: reading 16 bytes for each costs a system call, more than the rest of the id. */
const randomBytes = new Uint8Array(16 * 256)
let randomUsed = randomBytes.length
let latestMilliseconds = 0
let sequence = 0

/** A version 7 UUID that is higher than those that this process has created before (RFC 9562, section 6.2, method 1). */
export function createRunId(): string {
  if (randomUsed === randomBytes.length) {
    crypto.getRandomValues(randomBytes)
    randomUsed = 0
  }
  const random = randomBytes.subarray(randomUsed, randomUsed + 16)
  randomUsed += 16
  const now = Date.now()
  if (now > latestMilliseconds) {
    latestMilliseconds = now
    // 31 of the 32 bits of the sequence, so that it does not overflow within a millisecond.
    sequence = (random[0] as number) * 0x800000 + (random[1] as number) * 0x8000 + (random[2] as number) * 0x80
  } else sequence += 1
  return uuid({ random, msecs: latestMilliseconds, seq: sequence })
}

/** The milliseconds in a run's id, so that `createdAt` agrees with filters by id to the millisecond. */
export function parseCreatedAt(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

/** Associated data (AAD) of a run's secrets: they decrypt in this row only. */
export function secretsAad(accountId: string, runId: string): string {
  return `${accountId}/runs/${runId}/secrets`
}

export function stepAad(runId: string, name: string): string {
  return `runs/${runId}/steps/${name}`
}

/** Associated data of an answer to a wait. */
export function waitAad(runId: string, name: string): string {
  return `runs/${runId}/waits/${name}`
}

export const encryptedInRuns: readonly EncryptedColumn[] = [
  { table: 'runs', key: ['id'], column: 'secrets', aadColumns: ['account_id', 'id'], aad: secretsAad },
  { table: 'run_steps', key: ['run_id', 'name'], column: 'value', aadColumns: ['run_id', 'name'], aad: stepAad },
  { table: 'run_waits', key: ['run_id', 'name'], column: 'value', aadColumns: ['run_id', 'name'], aad: waitAad },
]

/**
 * Span attributes by OpenTelemetry's messaging conventions: queueing a run sends a message, an attempt processes it.
 * Written as text, so that OpenTelemetry is loaded only when tracing is on.
 */
export function messageAttributes(operation: 'send' | 'process', workflowId: string, runId: string) {
  return {
    'messaging.system': 'execution_service',
    'messaging.operation.name': operation,
    'messaging.operation.type': operation,
    'messaging.destination.name': workflowId,
    'messaging.message.id': runId,
  }
}
