/** The queue as a worker outside of the service reaches it: over HTTP, with the operations that are tagged Workers. */
import type { components } from '../../../generated/execution.v1/types.ts'
import type { Problem } from '../../client/problem.ts'
import {
  type RunContexts,
  type RunWithContext,
  type SavedContext,
  stateToSave,
} from '../../domain/browser-contexts/run-contexts.ts'
import type { Claim, Lease } from '../../domain/queue/attempts.ts'
import type { ReachedWait, WaitResults } from '../../domain/queue/run-options.ts'
import type { WaitRequest } from '../../domain/queue/waits.ts'
import { ArtifactError, type NewArtifact } from '../../domain/runs/artifact.ts'
import type { Report } from '../../domain/runs/run.ts'
import type { Outcome } from '../../domain/runs/run-state.ts'
import { formatStepResult, readStepResult } from '../../domain/runs/step-results.ts'
import { valueAt } from '../../openapi/json-pointer.ts'
import type { Topic } from '../../storage/store.ts'
import type { WorkerQueue } from '../worker.ts'
import { ClaimsAhead } from './claims-ahead.ts'
import type { WorkerCalls } from './worker-calls.ts'

type Schemas = components['schemas']
type NewEvent = Schemas['NewRunEvents']['events'][number]
type EventsBefore = { events?: Schemas['NewRunEvents'] }

/** The service refuses this worker, or cannot be reached for longer than a call is retried. */
export class RemoteError extends Error {
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.detail || problem.title)
    this.problem = problem
  }
}

/** For how long the service holds a request for runs open. */
const pollSeconds = 30
/** After a request for runs that failed. */
const pauseMilliseconds = 1000
/** The share of the lease within which a renewal must be answered. The next one is sent then. */
const renewalShare = 1 / 3
/** For how long a renewal tells which runs are cancelled. */
const freshMilliseconds = 200
/** Runs of one request. */
const claimsMax = 100
/** Events of one request. */
const eventsMax = 1000
/** Events that are sent with another report, as JSON. */
const eventBytesMax = 64 * 1024

interface Options {
  client: WorkerCalls
  workerId: string
  slots: number
  leaseSeconds: number
  /** Registers again, when the service no longer knows the worker. */
  register(): Promise<void>
  /** The clock of this machine, from which that of the service may differ. */
  now?: () => number
}

export class RemoteQueue implements WorkerQueue {
  readonly #options: Options
  /** By attempt: how many of its events the service has, and its last report. */
  readonly #events = new Map<string, { position: number; last: Promise<unknown> }>()
  /** Attempts of claims that have not ended. */
  readonly #executing = new Map<string, Schemas['LeaseOfAttempt']>()
  /** Storage states of browsers whose attempts are about to be completed, as JSON. */
  readonly #states = new Map<string, string>()
  /** Leases on cancelled runs, and when the service said so. */
  #cancelled: { leases: Lease[]; at: number } = { leases: [], at: 0 }
  readonly #stopping = new AbortController()
  readonly #listeners = { queue: new Set<() => void>(), cancellations: new Set<() => void>() }
  readonly #ahead: ClaimsAhead
  /** When the worker got each claim. */
  readonly #startedAt = new Map<string, number>()

  constructor(options: Options) {
    this.#options = options
    const handBack = (claim: Claim) => this.handBack(claim).catch(() => false)
    const poll = (countMax: number, waits: boolean) => this.#poll(countMax, waits ? pollSeconds : 0)
    this.#ahead = new ClaimsAhead({ slots: options.slots, poll, handBack })
  }

  /**
   * Calls `listener` after each claim, so that the worker claims again if it has a free slot, or when a run of the worker
   * may have been cancelled.
   */
  listen(topic: Topic, listener: () => void): () => void {
    if (topic !== 'queue' && topic !== 'cancellations') return () => {}
    this.#listeners[topic].add(listener)
    return () => {
      this.#listeners[topic].delete(listener)
      if (topic !== 'queue') return
      this.#stopping.abort()
      void this.#ahead.close()
    }
  }

