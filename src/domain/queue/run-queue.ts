/**
 * The queue as workers use it: claim runs under a lease, extend leases, report on attempts and complete them. Every
 * report names the attempt as its fencing token, so that a worker paused past its lease changes nothing.
 */
import { Contents } from '../../storage/blobs/contents.ts'
import type { Store, Transaction, WriteOptions } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables/run-tables.ts'
import type { ValueWait } from '../account-values/declared-values.ts'
import { useTotpStep } from '../browser-contexts/sign-ins.sql.ts'
import type { NewArtifact } from '../runs/artifact.ts'
import type { Report } from '../runs/run.ts'
import {
  type FinishedRun,
  noRetry,
  type Outcome,
  type RetryPolicy,
  type RunObserver,
  type RunStatus,
} from '../runs/run-state.ts'
import { type PreparedArtifact, putArtifact, storeArtifact } from './attempt-artifacts.ts'
import {
  type Claim,
  completeAttempt,
  type EndedAttempt,
  finishSuccesses,
  handBack,
  insertStarted,
  type Lease,
  nextStateOfRow,
  recordReports,
  type Success,
  waitForValue,
  waitInAttempt,
} from './attempts.ts'
import { type CalledRun, type ClaimableWorkflows, RunClaims } from './claim.ts'
import { Batcher, type NewRun } from './enqueue-batcher.ts'
import type { WaitResults } from './run-options.ts'
import {
  findEnded,
  findOutcomeOfCalled,
  findWaitsOf,
  handOverAtOnce,
  type KnownWaits,
  type StoredWaits,
  toOutcomeOfSuccess,
  type WaitDependencies,
  type WaitRequest,
} from './waits.ts'

export interface RunQueueOptions {
  /** How many runs of one account may run at the same time, over all workers; 0 for no limit. */
  accountConcurrency?: number
  now?: () => number
  observer?: RunObserver
  /** By default, all contents are in rows. */
  contents?: Contents
  /** For runs that wait; without it, none may. */
  waits?: WaitDependencies
}

/** The slot of an attempt that calls a run: its worker can execute the called run in it. */
export interface CallerSlot {
  workflows: ClaimableWorkflows
  leaseSeconds: number
}

/** A called run that executes in the slot of its caller. */
export interface StartedCall {
  claim: Claim
  /** The result of the call as JSON, if the run has ended. */
  outcome(): Promise<string | undefined>
}

export class RunQueue {
  readonly #store: Store
  readonly #claims: RunClaims
  readonly #now: () => number
  readonly #observer: RunObserver | undefined
  readonly #contents: Contents
  readonly #waits: WaitDependencies | undefined
  /** The outcomes of called runs that have succeeded, until their callers ask. */
  readonly #called = new Map<string, string | undefined>()
  readonly #successes: Batcher<Success, FinishedRun | undefined>

