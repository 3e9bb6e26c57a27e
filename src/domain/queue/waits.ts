/**
 * What runs wait for: a period, an answer, or the end of a run that they called. A worker stores the waits that a run has
 * reached, and suspends the run unless one of them has ended. A transaction that ends a wait has locked its run before; triggers of
 * the store let the run go on in the same transaction.
 */
import { v7 as uuid } from 'uuid'
import { findValueErrors } from '../../contract/value-checks.ts'
import type { ValueEncryption } from '../../storage/encryption.ts'
import {
  type CalledRun,
  callDepthMax,
  countWaiting,
  countWaits,
  depthOf,
  dueTimers,
  endAnswered,
  endedWaits,
  endWaitsOf,
  findCalledRun,
  findDelivered,
  findWaits,
  insertAnswer,
  insertWait,
  openKinds,
  reachAnswered,
  resume,
  setDelivered,
  setHasWaits,
  sizeOfSteps,
  suspend,
} from '../../storage/runs/wait-statements.ts'
import type { Transaction } from '../../storage/store.ts'
import type { RunsTable, RunWaitsTable, WaitKind } from '../../storage/tables/run-tables.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { renewFiles } from '../files/files.sql.ts'
import { stepBytesOfRunMax, stepsMax } from '../runs/reported-values.ts'
import { attemptsOf, type Report, stepAad, waitAad } from '../runs/run.ts'
import type { Suspension } from '../runs/run-state.ts'
import { readStepResult } from '../runs/step-results.ts'
import { waitSecondsMax } from '../workflows/author-arguments.ts'
import { addAttemptEnd, executedUntil } from './attempt-history.ts'
import type { Claim } from './attempts.ts'
import { insertRuns, type NewRun, waitForContexts } from './enqueue-batcher.ts'
import { toErrors } from './queue-problems.ts'
import { createRun } from './queue-request.ts'
import { callOptions, type ReachedWait, type WaitResults } from './run-options.ts'
import { appendEvents, statusReport, toNewEvent } from './runs.sql.ts'

export interface WaitRequest {
  /** Waits that the executor has not sent before. */
  reached: readonly ReachedWait[]
  /** All waits that the run waits for now. */
  names: readonly string[]
  /** If the run is to be suspended unless one of them has ended. */
  suspend: Suspension | undefined
  /** Inserts the only run that the request calls, and starts it. The caller is not suspended then. */
  insertStarted?: ((run: NewRun) => Promise<Claim>) | undefined
}

/** Waits that a run has reached before, or that were answered, by name. */
export type KnownWaits = ReadonlyMap<string, RunWaitsTable>

export function findWaitsOf(tx: Transaction, runId: string, reached: readonly ReachedWait[]): Promise<KnownWaits> {
  return findWaits(
    tx,
    runId,
    reached.map(({ name }) => name),
  )
}

export type StoredWaits = WaitResults & { started?: Claim | undefined }

export interface WaitDependencies {
  encryption: ValueEncryption
  workflows: WorkflowRegistry
  waitingRuns: WaitingRunsLimit
  /** From when a file is used until it expires. */
  fileRetentionMilliseconds?: number
}

/**
 * Stores waits of a locked run, hands over those that have ended, and otherwise suspends the run if the request says so.
 * Statements that do not depend on each other are sent together, which spares a remote store round trips.
 *
 * @param reports what the attempt has reported before.
 */
