/**
 * What workers do with runs: claim them under a lease, report on them, end attempts. Every report names the attempt,
 * which is the fencing token: a worker that was paused past its lease changes nothing any more.
 */
import type { Store, Transaction } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables.ts'
import { type NewArtifact, putArtifact } from './artifacts.ts'
import { type Report, record } from './attempt-reports.ts'
import { type Claim, type Claimable, findClaimable, type Lease, startAttempt, takeWithoutContext } from './claim.ts'
import { completeAttempt, nextOf } from './completion.ts'
import { leaseContextFor } from './context-waiting.ts'
import { attemptedBy, type Dispatcher, dispatcherFor } from './dispatcher.ts'
import { FairSchedule } from './fair-scheduling.ts'
import { cancelledLeases, heldRun, prolong } from './leases.ts'
import type { FinishedRun, RunObserver } from './run-observer.ts'
import type { Outcome, RunStatus } from './run-state.ts'

export interface QueueOptions {
  accountConcurrency?: number
  now?: () => number
  /** Told of the runs that finish here. */
  observer?: RunObserver
}

/** In one transaction. */
const passedOverMax = 100

/** Bounds how long looking for a run takes, of which there may be none: 500 are looked at each time. */
const looksMax = 4

interface ClaimOptions {
  workerId: string
  slots: number
  leaseSeconds: number
  /** Whether no other process claims at the same time. */
  alone: boolean
}

/** Runs that change the same browser context go one after the other in their order: they are claimed by one at a time. */
class TurnNeeded extends Error {}

export class RunQueue {
  readonly #store: Store
  readonly #handout: Dispatcher
  readonly #accountConcurrency: number
  readonly #now: () => number
  readonly #observer: RunObserver | undefined
  /** The account that had the last turn here. */
  #lastAccount = ''

  /** @param accountConcurrency how many runs of one account may run at the same time, anywhere; 0 for any number. */
  constructor(store: Store, { accountConcurrency = 0, now = Date.now, observer }: QueueOptions = {}) {
    this.#store = store
    this.#handout = dispatcherFor(store)
    this.#accountConcurrency = accountConcurrency
    this.#now = now
    this.#observer = observer
  }

