/**
 * What a worker outside of the service reports of an attempt. Each report is checked, bounded and masked here as a worker
 * of the service does it for its executors.
 */
import type { ProblemMember } from '../../contract/problem.ts'
import type { Contents } from '../../storage/blobs/contents.ts'
import type { Encryption } from '../../storage/encryption.ts'
import { readColumns } from '../../storage/runs/run-lookups.ts'
import { sizeOfSteps } from '../../storage/runs/wait-statements.ts'
import { type Store, statement, type Transaction } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables/run-tables.ts'
import type { StorageUsage } from '../accounts/storage-usage.ts'
import { findContext } from '../browser-contexts/browser-contexts.sql.ts'
import type { ContextVersions } from '../browser-contexts/context-versions.ts'
import {
  type RunContexts,
  type RunWithContext,
  type SavedContext,
  stateProblem,
} from '../browser-contexts/run-contexts.ts'
import type { CapturedState } from '../browser-contexts/storage-state.ts'
import type { Files, StoredFile } from '../files/files.ts'
import { type PreparedArtifact, putArtifact, storeArtifact } from '../queue/attempt-artifacts.ts'
import { type Lease, recordReports } from '../queue/attempts.ts'
import { type Redact, toFailure, toSuccess } from '../queue/outcomes.ts'
import type { GivenOptions, ReachedWait } from '../queue/run-options.ts'
import type { RunQueue } from '../queue/run-queue.ts'
import { pausedMillisecondsMax } from '../run-api/live-views.ts'
import {
  ArtifactError,
  type ArtifactKind,
  artifactWritesMax,
  evidenceNames,
  isEvidenceOf,
  tooManyArtifactWrites,
} from '../runs/artifact.ts'
import { boundEventData, jsonBytesMax, ReportLimit, stepBytesOfRunMax, stepsMax } from '../runs/reported-values.ts'
import { type PersistContext, type Report, stepAad } from '../runs/run.ts'
import { type FailureReason, noRetry, type Outcome, type RunStatus } from '../runs/run-state.ts'
import { readStepResult, writeStepResult } from '../runs/step-results.ts'
import { waitSecondsMax } from '../workflows/author-arguments.ts'
import type { ArtifactMediaType } from '../workflows/define-workflow.ts'
import type { Workflow } from '../workflows/workflow.ts'
import { findStep, type Leased, type LeasedAttempts, type NotLeased } from './leased-attempts.ts'
import { isPermitted, type LeaseName, type WorkerKey } from './remote-workers.ts'

/** Why a report is refused. Nothing has changed then. */
export type Refused = NotLeased | { kind: 'otherResult' } | { kind: 'invalid'; errors: ProblemMember[] }

export interface NewRunEvent {
  type: 'log' | 'progress' | 'step'
  [member: string]: unknown
}

/** Events of an attempt. @see NewRunEvents in the Execution document */
export interface NewRunEvents {
  /** How many were sent before. */
  position: number
  events: readonly NewRunEvent[]
}

export type ReportedOutcome = (
  | { outcome: 'succeeded'; output?: unknown }
  | {
      outcome: 'failed'
      reason?: FailureReason
      error: { name: string; message: string; stack?: string | null; step?: string | null }
    }
  | { outcome: 'timedOut' | 'cancelled'; step?: string | null }
  | { outcome: 'waiting'; names: readonly string[]; executedSeconds?: number }
) & {
  /** Of the attempt's browser, to be the next version of its context. */
  storageState?: object
  /** What the attempt reports before the outcome. */
  events?: NewRunEvents
}

export type NewWait =
  | { kind: 'sleep'; name: string; seconds?: number; until?: string }
  | { kind: 'answer'; name: string; title?: string; timeoutSeconds?: number; show?: Record<string, unknown> }
  | {
      kind: 'run'
      name: string
      workflowId: string
      variableData?: Record<string, unknown>
      detached?: boolean
      options?: Record<string, unknown>
    }

export interface Suspended {
  suspended: boolean
  ended: { name: string; outcome: unknown }[]
  refused: { name: string; errorName: string; message: string }[]
  /** Milliseconds since 1970, by the name of the sleep. */
  deadlines: Record<string, number>
  /** The time of the service. */
  now: number
}