export async function reachWaits(
  tx: Transaction,
  dependencies: WaitDependencies,
  row: RunsTable,
  request: WaitRequest & { known: KnownWaits },
  reports: readonly Report[],
  at: number,
): Promise<StoredWaits> {
  const results: WaitResults = { ended: [], refused: [], deadlines: {}, isSuspended: false }
  const effects: Effects = { results, events: [...reports] }
  // The worker is about to end the attempt.
  if (row.cancel_requested === 1) {
    await appendEvents(tx, row.id, effects.events)
    return results
  }
  const { isNew, waits, children } = await check(tx, dependencies, row, request, effects, at)
  const setHas = async () => row.has_waits === 0 && tx.all(setHasWaits, [row.id])
  const [only] = children
  // With files, it takes several statements, which must not go on after another has failed.
  const hasFiles = children.some(({ files }) => files)
  const inserting = waits.map((values) => tx.all(insertWait, values))
  if (only && request.insertStarted && !hasFiles && waits.length === request.names.length) {
    const inserted = request.insertStarted(only)
    const started = toNewEvent(only.id, statusReport(1, 'running', null, at))
    const events = [...effects.events.map((each) => toNewEvent(row.id, each)), started]
    const appending = tx.statements.appendEvents(tx, events)
    const [claim] = await Promise.all([inserted, ...inserting, setHas(), appending])
    return { ...results, started: claim }
  }
  await Promise.all([...inserting, ...(hasFiles ? [] : [insertRuns(tx, children)])])
  if (hasFiles) await insertRuns(tx, children)
  const isFirst = isNew && row.has_waits === 0
  // A run that asks need not wait for the process that does the maintenance.
  const endDue = async () => isFirst || endWaitsOf(tx, row.id, request.names, at)
  const find = async () => (isFirst ? [] : findEnded(tx, row.id, request.names))
  const [, ended] = await Promise.all([endDue(), find()])
  await handOver(tx, dependencies.encryption, row, ended, effects, at)
  const isIdle = () => results.ended.length === 0 && results.refused.length === 0
  if (isIdle() && !isFirst) results.ended = await findHandedOver(tx, dependencies.encryption, row.id, request.names)
  if (request.suspend && isIdle()) {
    const kinds = isFirst ? request.reached.map(({ kind }) => kind) : undefined
    results.isSuspended = await suspendRun(tx, row, request.suspend, at, { ended, kinds, events: effects.events })
  }
  if (results.isSuspended) return results
  await Promise.all([setHas(), appendEvents(tx, row.id, effects.events)])
  return results
}

/** What a request leads to. */
interface Effects {
  results: WaitResults
  events: Report[]
}

interface CheckedWaits {
  /** Whether all of them are new. */
  isNew: boolean
  /** The rows of the new ones. */
  waits: ReturnType<typeof toValues>[]
  /** The runs that they call. */
  children: NewRun[]
}

/** Refuses waits, and stores what has changed of those that the run has reached before. */
async function check(
  tx: Transaction,
  dependencies: WaitDependencies,
  row: RunsTable,
  { reached, known }: { reached: readonly ReachedWait[]; known: KnownWaits },
  effects: Effects,
  at: number,
): Promise<CheckedWaits> {
  if (reached.length === 0) return { isNew: false, waits: [], children: [] }
  const { results, events } = effects
  const isAnyNew = known.size < reached.length
  const [total] = isAnyNew && row.has_waits === 1 ? await tx.all(countWaits, [row.id]) : []
  let count = total?.count ?? 0
  const children: NewRun[] = []
  const waits: ReturnType<typeof toValues>[] = []
  const refuse = (name: string, errorName: string, message: string) =>
    results.refused.push({ name, errorName, message })
  const { waitingRuns } = dependencies
  const isFull = isAnyNew && (await waitingRuns.isReached(tx, row.account_id))
  const depth = isAnyNew ? await findDepth(tx, row, reached) : 0
  for (const wait of reached) {
    const { name, kind } = wait
    const earlier = known.get(name)
    const invalid = findInvalid(wait, at)
    if (invalid !== undefined) {
      refuse(name, 'TypeError', invalid)
    } else if (earlier && earlier.kind !== kind) {
      refuse(name, 'WaitMismatch', `"${name}" was reached as ${earlier.kind} before, and as ${kind} now.`)
    } else if (earlier) {
      await reachAgain(tx, row, wait, earlier, effects, at)
    } else if (count >= stepsMax) {
      refuse(name, 'TooManyWaits', `A run may have at most ${stepsMax} waits.`)
    } else if (isFull) {
      refuse(name, 'TooManyWaitingRuns', `The account has reached its limit of ${waitingRuns.max} waiting runs.`)
    } else {
      const child = kind === 'run' ? await createChild(tx, dependencies, row, wait, depth) : undefined
      if (child && 'message' in child) refuse(name, 'CallRefused', child.message)
      else {
        if (child) children.push(child.run)
        count += 1
        waits.push(toValues(row, wait, child?.run.id ?? null, at))
        if (kind === 'sleep') results.deadlines[name] = wait.deadline
        events.push({ at, type: 'step', data: { attempt: attemptsOf(row), name, state: 'started', wait: kind } })
      }
    }
  }
  return { isNew: known.size === 0, waits, children }
}

/** A little more than the longest wait, for clocks that differ. */
const waitMillisecondsMax = (waitSecondsMax + 86_400) * 1000