  /**
   * Claims up to `slots` runs within the concurrency limits of their workflows and accounts: accounts take turns, and
   * of each the highest priority goes first, then the oldest.
   */
  async claim(
    workerId: string,
    workflows: readonly Claimable[],
    slots: number,
    leaseSeconds: number,
  ): Promise<Claim[]> {
    // Most wake-ups find nothing; reading first spares them a write transaction.
    const turns = await this.#findTurns(workflows)
    if (!turns.next()) return []
    await this.#handout.open(turns.heads)
    // Two that count at the same time would both find room for one more.
    let alone =
      !this.#store.jobs ||
      this.#accountConcurrency > 0 ||
      workflows.some(({ concurrencyLimit }) => concurrencyLimit !== null)
    let more = true
    let known: FairSchedule | undefined = turns
    const claims: Claim[] = []
    // Each passed-over run is one statement: others write between two batches of them.
    while (more) {
      const lease = { workerId, slots: slots - claims.length, leaseSeconds, alone }
      // Who counts does so in the transaction. What others have taken since it was read, is taken by nobody else.
      const seen = alone ? undefined : known?.copy()
      known = undefined
      const claim = async (tx: Transaction) =>
        this.#claimSome(tx, seen?.copy() ?? (await this.#turns(tx, workflows)), lease)
      const batch = this.#store.write(claim, {
        concurrent: true,
        ...(alone && { exclusive: 'claim' }),
      })
      // What an earlier batch has claimed is not to be lost with this one: its runs would wait until their leases have run out.
      const taken = await batch.catch((error: unknown) => {
        if (error instanceof TurnNeeded) {
          alone = true
          return { claims: [], more: true }
        }
        if (claims.length === 0) throw error
        return { claims: [], more: false }
      })
      more = taken.more
      claims.push(...taken.claims)
    }
    this.#lastAccount = claims.at(-1)?.accountId ?? this.#lastAccount
    if (claims.length > 0) this.#store.notify('runs')
    return claims
  }

  /**
   * However many accounts are at a limit, or have runs for other workers alone, those behind them get their turn: if not
   * now, then when the worker asks again, which goes on from there.
   */
  async #findTurns(workflows: readonly Claimable[]): Promise<FairSchedule> {
    for (let look = 1; ; look += 1) {
      const turns = await this.#turns(this.#store.read, workflows)
      if (turns.last === undefined || turns.next()) return turns
      this.#lastAccount = turns.last
      if (look === looksMax) return turns
    }
  }

  #turns(tx: Transaction, workflows: readonly Claimable[]): Promise<FairSchedule> {
    const claimer = { workflows, accountConcurrency: this.#accountConcurrency, after: this.#lastAccount }
    return FairSchedule.read(tx, claimer, this.#now())
  }

  /** As many as one transaction may take; returns whether there may be more. */
  async #claimSome(
    tx: Transaction,
    turns: FairSchedule,
    { workerId, slots, leaseSeconds, alone }: ClaimOptions,
  ): Promise<{ claims: Claim[]; more: boolean }> {
    const claims: Claim[] = []
    for (let passedOver = 0; claims.length < slots; ) {
      const at = this.#now()
      const head = turns.next()
      if (!head) break
      // Before its job is taken, which others would pass over meanwhile.
      if (head.browser_context_id !== null && !alone) throw new TurnNeeded()
      const ticket = await this.#handout.take(tx, head)
      if (!ticket) {
        turns.drop(head)
        continue
      }
      const until = at + leaseSeconds * 1000
      const taking = { ticket, workflow: head.workflow, workerId, at, until }
      const claim = await takeWithoutContext(tx, taking)
      if (claim) {
        claims.push(claim)
        if (claims.length < slots) await turns.served(tx, head, at)
        continue
      }
      const run = await findClaimable(tx, taking)
      if (run?.browser_context_id != null && !alone) throw new TurnNeeded()
      const hold = run && (await leaseContextFor(tx, run, at))
      if (hold === undefined || hold === 'wait') {
        // Not ended: pg-boss gives out again what has been at work for a day, and such a run may need its job again.
        await this.#handout.park(tx, attemptedBy(head, ticket))
        await turns.passOver(tx, head, at)
        if (++passedOver === passedOverMax) return { claims, more: true }
        continue
      }
      claims.push(await startAttempt(tx, taking, hold))
      if (claims.length < slots) await turns.served(tx, head, at)
    }
    return { claims, more: false }
  }

  /**
   * Prolongs the worker's leases; returns those that it still holds. Of no others: a claim may have been written down
   * whose answer was lost with the connection, and nobody is at work on such a run.
   */
  async renew(workerId: string, leases: readonly Lease[], leaseSeconds: number): Promise<Lease[]> {
    if (leases.length === 0) return []
    const until = this.#now() + leaseSeconds * 1000
    const renew = async (tx: Transaction) => {
      const held = await prolong(tx, workerId, leases, until)
      await this.#handout.touch(tx, held)
      return held
    }
    const rows = await this.#store.write(renew, { concurrent: true })
    return rows.map((row) => ({ runId: row.id, attempt: row.attempts, workerId }))
  }

  /** The worker's leases on runs that a caller has cancelled. */
  cancelRequested(workerId: string): Promise<Lease[]> {
    return cancelledLeases(this.#store.read, workerId)
  }

  /** Adds events to the run; the last progress among them becomes the run's. False when the lease is lost. */
  async report(lease: Lease, reports: readonly Report[]): Promise<boolean> {
    return this.#whileHeld(lease, (tx) => record(tx, lease, reports))
  }

  /**
   * Adds events and remembers what a step returned, for later attempts. False when the lease is lost.
   *
   * @param seal seals it; called each time it is written, which may be long after a key was changed.
   */
  async finishStep(lease: Lease, name: string, seal: () => Uint8Array, reports: readonly Report[]): Promise<boolean> {
    return this.#whileHeld(lease, async (tx) => {
      await tx.query.insertInto('run_steps').values({ run_id: lease.runId, name, value: seal() }).execute()
      await record(tx, lease, reports)
    })
  }

  /** Keeps a file that the run has made. False when the lease is lost. @throws {ArtifactRefused} */
  async keepArtifact(lease: Lease, artifact: NewArtifact, reports: readonly Report[]): Promise<boolean> {
    return this.#whileHeld(lease, async (tx) => {
      await putArtifact(tx, lease, artifact, this.#now())
      await record(tx, lease, reports)
    })
  }

  /**
   * Ends the attempt: the run finishes, or is queued again. False when the lease is lost; nothing changed then.
   *
   * @param alongside what else is written in the same transaction; it may have more to report.
   */
  async complete(
    lease: Lease,
    outcome: Outcome,
    retry: Claimable['retry'],
    reports: readonly Report[] = [],
    alongside: (tx: Transaction, next: RunStatus) => Promise<readonly Report[]> = async () => [],
  ): Promise<boolean> {
    let finished: FinishedRun | undefined
    const held = await this.#whileHeld(lease, async (tx, row) => {
      const more = await alongside(tx, nextOf(row, outcome, retry).status)
      await record(tx, lease, [...reports, ...more])
      finished = await completeAttempt(tx, this.#handout, row, outcome, retry, this.#now())
    })
    if (held && finished) this.#observer?.finished(finished)
    if (held) this.#store.notify('queue')
    return held
  }

  async #whileHeld(lease: Lease, work: (tx: Transaction, row: RunsTable) => Promise<void>): Promise<boolean> {
    const whileHeld = async (tx: Transaction) => {
      const row = await heldRun(tx, lease)
      if (row) await work(tx, row)
      return row !== undefined
    }
    const held = await this.#store.write(whileHeld, { concurrent: true })
    if (held) this.#store.notify('runs')
    return held
  }
}