  constructor(
    store: Store,
    { accountConcurrency = 0, now = Date.now, observer, contents = new Contents(store), waits }: RunQueueOptions = {},
  ) {
    this.#store = store
    this.#claims = new RunClaims(store, { accountConcurrency, now })
    this.#now = now
    this.#observer = observer
    this.#contents = contents
    this.#waits = waits
    this.#successes = new Batcher(store, (tx, successes) => finishSuccesses(tx, successes, this.#now()), {
      oneStatement: true,
    })
  }

  /** See `RunClaims.claim`. */
  claim(...request: Parameters<RunClaims['claim']>): Promise<Claim[]> {
    return this.#claims.claim(...request)
  }

  /**
   * Extends the given leases; returns those that the worker still has. Others expire: if the connection was lost during
   * the commit of a claim, the worker does not know about it, and another must take the run.
   */
  async renew(workerId: string, leases: readonly Lease[], leaseSeconds: number): Promise<Lease[]> {
    if (leases.length === 0) return []
    const until = this.#now() + leaseSeconds * 1000
    const ids = leases.map(({ runId }) => runId)
    const extend = (tx: Transaction) => tx.statements.extendLeases(tx, workerId, ids, until)
    const runs = await this.#store.write(extend, { concurrent: true, oneStatement: true })
    return runs.map(({ id, attempts }) => ({ runId: id, attempt: attempts, workerId }))
  }

  /** The worker's leases on runs that a caller has cancelled. */
  async cancelRequested(workerId: string): Promise<Lease[]> {
    const { read } = this.#store
    return (await read.all(read.statements.cancelledLeases, [workerId])).map(({ id, attempts }) => ({
      runId: id,
      attempt: attempts,
      workerId,
    }))
  }

  /** Appends events to the run, and stores the last progress among them. False when the lease was lost. */
  async report(lease: Lease, reports: readonly Report[]): Promise<boolean> {
    return this.withLease(lease, (tx) => recordReports(tx, lease, reports))
  }

  /**
   * Appends events and stores a step's result for later attempts. False when the lease was lost.
   *
   * @param step its position among the finished steps of the run, from 1.
   * @param encrypt called for each attempt to write the result, since the encryption key may have changed.
   */
  async finishStep(
    lease: Lease,
    { name, position }: { name: string; position: number },
    encrypt: () => Uint8Array,
    reports: readonly Report[],
  ): Promise<boolean> {
    return this.withLease(lease, async (tx) => {
      await Promise.all([
        tx.all(tx.statements.insertStep, [lease.runId, name, encrypt(), position]),
        recordReports(tx, lease, reports),
      ])
    })
  }

  /**
   * Stores the waits that a run has reached, and the runs that it calls. Suspends the run if the request says so and none
   * of the waits has ended. If it waits for one run only, which can start at once in the given slot, that run is started
   * instead, and the caller keeps its lease. `undefined` when the lease was lost.
   */
  async wait(
    lease: Lease,
    { slot, ...request }: WaitRequest & { slot?: CallerSlot | undefined },
    reports: readonly Report[],
    // A power cut ends an attempt of this machine too, and undoes nothing that a later write of the run, or of a called one,
    // includes.
    options: WriteOptions = { durableLater: true },
  ): Promise<(WaitResults & { started?: StartedCall | undefined }) | undefined> {
    const dependencies = this.#waits
    if (!dependencies) throw new Error('Runs of this queue cannot wait.')
    const only = slot && findOnlyCall(request)
    let results: StoredWaits | undefined
    const findReached = (tx: Transaction) => findWaitsOf(tx, lease.runId, request.reached)
    const wait = async (tx: Transaction, row: RunsTable, known: KnownWaits) => {
      const at = this.#now()
      const canStart = only && this.#claims.canStartCalled(row, only, slot.workflows)
      const start = (run: NewRun) => {
        const leaseExpiresAt = at + (slot as CallerSlot).leaseSeconds * 1000
        return insertStarted(tx, run, { workerId: lease.workerId, at, leaseExpiresAt })
      }
      const given = { ...request, known, insertStarted: canStart ? start : undefined }
      results = await waitInAttempt(tx, dependencies, row, given, reports, at)
    }
    await this.withLease(lease, wait, options, findReached)
    const hasQueued = request.reached.some(({ kind }) => kind === 'run') && !results?.started
    if (results?.isSuspended || hasQueued) this.#store.notify('queue')
    return results && { ...results, started: results.started && this.#toCall(results.started) }
  }

  /** Remembers the output of the called run, if it succeeds. */
  #toCall(claim: Claim): StartedCall {
    const { runId } = claim
    this.#called.set(runId, undefined)
    const outcome = async () => {
      const known = this.#called.get(runId)
      this.#called.delete(runId)
      return known ?? findOutcomeOfCalled(this.#store.read, runId)
    }
    return { claim, outcome }
  }

  /**
   * The results of the steps of a claimed run, with the outcomes of its waits that have ended meanwhile. `undefined` when
   * the lease was lost.
   */
  async takeEnded(lease: Lease): Promise<Claim['steps'] | undefined> {
    const { read } = this.#store
    const dependencies = this.#waits
    let steps: Claim['steps'] | undefined
    if (!dependencies || (await findEnded(read, lease.runId)).length === 0)
      return read.all(read.statements.findSteps, [lease.runId])
    await this.withLease(lease, async (tx, row) => {
      await handOverAtOnce(tx, dependencies.encryption, row, this.#now())
      steps = await tx.all(tx.statements.findSteps, [row.id])
    })
    return steps
  }

  /**
   * Stores that a run which signs in gets the one-time code of a time step. False if its browser context has used the code
   * of this step or of a later one. `undefined` when the lease was lost.
   */
  async useCode(lease: Lease, step: number): Promise<boolean | undefined> {
    let isNew: boolean | undefined
    await this.withLease(lease, async (tx, { browser_context_id: contextId, signs_in: kind }) => {
      isNew = contextId !== null && kind === 'signIn' && (await useTotpStep(tx, contextId, lease.runId, step))
    })
    return isNew
  }

  /** Stores an artifact of the run. False when the lease was lost. @throws {ArtifactError} */
  async keepArtifact(lease: Lease, artifact: NewArtifact, reports: readonly Report[]): Promise<boolean> {
    const stores = { contents: this.#contents, store: this.#store }
    const withLease = (work: (tx: Transaction) => Promise<void>) => this.withLease(lease, work)
    const put = async (tx: Transaction, prepared: PreparedArtifact) => {
      await putArtifact(tx, lease, prepared, this.#now())
      await recordReports(tx, lease, reports)
    }
    return storeArtifact(stores, lease, artifact, withLease, put)
  }

  /**
   * Ends the attempt: the run finishes or is queued again. False when the lease was lost; nothing has changed then.
   *
   * @param within writes in the same transaction, and may return further events.
   */
  async complete(
    lease: Lease & Partial<Pick<Claim, 'number' | 'parentRunId'>>,
    outcome: Outcome,
    retry: RetryPolicy,
    reports: readonly Report[] = [],
    within?: (tx: Transaction, next: RunStatus) => Promise<readonly Report[]>,
  ): Promise<boolean> {
    if (outcome.kind === 'succeeded' && !within) {
      const succeeded = await this.#successes.add({ lease, output: outcome.output, reports })
      if (succeeded) {
        this.#observer?.finished(succeeded)
        this.#store.notify('runs')
        const hasWaitingCaller = this.#called.has(lease.runId)
        if (hasWaitingCaller) this.#called.set(lease.runId, toOutcomeOfSuccess(JSON.stringify(outcome.output)))
        const mayResume = lease.parentRunId && !hasWaitingCaller
        if (this.#claims.hasLimits || mayResume) this.#store.notify('queue')
        return true
      }
    }
    let ended: EndedAttempt | undefined
    const complete = async (tx: Transaction, row: RunsTable) => {
      const more = (await within?.(tx, nextStateOfRow(row, outcome, retry).status)) ?? []
      await recordReports(tx, lease, [...reports, ...more])
      ended = await completeAttempt(tx, row, outcome, retry, this.#now(), this.#waits)
    }
    const completed = await this.withLease(lease, complete, { mayEnd: true })
    if (completed && ended?.failed) this.#observer?.attemptFailed?.(ended.failed)
    if (completed && ended?.signedOut) this.#observer?.signedOut?.(ended.signedOut)
    if (completed && ended?.signIn) this.#observer?.signInEnded?.(ended.signIn)
    if (completed && ended?.finished) this.#observer?.finished(ended.finished)
    if (completed) this.#store.notify('queue')
    return completed
  }

  /**
   * Returns a run whose deployment the worker cannot get to the queue, with a growing delay and without counting the
   * attempt. A cancelled run ends. False when the lease was lost.
   *
   * @param message why, in a sentence for callers.
   */
  async handBack(lease: Lease, message: string): Promise<boolean> {
    return this.#return(lease, (tx, row, at) => handBack(tx, row, message, at))
  }

  /**
   * Returns a run to the queue until its account has what its workflow declares, without counting the attempt. A cancelled
   * run ends. False when the lease was lost.
   */
  async waitForValue(lease: Lease, wait: ValueWait): Promise<boolean> {
    return this.#return(lease, (tx, row, at) => waitForValue(tx, row, wait, at))
  }

  async #return(
    lease: Lease,
    returnRun: (tx: Transaction, row: RunsTable, at: number) => Promise<void>,
  ): Promise<boolean> {
    let finished: FinishedRun | undefined
    const endOrReturn = async (tx: Transaction, row: RunsTable) => {
      const at = this.#now()
      if (row.cancel_requested === 0) return returnRun(tx, row, at)
      finished = (await completeAttempt(tx, row, { kind: 'cancelled' }, noRetry, at)).finished
    }
    const isLeased = await this.withLease(lease, endOrReturn, { mayEnd: true })
    if (finished) this.#observer?.finished(finished)
    if (isLeased) this.#store.notify('queue')
    return isLeased
  }

  /**
   * Writes in a transaction that has locked the leased run. False when the lease was lost.
   *
   * @param options `mayEnd` if `work` may end the run.
   * @param read reads what `work` needs, in the round trip that locks the run.
   */
  async withLease<Found = undefined>(
    { runId, attempt, workerId }: Lease,
    work: (tx: Transaction, row: RunsTable, found: Found) => Promise<void>,
    { mayEnd = false, ...options }: WriteOptions & { mayEnd?: boolean } = {},
    read?: (tx: Transaction) => Promise<Found>,
  ): Promise<boolean> {
    const workIfLeased = async (tx: Transaction) => {
      const lockingOthers = mayEnd ? tx.statements.lockEnding(tx, [runId]) : undefined
      const locking = tx.all(tx.statements.lockLeasedRun, [runId, attempt, workerId])
      const [[row], found] = await Promise.all([locking, read?.(tx), lockingOthers])
      if (row) await work(tx, row, found as Found)
      return row !== undefined
    }
    const isLeased = await this.#store.write(workIfLeased, { ...options, concurrent: true })
    if (isLeased) this.#store.notify('runs')
    return isLeased
  }
}

/** The call that the run has just reached, if it waits for nothing else. */
function findOnlyCall({ reached, names, suspend }: WaitRequest): CalledRun | undefined {
  const [wait] = reached
  return suspend && wait?.kind === 'run' && names.length === 1 && names[0] === wait.name ? wait : undefined
}