/** Why the document does not allow the wait, whatever worker has reported it. */
function findInvalid(wait: ReachedWait, at: number): string | undefined {
  const { name, kind } = wait
  if (kind !== 'run' && wait.deadline - at > waitMillisecondsMax) return `The wait "${name}" is longer than 366 days.`
  const unknown = kind === 'run' && Object.keys(wait.options).find((each) => !(callOptions as string[]).includes(each))
  if (unknown) return `The call "${name}" has the option ${unknown}: use ${callOptions.join(', ')}.`
  const [error] = findValueErrors('Wait', kind === 'answer' ? { name, title: wait.title } : { name })
  return error && `The ${error.pointer.slice(1)} of a wait ${error.detail}.`
}

/** The deadline of a wait is that of the first time. An answer may have come before the run has reached its wait. */
async function reachAgain(
  tx: Transaction,
  row: RunsTable,
  wait: ReachedWait,
  earlier: RunWaitsTable,
  { results, events }: Effects,
  at: number,
): Promise<void> {
  if (wait.kind === 'sleep') results.deadlines[wait.name] = earlier.deadline ?? at
  if (wait.kind !== 'answer' || earlier.reached_at !== null) return
  const { name, deadline, title, shown } = wait
  await tx.all(reachAnswered, [at, deadline, title, shown && JSON.stringify(shown), row.id, name])
  events.push({ at, type: 'step', data: { attempt: attemptsOf(row), name, state: 'started', wait: 'answer' } })
}

function toValues(row: RunsTable, wait: ReachedWait, childId: string | null, at: number) {
  const { name, kind } = wait
  const { title, shown } = kind === 'answer' ? wait : { title: null, shown: null }
  const deadline = kind === 'run' ? null : wait.deadline
  const isDetached = kind === 'run' && wait.isDetached ? 1 : 0
  return [
    ...[row.id, name, uuid(), row.account_id, row.workflow_id, kind, at, deadline, childId, isDetached],
    ...[title, shown && JSON.stringify(shown)],
  ]
}

const countedMilliseconds = 10_000
const countedAccountsMax = 10_000

/**
 * The limit of an account's waiting runs. Far from it, runs are counted after half of the rest has been used, or after 10
 * seconds: with 100,000 waiting runs, a count takes 5 ms. Several processes may exceed the limit by what is left to each.
 */
export class WaitingRunsLimit {
  readonly max: number
  readonly #left = new Map<string, { count: number; until: number }>()

  /** @param max 0 for no limit. */
  constructor(max: number) {
    this.max = max
  }