  /** Resolves when there are runs, or after half a minute. */
  async claim(_workerId: string, _workflows: unknown, slots: number | (() => number)): Promise<Claim[]> {
    try {
      const claims = await this.#ahead.take(typeof slots === 'number' ? () => slots : slots)
      for (const claim of claims) this.#startedAt.set(keyOf(claim), performance.now())
      return claims
    } finally {
      // In the next turn, so that these runs have taken their slots.
      setImmediate(() => this.#notify('queue'))
    }
  }

  async #poll(count: number, waitSeconds: number): Promise<Claim[]> {
    const { client, workerId, leaseSeconds } = this.#options
    const { signal } = this.#stopping
    const countMax = Math.min(claimsMax, count)
    if (countMax < 1 || signal.aborted) return []
    const body = { countMax, waitSeconds, executing: [...this.#executing.values()] }
    const params = { path: { workerId } }
    const options = { signal, timeoutSeconds: 2 * pollSeconds, retries: 0 }
    const { data, error } = await client.claimRuns({ params, body, ...options })
    if (!error) {
      if (!data && waitSeconds > 0) this.#notify('cancellations')
      const leaseEnd = performance.now() + leaseSeconds * 1000
      return (data?.data ?? []).map((run) => ({ ...this.#toClaim(run), leaseEnd }))
    }
    if (signal.aborted) return []
    if (error.status === 404) await this.#options.register()
    else {
      await new Promise((resolve) => setTimeout(resolve, (error.retryAfterSeconds ?? 0) * 1000 + pauseMilliseconds))
      throw new RemoteError(error)
    }
    return []
  }

  #notify(topic: 'queue' | 'cancellations'): void {
    for (const listener of this.#listeners[topic]) listener()
  }

  #toClaim(run: Schemas['ClaimedRun']): Claim {
    const { runId, attempt, variableData: variables, browserContext, accountSecrets, settings } = run
    const files = run.files.map(({ bytes: sizeBytes, ...file }) => ({ ...file, sizeBytes }))
    this.#executing.set(keyOf(run), { runId, attempt })
    const secrets = Object.fromEntries(run.secrets.map((pointer) => [pointer, valueAt(variables, pointer)]))
    return {
      ...{ runId, attempt, workerId: this.#options.workerId, accountId: '', workflowId: run.workflowId },
      ...{ deploymentId: run.deploymentId, variables, number: run.number, hasWaits: run.hasWaits },
      secrets: run.secrets.length > 0 ? plainValues.encrypt(JSON.stringify(secrets)) : null,
      steps: run.steps.map(({ name, value, maskedSecrets: secrets = [] }) => {
        return { name, value: plainValues.encrypt(formatStepResult({ json: JSON.stringify(value), secrets })) }
      }),
      ...toContext(runId, browserContext),
      ...{ hasSignIn: false, signsIn: null },
      ...{ availableAt: Date.now(), executedMilliseconds: 0, timeLeftSeconds: run.timeLimitSeconds },
      ...{ parentRunId: run.parentRunId, traceContext: run.traceparent },
      declared: { secrets: accountSecrets, settings },
      files,
    }
  }

  async renew(workerId: string, leases: readonly Lease[]): Promise<Lease[]> {
    const { client, leaseSeconds } = this.#options
    const body = { leases: leases.map(({ runId, attempt }) => ({ runId, attempt })) }
    // The next renewal is the next try.
    const options = { retries: 0, timeoutSeconds: leaseSeconds * renewalShare }
    const { data, error } = await client.renewLeases({ params: { path: { workerId } }, body, ...options })
    if (error?.status === 404) {
      await this.#options.register()
      return []
    }
    if (error) throw new RemoteError(error)
    const toLease = ({ runId, attempt }: Schemas['AttemptLease']): Lease => ({ runId, attempt, workerId })
    this.#cancelled = { leases: data.cancelled.map(toLease), at: performance.now() }
    return [...data.extended.map(toLease), ...this.#cancelled.leases]
  }

  /** Asks by a renewal, unless one has just been answered. */
  async cancelRequested(workerId: string): Promise<Lease[]> {
    if (this.#executing.size === 0) return []
    const isFresh = performance.now() - this.#cancelled.at < freshMilliseconds
    if (!isFresh)
      await this.renew(
        workerId,
        [...this.#executing.values()].map((lease) => ({ ...lease, workerId })),
      )
    return this.#cancelled.leases
  }

  async report(lease: Lease, reports: readonly Report[]): Promise<boolean> {
    const events = reports.flatMap(toEvent)
    return events.length === 0 || this.#afterEarlierEvents(lease, () => this.#append(lease, events))
  }

  async #append(lease: Lease, events: NewEvent[]): Promise<boolean> {
    const sent = this.#eventsOf(lease)
    for (let start = 0; start < events.length; start += eventsMax) {
      const some = events.slice(start, start + eventsMax)
      const body = { position: sent.position, events: some }
      if (!isLeased(await this.#options.client.appendRunEvents({ ...pathOf(lease), body }))) return false
      sent.position += some.length
    }
    return true
  }

  /** Calls `send` with events, unless they are large and were sent before. Resolves with `undefined` if the lease is lost. */
  async #sendWith<Result extends { error?: Problem | undefined }>(
    lease: Lease,
    reports: readonly Report[],
    send: (before: EventsBefore) => Promise<Result>,
  ): Promise<Result | undefined> {
    const events = reports.flatMap(toEvent)
    return this.#afterEarlierEvents(lease, async () => {
      if (events.length === 0) return send({})
      if (events.length > eventsMax || Buffer.byteLength(JSON.stringify(events)) > eventBytesMax)
        return (await this.#append(lease, events)) ? send({}) : undefined
      const sent = this.#eventsOf(lease)
      const result = await send({ events: { position: sent.position, events } })
      if (!result.error) sent.position += events.length
      return result
    })
  }

  /** Sends one report of an attempt after the other: the service refuses events that arrive before earlier ones. */
  #afterEarlierEvents<Result>(lease: Lease, send: () => Promise<Result>): Promise<Result> {
    const sent = this.#eventsOf(lease)
    const sending = sent.last.then(send)
    sent.last = sending.catch(() => {})
    return sending
  }

  #eventsOf(lease: Lease) {
    const sent = this.#events.get(keyOf(lease)) ?? { position: 0, last: Promise.resolve() }
    this.#events.set(keyOf(lease), sent)
    return sent
  }

  async finishStep(
    lease: Lease,
    { name }: { name: string },
    encrypt: () => Uint8Array,
    reports: readonly Report[],
  ): Promise<boolean> {
    const value = JSON.parse(readStepResult(plainValues.decrypt(encrypt())).json)
    const params = { path: { ...pathOf(lease).params.path, stepName: name } }
    const { client } = this.#options
    const send = (before: EventsBefore) => client.putRunStep({ params, body: { value, ...before } })
    // The service reports the end of the step itself.
    const result = await this.#sendWith(lease, reports.slice(0, -1), send)
    return result !== undefined && isLeased(result)
  }

  async wait(
    lease: Lease,
    { reached, names, suspend }: WaitRequest,
    reports: readonly Report[],
  ): Promise<WaitResults | undefined> {
    const executed = suspend && { executedSeconds: suspend.executedMilliseconds / 1000 }
    const now = this.#options.now ?? Date.now
    const waits = reached.map((wait) => toNewWait(wait, now()))
    const body = { waits, names: [...names], suspend: suspend !== undefined, ...executed }
    const { client } = this.#options
    const send = (before: EventsBefore) => client.suspendAttempt({ ...pathOf(lease), body: { ...body, ...before } })
    const result = await this.#sendWith(lease, reports, send)
    if (!result || !isLeased(result)) return undefined
    const { suspended, ended, refused, deadlines } = result.data as Schemas['SuspendedAttempt']
    if (suspended) this.#forget(lease)
    return {
      ended: ended.map(({ name, outcome }) => ({ name, outcome: JSON.stringify(outcome ?? null) })),
      refused,
      deadlines: Object.fromEntries(deadlines.map(({ name, secondsLeft }) => [name, now() + secondsLeft * 1000])),
      isSuspended: suspended,
    }
  }

  /** Runs that sign in are for workers of the service: no attempt gets here. */
  async useCode(): Promise<undefined> {}

  async keepArtifact(lease: Lease, artifact: NewArtifact, reports: readonly Report[]): Promise<boolean> {
    if (!(await this.report(lease, reports))) return false
    const { name: artifactName, mediaType, content, kind } = artifact
    const body = { mediaType, content: Buffer.from(content).toString('base64'), evidence: kind === 'evidence' }
    const { path } = pathOf(lease).params
    const result = await this.#options.client.putAttemptArtifact({ params: { path: { ...path, artifactName } }, body })
    if (result.error?.status === 400 || result.error?.status === 413) throw new ArtifactError(describe(result.error))
    return isLeased(result)
  }

  /** The browser contexts of claimed runs. */
  readonly contexts = {
    read: (claim: Claim): ReturnType<RunContexts['read']> => this.#readContext(claim),
    /** Keeps the state for `complete`: the service stores it together with the outcome. */
    save: async (claim: Claim, ...[outcome, state]: Tail<Parameters<RunContexts['save']>>): Promise<SavedContext> => {
      const decided = stateToSave(claim, outcome, state)
      if (!('json' in decided)) return decided
      this.#states.set(keyOf(claim), decided.json)
      return { outcome, reports: [] }
    },
  }

  async #readContext(lease: Lease): Promise<string | undefined> {
    const { data, error } = await this.#options.client.getAttemptBrowserContext(pathOf(lease))
    if (error?.status === 404) return undefined
    if (error) throw new RemoteError(error)
    return JSON.stringify(data)
  }

  async complete(lease: Lease, outcome: Outcome, _retry: unknown, reports: readonly Report[] = []): Promise<boolean> {
    this.#ahead.ended(performance.now() - (this.#startedAt.get(keyOf(lease)) ?? 0))
    if (outcome.kind === 'workerStopped' || outcome.kind === 'workerLost') {
      const message = outcome.kind === 'workerLost' ? 'The attempt failed in the worker.' : undefined
      return (await this.report(lease, reports)) ? this.handBack(lease, message) : this.#forget(lease)
    }
    const result = await this.#sendWith(lease, reports, (before) => this.#sendOutcome(lease, outcome, before))
    this.#forget(lease)
    return result !== undefined && isLeased(result)
  }

  async #sendOutcome(lease: Lease, outcome: Outcome, before: EventsBefore) {
    const { client } = this.#options
    const state = this.#states.get(keyOf(lease))
    const storageState = state === undefined ? {} : { storageState: JSON.parse(state) }
    const body = { ...toBody(outcome), ...storageState, ...before }
    const result = await client.completeAttempt({ ...pathOf(lease), body })
    const isRefused = result.error?.status === 400 || result.error?.status === 413
    if (state === undefined || !result.error || !isRefused) return result
    const withoutIt = toBody(withoutState(outcome, result.error))
    return client.completeAttempt({ ...pathOf(lease), body: { ...withoutIt, ...before } })
  }

  async handBack(lease: Lease, message?: string): Promise<boolean> {
    const body = message === undefined ? {} : { message: message.slice(0, 1000) }
    const result = await this.#options.client.handBackAttempt({ ...pathOf(lease), body })
    this.#forget(lease)
    return isLeased(result)
  }

  /** The service itself keeps runs waiting. */
  waitForValue(lease: Lease, { detail }: { detail: string }): Promise<boolean> {
    return this.handBack(lease, detail)
  }

  #forget(lease: Lease): false {
    this.#executing.delete(keyOf(lease))
    this.#events.delete(keyOf(lease))
    this.#startedAt.delete(keyOf(lease))
    this.#states.delete(keyOf(lease))
    return false
  }
}

/** The service encrypts what it stores; on the way, values are as they are. */
export const plainValues = {
  encrypt: (text: string): Uint8Array => Buffer.from(text),
  decrypt: (bytes: Uint8Array): string => Buffer.from(bytes).toString(),
}

function keyOf({ runId, attempt }: Pick<Lease, 'runId' | 'attempt'>): string {
  return `${runId}/${attempt}`
}

function pathOf({ runId, attempt }: Lease) {
  return { params: { path: { runId, attempt } } }
}

/** Whether the service has taken the report. @throws {RemoteError} if it says neither. */
function isLeased({ error }: { error?: Problem | undefined }): boolean {
  if (error && error.status !== 409 && error.status !== 404) throw new RemoteError(error)
  return error === undefined
}

function describe({ detail, errors }: Problem): string {
  return errors?.map((each) => each.detail).join(' ') ?? detail
}

function toEvent({ type, data }: Report): NewEvent[] {
  const { attempt: _, wait, ...members } = data
  // The service reports states of waits, ends of steps and artifacts itself.
  if (type === 'log' || type === 'progress') {
    const { message, ...others } = members
    return [{ type, ...others, ...(message != null && { message }) } as NewEvent]
  }
  return type === 'step' && wait === undefined && members.state !== 'finished' ? [{ type, ...members } as NewEvent] : []
}

function toNewWait(wait: ReachedWait, now: number) {
  const { name, kind } = wait
  // Periods are sent as such: the clocks of this machine and of the service may differ.
  if (kind === 'sleep' && wait.isTime === true) return { name, kind, until: new Date(wait.deadline).toISOString() }
  if (kind === 'sleep') return { name, kind, seconds: Math.max(0, wait.deadline - now) / 1000 }
  if (kind === 'answer') {
    const { title, shown, deadline } = wait
    const timeoutSeconds = Math.max(0.001, (deadline - now) / 1000)
    return { name, kind, timeoutSeconds, ...(title !== null && { title }), ...(shown !== null && { show: shown }) }
  }
  const { workflowId, variables: variableData, options, isDetached: detached } = wait
  return { name, kind, workflowId, variableData, detached, options: options as Record<string, unknown> }
}

function toContext(
  runId: string,
  context: Schemas['ClaimedRun']['browserContext'],
): Omit<RunWithContext, 'runId' | 'accountId'> {
  if (context === null) return { browserContextId: null, persistContext: 'never', contextLease: null }
  const { id, persistContext } = context
  // The service knows the lease itself, and checks it.
  const contextLease = persistContext === 'never' ? null : { contextId: id, runId, fence: 0 }
  return { browserContextId: id, persistContext, contextLease }
}

/** How an attempt ends whose storage state the service does not take. */
function withoutState(outcome: Outcome, problem: Problem): Outcome {
  if (outcome.kind !== 'succeeded' && outcome.kind !== 'waiting') return outcome
  const message = `The storage state of the browser was refused: ${describe(problem)}`
  return { kind: 'failed', reason: 'contextNotSaved', error: { name: 'ContextNotSaved', message } }
}

type Tail<List extends unknown[]> = List extends [unknown, ...infer Rest] ? Rest : never

function toBody(outcome: Outcome): Schemas['AttemptOutcome'] {
  if (outcome.kind === 'succeeded') return { outcome: 'succeeded', output: outcome.output }
  if (outcome.kind === 'waiting')
    return { outcome: 'waiting', names: [...outcome.names], executedSeconds: outcome.executedMilliseconds / 1000 }
  // Such workflows are executed by workers of the service: this one signs nothing in.
  if (outcome.kind !== 'failed' && outcome.kind !== 'signedOut')
    return { outcome: outcome.kind === 'cancelled' ? 'cancelled' : 'timedOut' }
  const { name, message, stack = null, step = null } = outcome.error
  const reason = outcome.kind === 'failed' ? outcome.reason : 'workflowFailed'
  return { outcome: 'failed', reason, error: { name, message, stack, step } }
}