interface Dependencies {
  store: Store
  queue: RunQueue
  contents: Contents
  leasedAttempts: LeasedAttempts
  encryption: Encryption
  usage: StorageUsage
  contextVersions: Pick<ContextVersions, 'findCurrent' | 'read'>
  runContexts: RunContexts
  files: Pick<Files, 'getOfRun'>
  now: () => number
}

const invalid = (pointer: string, detail: string): Refused => ({ kind: 'invalid', errors: [{ pointer, detail }] })

interface NewReports {
  reports: readonly Report[]
  /** Stores them in a transaction that has locked the run, and others after them. */
  store(tx: Transaction, ...others: Report[]): Promise<undefined>
}

export class RemoteAttempts {
  readonly #dependencies: Dependencies

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  /** Stores the result of a step, and events before it. The same result again changes nothing. */
  async putStep(
    key: WorkerKey,
    name: LeaseName,
    step: string,
    { value, events }: { value: unknown; events?: NewRunEvents },
  ): Promise<Refused | undefined> {
    const leased = await this.#dependencies.leasedAttempts.find(key, name)
    if ('kind' in leased) return leased
    const { queue, encryption, now } = this.#dependencies
    const { lease, redact, accountSecrets } = leased
    const json = JSON.stringify(value)
    if (Buffer.byteLength(json) > jsonBytesMax) return invalid('/value', `has more than ${jsonBytesMax} bytes as JSON`)
    const result = writeStepResult(json, accountSecrets)
    const aad = stepAad(lease.runId, step)
    const store = async (tx: Transaction): Promise<Refused | undefined> => {
      const before = events && (await this.#findNew(tx, leased, events, '/events'))
      if (before && 'kind' in before) return before
      const [known] = await tx.all(findStep, [lease.runId, step])
      if (known && readStepResult(encryption.decrypt(known.value, aad)).json !== json) return { kind: 'otherResult' }
      if (known) return before?.store(tx)
      const [size] = await tx.all(sizeOfSteps, [lease.runId])
      const { last = 0, count = 0, bytes = 0 } = size ?? {}
      const refused = exceeds(count, bytes + Buffer.byteLength(result))
      if (refused) return refused
      await tx.all(tx.statements.insertStep, [lease.runId, step, encryption.encrypt(result, aad), last + 1])
      const finished = toReport(leased, redact, 'step', { name: step, state: 'finished' }, now())
      await (before ? before.store(tx, finished) : recordReports(tx, lease, [finished]))
      return undefined
    }
    let refused: Refused | undefined
    const isLeased = await queue.withLease(lease, async (tx) => {
      refused = await store(tx)
    })
    return isLeased ? refused : { kind: 'leaseLost' }
  }

  /** Appends the events that the store does not have. */
  async report(key: WorkerKey, name: LeaseName, events: NewRunEvents): Promise<Refused | undefined> {
    const leased = await this.#dependencies.leasedAttempts.find(key, name)
    return 'kind' in leased ? leased : this.#append(leased, events, '')
  }

  async #append(leased: Leased, events: NewRunEvents, pointer: string): Promise<Refused | undefined> {
    let refused: Refused | undefined
    const isLeased = await this.#dependencies.queue.withLease(leased.lease, async (tx) => {
      const found = await this.#findNew(tx, leased, events, pointer)
      if ('kind' in found) refused = found
      else await found.store(tx)
    })
    return isLeased ? refused : { kind: 'leaseLost' }
  }

  /** The events that the store does not have, masked. @param pointer of the events in the request. */
  async #findNew(
    queries: Pick<Transaction, 'all'>,
    leased: Leased,
    { position, events }: NewRunEvents,
    pointer: string,
  ): Promise<Refused | NewReports> {
    const { lease, redact } = leased
    const [stored] = await queries.all(findReports, [lease.runId])
    const before = stored?.attempt === lease.attempt ? stored : { position: 0, length: 0 }
    // Storing these would drop the events between: an earlier call is still under way, or its response was an error.
    if (position > before.position)
      return invalid(`${pointer}/position`, `is more than ${before.position}, the number of events that arrived`)
    const limit = new ReportLimit({ count: before.position, length: before.length })
    const at = this.#dependencies.now()
    const reports = events.slice(Math.max(0, before.position - position)).flatMap(({ type, ...data }) => {
      const bounded = limit.next(type, data)
      return bounded ? [toReport(leased, redact, bounded.type, bounded.data, at)] : []
    })
    const next = Math.max(before.position, position + events.length)
    const store = async (tx: Transaction, ...others: Report[]): Promise<undefined> => {
      await tx.all(setReports, [lease.runId, lease.attempt, next, limit.length])
      await recordReports(tx, lease, [...reports, ...others])
    }
    return { reports, store }
  }

  async putArtifact(
    key: WorkerKey,
    name: LeaseName,
    artifact: { name: string; mediaType: string; content: Uint8Array; isEvidence: boolean },
  ): Promise<Refused | undefined> {
    const leased = await this.#dependencies.leasedAttempts.find(key, name)
    if ('kind' in leased) return leased
    const { queue, contents, store, usage, now } = this.#dependencies
    const { lease, redactSecrets: redact } = leased
    const refusal = usage.refusal(key.accountId)
    if (refusal) return invalid('', `${refusal} The artifact was not stored.`)
    const { content, mediaType, isEvidence } = artifact
    if (isEvidence && !isEvidenceOf(lease.number, artifact.name))
      return invalid('/evidence', `is for ${evidenceNames(lease.number)}`)
    const kind: ArtifactKind = isEvidence ? 'evidence' : 'workflow'
    const stored = { name: redact(artifact.name), mediaType: mediaType as ArtifactMediaType, content, kind }
    const described = { name: stored.name, mediaType, sizeBytes: content.length }
    const reports = isEvidence ? [] : [toReport(leased, leased.redact, 'artifact', described, now())]
    try {
      const withLease = (work: (tx: Transaction) => Promise<void>) => queue.withLease(lease, work)
      const put = async (tx: Transaction, prepared: PreparedArtifact) => {
        await countArtifactWrite(tx, lease, kind)
        await putArtifact(tx, lease, prepared, now())
        await recordReports(tx, lease, reports)
      }
      const isLeased = await storeArtifact({ contents, store }, lease, stored, withLease, put)
      if (!isLeased) return { kind: 'leaseLost' }
    } catch (error) {
      if (error instanceof ArtifactError) return invalid('', error.message)
      throw error
    }
    usage.add(key.accountId, content.length)
    return undefined
  }

  /** Ends the attempt. Resolves with the status and the reason of the run after it. */
  async complete(
    key: WorkerKey,
    name: LeaseName,
    reported: ReportedOutcome,
  ): Promise<Refused | { kind: 'completed'; status: RunStatus; reason: string | null }> {
    const leased = await this.#dependencies.leasedAttempts.find(key, name)
    if ('kind' in leased) return leased
    const { queue, store, now } = this.#dependencies
    const { lease, row, workflow } = leased
    if (reported.outcome === 'succeeded' && Buffer.byteLength(JSON.stringify(reported.output ?? null)) > jsonBytesMax)
      return invalid('/output', `has more than ${jsonBytesMax} bytes as JSON`)
    const state = reported.storageState && JSON.stringify(reported.storageState)
    const redact = state === undefined ? leased.redact : leased.redactWith(state)
    // No later report of the attempt counts, so that reading its position needs no lock.
    const masking = { ...leased, redact }
    const before = reported.events && (await this.#findNew(store.read, masking, reported.events, '/events'))
    if (before && 'kind' in before) return before
    const { executedSeconds } = reported.outcome === 'waiting' ? reported : {}
    const executedMilliseconds = executedBy(row, workflow, executedSeconds, now())
    const reportedOutcome = toOutcome(reported, { ...leased, redact, executedMilliseconds })
    const decided = await this.#explainSignedOut(leased, reportedOutcome)
    const { outcome, reports, within } = await this.#save(leased, decided, state, redact)
    const mask = (list: readonly Report[]) => list.map(({ at, type, data }) => toReport(leased, redact, type, data, at))
    const masked = within && (async (tx: Transaction, next: RunStatus) => mask(await within(tx, next)))
    const all = [...(before?.reports ?? []), ...mask(reports)]
    if (!(await queue.complete(lease, outcome, workflow.retry, all, masked))) return { kind: 'leaseLost' }
    const [run] = await readColumns(store.read, ['status', 'reason'], [lease.runId])
    // Another worker may have claimed it already, or a caller deleted it.
    const status = run && run.status !== 'deleted' ? (run.status as RunStatus) : 'cancelled'
    return { kind: 'completed', status, reason: run?.reason ?? null }
  }

  /**
   * The state of the run's browser context. `undefined` if the run has none, or it was deleted.
   *
   * @param reserve resolves when there is memory for this many bytes.
   */
  async readContext(
    key: WorkerKey,
    name: LeaseName,
    reserve: (bytes: number) => Promise<void> | undefined,
  ): Promise<Refused | { kind: 'state'; state: string | undefined }> {
    const leased = await this.#dependencies.leasedAttempts.findLease(key, name)
    if ('kind' in leased) return leased
    const { contextVersions } = this.#dependencies
    const id = leased.row.browser_context_id ?? ''
    await reserve((await contextVersions.findCurrent(key.accountId, id))?.sizeBytes ?? 0)
    return { kind: 'state', state: await contextVersions.read(key.accountId, id) }
  }

  /** A file to which the run refers; `undefined` if it refers to no such file. */
  async findFile(
    key: WorkerKey,
    name: LeaseName,
    fileId: string,
  ): Promise<Refused | { kind: 'file'; file: StoredFile | undefined }> {
    const leased = await this.#dependencies.leasedAttempts.findLease(key, name)
    if ('kind' in leased) return leased
    return { kind: 'file', file: await this.#dependencies.files.getOfRun(leased.row.id, fileId) }
  }

  /** Only a worker of the service suspends a run until its browser context is signed in. */
  async #explainSignedOut({ row }: Leased, outcome: Outcome): Promise<Outcome> {
    if (outcome.kind !== 'failed' || outcome.error.name !== 'SignedOut' || row.browser_context_id === null)
      return outcome
    const context = await findContext(this.#dependencies.store.read, row.account_id, row.browser_context_id)
    if (!context?.has_sign_in) return outcome
    const why = 'The sign-in of the browser context was not started, because a worker over HTTP executed the run.'
    return { ...outcome, error: { ...outcome.error, message: `${outcome.error.message} ${why}` } }
  }

  /** Stores the state of the attempt's browser as a staged version of the run's context, as a worker of the service does. */
  async #save(leased: Leased, outcome: Outcome, state: string | undefined, redact: Redact): Promise<SavedContext> {
    const { store, contextVersions, runContexts } = this.#dependencies
    const { row } = leased
    const { id: runId, account_id: accountId, browser_context_id: browserContextId } = row
    if (state === undefined || browserContextId === null) return { outcome, reports: [] }
    const context = await findContext(store.read, accountId, browserContextId)
    // A run has the lease from its claim until its attempt ends, so that the lease is that of this attempt.
    const contextLease =
      context?.held_by_run_id === runId ? { contextId: context.id, runId, fence: context.fence } : null
    const persistContext = (row.persist_context as PersistContext | null) ?? 'never'
    const run: RunWithContext = { runId, accountId, browserContextId, persistContext, contextLease }
    const restored = await contextVersions.read(accountId, browserContextId).catch(() => undefined)
    const problem = stateProblem(state)
    const captured: CapturedState = problem === undefined ? { json: state } : { unreadable: problem }
    return runContexts.save(run, outcome, { captured, restored, redact })
  }

  /** Stores what the run waits for, and suspends it if nothing has ended. @param request `usesContexts`: whether calls may. */
  async suspend(
    key: WorkerKey,
    name: LeaseName,
    request: {
      waits: readonly NewWait[]
      names: readonly string[]
      suspend: boolean
      usesContexts: boolean
      executedSeconds?: number | undefined
      events?: NewRunEvents | undefined
    },
  ): Promise<Refused | ({ kind: 'waits' } & Suspended)> {
    const leased = await this.#dependencies.leasedAttempts.find(key, name)
    if ('kind' in leased) return leased
    const { queue, now } = this.#dependencies
    const errors = findErrors(request.waits, now())
    if (errors.length > 0) return { kind: 'invalid', errors }
    const declared = leased.workflow.waits ?? {}
    const isUndeclared = (wait: NewWait) => wait.kind === 'answer' && !Object.hasOwn(declared, wait.name)
    const undeclared = request.waits.filter(isUndeclared).map((wait) => ({
      ...{ name: wait.name, errorName: 'TypeError' },
      message: `The workflow declares no wait "${wait.name}": name it in the \`waits\` of its definition.`,
    }))
    const calls = request.waits.flatMap((wait) => describeOtherCall(key, request.usesContexts, wait) ?? [])
    const isRefused = (wait: NewWait) => [...undeclared, ...calls].some(({ name }) => name === wait.name)
    const reached = request.waits.filter((wait) => !isRefused(wait)).map((wait) => toReached(wait, leased, now()))
    const executedMilliseconds = executedBy(leased.row, leased.workflow, request.executedSeconds, now())
    const isSuspended = request.suspend && undeclared.length + calls.length === 0
    const suspend = isSuspended ? { executedMilliseconds, names: request.names } : undefined
    const waiting = { reached, names: request.names, suspend }
    const rejected = request.events && (await this.#append(leased, request.events, '/events'))
    if (rejected) return rejected
    const results = await queue.wait(leased.lease, waiting, [], {})
    if (!results) return { kind: 'leaseLost' }
    const { ended, refused, deadlines, isSuspended: suspended } = results
    return {
      ...{ kind: 'waits', suspended, deadlines, now: now() },
      ended: ended.map((each) => ({ name: each.name, outcome: JSON.parse(each.outcome) })),
      refused: [...undeclared, ...calls, ...refused],
    }
  }

  /** Returns the run to the queue. @param message why the worker cannot execute it; without one, the worker stops. */
  async handBack(key: WorkerKey, name: LeaseName, message: string | undefined): Promise<Refused | undefined> {
    const leased = await this.#dependencies.leasedAttempts.find(key, name)
    if ('kind' in leased) return leased
    const { queue } = this.#dependencies
    const { lease, redact } = leased
    const isLeased = await (message === undefined
      ? queue.complete(lease, { kind: 'workerStopped' }, noRetry)
      : queue.handBack(lease, redact(message)))
    return isLeased ? undefined : { kind: 'leaseLost' }
  }
}

const findReports = statement<{ attempt: number; position: number; length: number }, [runId: string]>(
  'SELECT attempt, position, length FROM attempt_reports WHERE run_id = ?',
)

const setReports = statement<object, [runId: string, attempt: number, position: number, length: number]>(
  `INSERT INTO attempt_reports (run_id, attempt, position, length) VALUES (?, ?, ?, ?)
    ON CONFLICT (run_id) DO UPDATE SET attempt = excluded.attempt, position = excluded.position, length = excluded.length,
      artifact_writes = CASE WHEN attempt_reports.attempt = excluded.attempt THEN attempt_reports.artifact_writes ELSE 0 END`,
)

const countWrite = statement<{ artifact_writes: number }, [runId: string, attempt: number]>(
  `INSERT INTO attempt_reports (run_id, attempt, position, length, artifact_writes) VALUES (?, ?, 0, 0, 1)
    ON CONFLICT (run_id) DO UPDATE SET attempt = excluded.attempt,
      position = CASE WHEN attempt_reports.attempt = excluded.attempt THEN attempt_reports.position ELSE 0 END,
      length = CASE WHEN attempt_reports.attempt = excluded.attempt THEN attempt_reports.length ELSE 0 END,
      artifact_writes = 1 + CASE WHEN attempt_reports.attempt = excluded.attempt THEN attempt_reports.artifact_writes ELSE 0 END
    RETURNING artifact_writes`,
)

/** @throws {ArtifactError} if the attempt has written too many. */
async function countArtifactWrite(tx: Transaction, { runId, attempt }: Lease, kind: ArtifactKind): Promise<void> {
  // A worker of the service counts the files of the workflow only, too.
  if (kind === 'evidence') return
  const [row] = await tx.all(countWrite, [runId, attempt])
  if (row && row.artifact_writes > artifactWritesMax) throw new ArtifactError(tooManyArtifactWrites)
}

function exceeds(count: number, bytes: number): Refused | undefined {
  if (count >= stepsMax) return invalid('', `A run may have at most ${stepsMax} steps and waits.`)
  if (bytes <= stepBytesOfRunMax) return undefined
  return invalid('/value', `makes the results of the run's steps and waits larger than ${stepBytesOfRunMax} bytes`)
}

/** Masked before it is truncated, which could leave a part of a secret. */
function toReport(
  { lease }: Leased,
  redact: Redact,
  type: Report['type'],
  data: Record<string, unknown>,
  at: number,
): Report {
  return { at, type, data: { attempt: lease.number, ...boundEventData(type, redact(data)) } }
}

/** The time of an attempt that counts: without that for which people have paused its browser, as the worker has measured it. */
function executedBy(
  { attempt_started_at: startedAt }: RunsTable,
  { usesBrowser }: Workflow,
  reportedSeconds: number | undefined,
  now: number,
): number {
  const elapsed = Math.max(0, now - (startedAt ?? now))
  const least = Math.max(0, elapsed - (usesBrowser ? pausedMillisecondsMax : 0))
  return reportedSeconds === undefined
    ? elapsed
    : Math.min(elapsed, Math.max(least, Math.round(reportedSeconds * 1000)))
}

function toOutcome(
  reported: ReportedOutcome,
  { workflows, workflow, redact, redactSecrets, executedMilliseconds }: Leased & { executedMilliseconds: number },
): Outcome {
  switch (reported.outcome) {
    case 'succeeded':
      return toSuccess(reported.output ?? null, workflows, workflow.id, { output: redactSecrets, error: redact })
    case 'waiting':
      return { kind: 'waiting', executedMilliseconds, names: reported.names }
    case 'failed':
      return toFailure(reported.reason ?? 'workflowFailed', redact(reported.error))
    case 'timedOut':
      return { kind: 'timedOut', limitSeconds: workflow.timeLimitSeconds, step: redact(reported.step ?? null) }
    case 'cancelled':
      return { kind: 'cancelled' }
  }
}

function findErrors(waits: readonly NewWait[], now: number): ProblemMember[] {
  return waits.flatMap((wait, index) => {
    const pointer = `/waits/${index}`
    // The domain checks the options of calls, and refuses each call by itself.
    if (wait.kind !== 'sleep') return []
    const { seconds, until } = wait
    if ((seconds === undefined) === (until === undefined)) return [{ pointer, detail: 'has one of seconds and until' }]
    if (until === undefined || Date.parse(until) - now <= waitSecondsMax * 1000) return []
    return [{ pointer: `${pointer}/until`, detail: 'is more than 366 days from now' }]
  })
}

/** A call that the key does not permit: of another workflow than its own, or with a browser context. */
function describeOtherCall(key: WorkerKey, usesContexts: boolean, wait: NewWait) {
  if (wait.kind !== 'run') return undefined
  const { name, workflowId, options = {} } = wait
  const isOther = !isPermitted(key, workflowId)
  if (!isOther && (usesContexts || options.browserContextId === undefined)) return undefined
  const reason = isOther ? 'is restricted to other workflows' : 'lacks the scope browser-contexts:use'
  const message = `The call of workflow ${workflowId} is refused: the API key of the worker ${reason}.`
  return { name, errorName: 'CallRefused', message }
}

/** A week. */
const defaultTimeoutSeconds = 7 * 24 * 60 * 60

function toReached(wait: NewWait, { redact }: Leased, now: number): ReachedWait {
  const { name } = wait
  if (wait.kind === 'sleep') {
    const { seconds = 0, until } = wait
    return { name, kind: 'sleep', deadline: until === undefined ? Math.ceil(now + seconds * 1000) : Date.parse(until) }
  }
  if (wait.kind === 'answer') {
    const { title = null, timeoutSeconds = defaultTimeoutSeconds, show = null } = wait
    const deadline = Math.ceil(now + timeoutSeconds * 1000)
    return { name, kind: 'answer', deadline, title: redact(title), shown: redact(show) }
  }
  const { workflowId, variableData: variables = {}, detached = false, options = {} } = wait
  return { name, kind: 'run', workflowId, variables, options: options as GivenOptions, isDetached: detached }
}