  async isReached(tx: Transaction, accountId: string): Promise<boolean> {
    if (this.max === 0) return false
    const known = this.#left.get(accountId)
    if (known && known.count > 0 && performance.now() < known.until) {
      known.count -= 1
      return false
    }
    const [waiting] = await tx.all(countWaiting, [accountId, this.max])
    const left = this.max - (waiting?.count ?? 0)
    if (this.#left.size >= countedAccountsMax) this.#left.clear()
    this.#left.set(accountId, { count: Math.floor(left / 2), until: performance.now() + countedMilliseconds })
    return left <= 0
  }
}

/** The number of runs above one that calls others. */
async function findDepth(tx: Transaction, row: RunsTable, reached: readonly ReachedWait[]): Promise<number> {
  if (row.parent_run_id === null || !reached.some(({ kind }) => kind === 'run')) return 0
  const [caller] = await tx.all(depthOf, [row.id])
  return caller?.depth ?? 0
}

/** By the current deployment of the account, for the caller's caller. */
async function createChild(
  tx: Transaction,
  dependencies: WaitDependencies,
  row: RunsTable,
  wait: Extract<ReachedWait, { kind: 'run' }>,
  depth: number,
): Promise<{ run: NewRun } | { message: string }> {
  if (depth >= callDepthMax) return { message: `Runs may call each other at most ${callDepthMax} levels deep.` }
  const { workflowId, variables, options } = wait
  const queuer = { accountId: row.account_id, apiKeyId: row.api_key_id, userId: row.user_id }
  const created = createRun(dependencies, queuer, { ...options, workflowId, variables, parent: row.id })
  if (created.kind !== 'created') {
    const errors = toErrors(created).map(({ member, pointer, detail }) => `${member}${pointer} ${detail}`)
    return { message: `The call of workflow ${workflowId} is refused: ${errors.join('; ')}.` }
  }
  const { fileRetentionMilliseconds: retentionMilliseconds = 0 } = dependencies
  const expiry = { now: created.run.created_at, retentionMilliseconds }
  const [unknown] = await renewFiles(tx, row.account_id, created.run.files ?? [], expiry)
  if (unknown)
    return {
      message: `The call of workflow ${workflowId} is refused: variableData${unknown.pointer} ${unknown.detail}.`,
    }
  const placed = await waitForContexts(tx, row.account_id, [created.run])
  if (placed.kind !== 'enqueued') return { message: 'browserContextId names no browser context of this account.' }
  return { run: placed.runs[0] as NewRun }
}

// Hands outcomes over to a run: each is stored as a step's result, so that later parts and attempts repeat it.

async function handOver(
  tx: Transaction,
  encryption: ValueEncryption,
  row: RunsTable,
  ended: readonly RunWaitsTable[],
  { results, events }: Effects,
  at: number,
): Promise<void> {
  if (ended.length === 0) return
  const [[steps], ...outcomes] = await Promise.all([
    tx.all(sizeOfSteps, [row.id]),
    ...ended.map((wait) => outcomeOf(tx, encryption, wait)),
  ])
  let { last = 0, bytes = 0 } = steps ?? {}
  const writes: Promise<unknown>[] = []
  for (const [index, wait] of ended.entries()) {
    const outcome = outcomes[index] as string
    bytes += Buffer.byteLength(outcome)
    if (bytes > stepBytesOfRunMax) {
      const message = `The results of this run's steps and waits have more than ${stepBytesOfRunMax} bytes as JSON with that of "${wait.name}".`
      results.refused.push({ name: wait.name, errorName: 'RangeError', message })
      continue
    }
    last += 1
    const value = encryption.encrypt(outcome, stepAad(row.id, wait.name))
    writes.push(tx.all(tx.statements.insertStep, [row.id, wait.name, value, last]))
    writes.push(tx.all(setDelivered, [row.id, wait.name]))
    events.push({
      at,
      type: 'step',
      data: { attempt: attemptsOf(row), name: wait.name, state: 'finished', wait: wait.kind },
    })
    results.ended.push({ name: wait.name, outcome })
  }
  await Promise.all(writes)
}

/**
 * Hands over what has ended of a locked run before its code asks. What is refused, its next part learns.
 *
 * @param names of the waits; all by default.
 */
export async function handOverAtOnce(
  tx: Transaction,
  encryption: ValueEncryption,
  row: RunsTable,
  at: number,
  names?: readonly string[],
): Promise<void> {
  const results: WaitResults = { ended: [], refused: [], deadlines: {}, isSuspended: false }
  const events: Report[] = []
  await handOver(tx, encryption, row, await findEnded(tx, row.id, names), { results, events }, at)
  await appendEvents(tx, row.id, events)
}

/** Those of these waits, or of all, that have ended, and whose outcomes the run has not got. */
export async function findEnded(tx: Transaction, runId: string, names?: readonly string[]): Promise<RunWaitsTable[]> {
  const awaited = names && new Set(names)
  return (await tx.all(endedWaits, [runId])).filter(({ name }) => awaited?.has(name) ?? true)
}

/** The outcomes of these waits that the run should have got: a worker that asks for them has not got the response. */
async function findHandedOver(
  tx: Transaction,
  encryption: ValueEncryption,
  runId: string,
  names: readonly string[],
): Promise<WaitResults['ended']> {
  const rows = await findDelivered(tx, runId, names)
  return rows.map(({ name, value }) => {
    return { name, outcome: readStepResult(encryption.decrypt(value, stepAad(runId, name))).json }
  })
}

/** What the author's call resolves with, as JSON. */
async function outcomeOf(tx: Transaction, encryption: ValueEncryption, wait: RunWaitsTable): Promise<string> {
  const { run_id, name, kind, status, value, child_run_id } = wait
  if (kind === 'sleep') return 'null'
  if (kind === 'answer') {
    if (status !== 'completed' || value === null) return '{"ok":false}'
    return `{"ok":true,"value":${encryption.decrypt(value, waitAad(run_id, name))}}`
  }
  const [called] = child_run_id === null ? [] : await tx.all(findCalledRun, [child_run_id])
  return describeCalled(child_run_id, called)
}

/** @param output JSON */
export function toOutcomeOfSuccess(output: string | null | undefined): string {
  return `{"ok":true,"output":${output ?? 'null'}}`
}

function describeCalled(id: string | null, called: CalledRun | undefined): string {
  if (called?.status === 'succeeded') return toOutcomeOfSuccess(called.output)
  const error = called?.error ? JSON.parse(called.error) : null
  return JSON.stringify({ ok: false, runId: id, status: called?.status ?? 'deleted', error })
}

/** The result of the call of this run as JSON, if the run has ended. */
export async function findOutcomeOfCalled(tx: Transaction, id: string): Promise<string | undefined> {
  const [called] = await tx.all(findCalledRun, [id])
  return called?.finished_at == null ? undefined : describeCalled(id, called)
}

// Suspends runs.

/** Shown for a run that waits for several: the one that most likely needs something from outside. */
const precedence: readonly WaitKind[] = ['answer', 'run', 'sleep']

/** What the same transaction has read, and events to append. */
interface Known {
  ended?: readonly RunWaitsTable[]
  kinds?: readonly WaitKind[] | undefined
  events: readonly Report[]
}

/**
 * Suspends the run, which goes on at once if a wait has ended while the worker saved the browser's state. Returns false if
 * it waits for nothing.
 */
export async function suspendRun(
  tx: Transaction,
  row: RunsTable,
  { executedMilliseconds, names }: Suspension,
  at: number,
  before: Known = { events: [] },
): Promise<boolean> {
  const kinds = new Set(before.kinds ?? (await tx.all(openKinds, [row.id])).map(({ kind }) => kind))
  const ended = before.ended ?? (await findEnded(tx, row.id, names))
  const waitingFor = precedence.find((kind) => kinds.has(kind)) ?? ended[0]?.kind
  if (waitingFor === undefined) return false
  const [, ends] = await Promise.all([
    appendEvents(tx, row.id, [...before.events, statusReport(attemptsOf(row), 'waiting', 'waiting', at)]),
    addAttemptEnd(tx, row, at),
  ])
  await Promise.all([
    tx.all(suspend, [waitingFor, executedMilliseconds, ends, executedUntil(row, at), row.id]),
    ended.length > 0 ? tx.all(resume, [at, row.id]) : undefined,
  ])
  return true
}

// Ends waits: by time, and by answers.

/** The runs that have waits whose time has come, 500 at most. */
export async function findDueWaits(tx: Transaction, now: number): Promise<string[]> {
  return [...new Set((await tx.all(dueTimers, [now])).map(({ run_id }) => run_id))]
}

/** Who answered, and from which address. */
export type CompletedBy = ({ apiKeyId: string } | { userId: string } | { link: string }) & { address: string | null }

export interface Answer {
  name: string
  /** JSON. */
  value: string
  by: CompletedBy
}

export type AnswerResult =
  | { kind: 'answered' | 'repeated'; wait: RunWaitsTable }
  /** Another answer came before, the time was over, or the run has ended. */
  | { kind: 'otherAnswer' | 'timedOut' | 'ended' | 'noAnswer'; wait: RunWaitsTable | undefined }

/**
 * Stores an answer, which the run gets exactly once, also if it has not reached the wait yet. The first answer counts.
 *
 * @param row the locked run. The value must fit the declared schema of the wait.
 */
export async function answerWait(
  tx: Transaction,
  encryption: ValueEncryption,
  row: RunsTable,
  { name, value, by }: Answer,
  at: number,
): Promise<AnswerResult> {
  const aad = waitAad(row.id, name)
  const find = async () => (await findWaits(tx, row.id, [name])).get(name)
  const wait = await find()
  if (wait && wait.kind !== 'answer') return { kind: 'noAnswer', wait }
  if (wait?.status === 'completed' && wait.value !== null) {
    const isSame = encryption.decrypt(wait.value, aad) === value
    return isSame ? { kind: 'repeated', wait } : { kind: 'otherAnswer', wait }
  }
  if (row.finished_at !== null) return { kind: 'ended', wait }
  if (wait && wait.status !== 'open') return { kind: 'timedOut', wait }
  const encrypted = encryption.encrypt(value, aad)
  const completedBy = JSON.stringify(by)
  if (wait) {
    await tx.all(endAnswered, [at, completedBy, encrypted, row.id, name])
    // Spares the run that goes on a transaction. Others get it when they ask: in the order of what has ended for them.
    if (row.status === 'waiting') await handOverAtOnce(tx, encryption, row, at, [name])
  } else {
    const { id, account_id, workflow_id } = row
    await tx.all(insertAnswer, [id, name, uuid(), account_id, workflow_id, at, completedBy, encrypted])
  }
  return { kind: 'answered', wait: (await find()) as RunWaitsTable }
}
