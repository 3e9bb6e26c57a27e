/** Claims runs for a worker's free slots: from snapshots of the queue heads, by fair scheduling, within the limits. */
import {
  type ClaimedQueue,
  findHeadWithout,
  firstContinuing,
  type NewLease,
  type QueueHead,
  queueHeadsMax,
} from '../../storage/runs/run-statements.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables/run-tables.ts'
import { parseCreatedAt } from '../runs/run.ts'
import { limitPer } from '../workflows/workflow-limits.ts'
import { type Claim, type Claimable, startSingly, toClaim } from './attempts.ts'
import {
  type ConcurrencyLimits,
  findThrottles,
  isAtRate,
  isLimitedByKey,
  RunningCounts,
  resumeNextOfGroups,
  type ScopeOf,
  throttleId,
} from './limits.ts'
import type { ReachedWait } from './run-options.ts'

export type CalledRun = Extract<ReachedWait, { kind: 'run' }>

/** A snapshot has one account for each free slot and each process within its quantum, and this many more to choose from. */
const accountsMore = 2
/** A snapshot in which no run can be claimed is followed by one of this many times as many accounts. */
const growth = 8
/** At most this many of these in a row; the next claim resumes after the last account seen. */
const blockedMax = 4

export class RunClaims {
  readonly #store: Store
  readonly #accountConcurrency: number
  readonly #now: () => number
  /** The account whose run this process claimed last. */
  #lastAccount = ''
  readonly #recent = new RecentAccounts()
  /** Whether the end of a run may let another one start. */
  hasLimits = true

  constructor(store: Store, { accountConcurrency, now }: { accountConcurrency: number; now: () => number }) {
    this.#store = store
    this.#accountConcurrency = accountConcurrency
    this.#now = now
  }

  /**
   * Claims runs within the concurrency limits of workflows and accounts, by fair scheduling.
   *
   * @param slots the most runs to claim. A function is called again when the claim has its transaction, so that slots
   * which became free during the wait for it are filled by the same commit.
   * @param own by which the worker prefers accounts for which it has a process.
   */
  async claim(
    workerId: string,
    workflows: ClaimableWorkflows,
    slots: number | (() => number),
    leaseSeconds: number,
    own?: OwnAttempts,
  ): Promise<Claim[]> {
    const countMax = typeof slots === 'number' ? () => slots : slots
    const claimer = { workflows, accountConcurrency: this.#accountConcurrency, own, recent: this.#recent }
    this.hasLimits = hasLimits(claimer)
    const claims: Claim[] = []
    let blocked = 0
    while (claims.length < countMax() && blocked < blockedMax) {
      const accountsWithinQuantum = new Set(own?.withinQuantum()).size
      const accountsMax = (countMax() + accountsWithinQuantum + accountsMore) * growth ** blocked
      const left = () => countMax() - claims.length
      try {
        const result = await this.#claimSnapshot({ workerId, leaseSeconds }, claimer, left, accountsMax)
        claims.push(...result.claims)
        this.#lastAccount = result.lastAccount ?? this.#lastAccount
        if (!result.more) break
        blocked = result.claims.length + result.skipped > 0 ? 0 : blocked + 1
      } catch (error) {
        // Keep the claims of earlier snapshots: without a worker, their runs would wait for their leases to expire.
        if (claims.length === 0) throw error
        break
      }
    }
    if (claims.length > 0) this.#store.notify('runs')
    return claims
  }

  /** Whether the called run may start in the slot of its caller: no limit applies to either, or to their account. */
  canStartCalled(caller: RunsTable, { workflowId, options }: CalledRun, workflows: ClaimableWorkflows): boolean {
    if (this.#accountConcurrency > 0 || caller.browser_context_id !== null || options.browserContextId) return false
    const [ofCaller, ofCalled] = [caller.workflow_id, workflowId].map((id) => workflows.find(caller.account_id, id))
    if (!ofCaller || ofCaller.concurrency || !ofCalled) return false
    return !ofCalled.concurrency && !ofCalled.throttle && !ofCalled.otherVersions?.length
  }

  /** Claims runs of one snapshot; returns whether there may be more. */
  async #claimSnapshot(
    { workerId, leaseSeconds }: { workerId: string; leaseSeconds: number },
    claimer: Claimer,
    slots: () => number,
    accountsMax: number,
  ): Promise<ClaimResult> {
    const read = (tx: Transaction) =>
      FairSchedule.read(tx, claimer, { after: this.#lastAccount, accountsMax, now: this.#now() })
    // Most wake-ups find nothing; this read saves them a write.
    const schedule = await read(this.#store.read)
    await schedule.loadWorkflows()
    const candidates = schedule.pick(slots())
    if (candidates.length === 0) {
      return { claims: [], skipped: 0, more: schedule.continueAfter !== undefined, lastAccount: schedule.continueAfter }
    }
    const newLease = (): NewLease => ({ workerId, at: this.#now(), leaseExpiresAt: this.#now() + leaseSeconds * 1000 })
    if (!candidates.some((candidate) => schedule.isExclusive(candidate))) {
      // The snapshot may be stale: the statement claims what is ready now.
      const growing = () => (schedule.hasExclusive() ? candidates : schedule.pick(slots()))
      const claim = (tx: Transaction) => claimCandidates(tx, schedule, growing(), newLease())
      // If a power cut undoes the claim, the run is claimed again. Every report and outcome is durable together with it.
      return this.#store.write(claim, { concurrent: true, oneStatement: true, durableLater: true })
    }
    // Two processes that count at the same time would exceed a limit.
    const claim = async (tx: Transaction) => {
      for (const total = { claims: [] as Claim[], skipped: 0 }; ; ) {
        const current = await read(tx)
        const result = await claimCandidates(tx, current, current.pick(slots() - total.claims.length), newLease())
        total.claims.push(...result.claims)
        total.skipped += result.skipped
        const isFull = total.claims.length >= slots() || total.skipped >= skippedMax
        if (result.skipped === 0 || isFull) return { ...result, ...total }
      }
    }
    return this.#store.write(claim, { concurrent: true, exclusive: 'claim' })
  }
}

// Claims the runs that fair scheduling has picked, in the caller's transaction.

interface ClaimResult {
  claims: Claim[]
  /** Runs that now wait for their browser contexts, concurrency groups or throttles. */
  skipped: number
  more: boolean
  /** The account after which the next snapshot starts; `undefined` to start where this one did. */
  lastAccount: string | undefined
}

/** Skipping a run takes several statements. After this many, a transaction ends, so that others can write. */
const skippedMax = 100

async function claimCandidates(
  tx: Transaction,
  schedule: FairSchedule,
  candidates: readonly ClaimCandidate[],
  newLease: NewLease,
): Promise<ClaimResult> {
  const { workerId } = newLease
  const claims: Claim[] = []
  const isPlain = ({ head, workflow }: ClaimCandidate) =>
    head.has_context === 0 && !isLimitedByKey(workflow) && !workflow.throttle
  const plain = candidates.filter(isPlain)
  const rows = plain.length > 0 ? await tx.statements.claimRuns(tx, plain, newLease) : []
  for (const candidate of plain) {
    const claimed = rows.filter(
      (row) => row.account_id === candidate.accountId && row.workflow_id === candidate.workflowId,
    )
    claimed.sort((a, b) => b.priority - a.priority || (a.id < b.id ? -1 : 1))
    claims.push(...claimed.map((row) => toClaim(row, workerId)))
  }
  await resumeNextOfGroups(tx, rows)
  let skipped = 0
  for (const candidate of candidates) {
    if (isPlain(candidate)) continue
    const claim = await startSingly(tx, candidate, newLease, schedule.scopeOf)
    if (claim) claims.push(claim)
    else skipped += 1
  }
  return { claims, skipped, more: schedule.hasMore(candidates, claims), lastAccount: schedule.lastAccount }
}

// Fair scheduling decides which runs are claimed next. It goes through the accounts in the order of their ids, so that
// thousands of runs of one account do not delay another's. `AccountOrder` chooses among the next accounts. Within an
// account, the highest priority goes first, then the oldest run; between workflows, waiting raises the priority.

/** The workflows whose runs a worker claims. */
export interface ClaimableWorkflows {
  /** The only account whose runs it claims, if it is not one of the service. */
  readonly accountId?: string
  /** The definition whose concurrency limit and throttle apply; `undefined` if no run of this workflow can be executed. */
  find(accountId: string, workflowId: string): Claimable | undefined
  /** Identifies the runs that share the workflow's concurrency limit or throttle. */
  readonly scopeOf: ScopeOf
  /** Whether any of them has a concurrency limit. */
  readonly hasLimits: boolean
  /** Loads definitions that `find` does not have. */
  load(heads: readonly QueueHead[]): Promise<void>
}

interface Claimer {
  workflows: ClaimableWorkflows
  /** How many runs of one account may run at the same time; 0 for no limit. */
  accountConcurrency: number
  own?: OwnAttempts | undefined
  recent: RecentAccounts
}

function hasLimits({ workflows, accountConcurrency }: Claimer): boolean {
  return accountConcurrency > 0 || workflows.hasLimits
}

/** How long a run waits for its priority to count as one higher among the account's workflows. */
const agingMilliseconds = 60_000
/** From the lowest priority to the highest. */
const agedLevelsMax = 20

/** Runs to claim: the first of an account and workflow. */
export interface ClaimCandidate extends ClaimedQueue {
  head: QueueHead
  workflow: Claimable
}

/** The accounts of a snapshot that are next by their ids. */
class Rotation {
  readonly accounts: ReadonlySet<string>
  /** The account after which the next snapshot starts; `undefined` when this one has all queue heads. */
  readonly continueAfter: string | undefined

  constructor(heads: readonly QueueHead[], accountsMax: number) {
    this.accounts = new Set(heads.map(({ account_id }) => account_id))
    const last = [...this.accounts].slice(-2)
    // The heads of the last account may be cut off.
    if (heads.length === queueHeadsMax) this.continueAfter = last[0]
    else if (this.accounts.size === accountsMax) this.continueAfter = last.at(-1)
  }
}

/** Reads the queue heads of the accounts that keep a process and are not among the next ones. */
async function readKept(
  tx: Transaction,
  heads: readonly QueueHead[],
  own: OwnAttempts | undefined,
  now: number,
): Promise<QueueHead[]> {
  const kept = new Set(own?.keeping())
  for (const { account_id } of heads) kept.delete(account_id)
  const read = async (account: string) => {
    const ofAccount = await readHeads(tx, account, { after: '', accountsMax: 0, now })
    if (ofAccount.length === 0) own?.endQuantum(account)
    return ofAccount
  }
  return (await Promise.all([...kept].map(read))).flat()
}

/** Reads the queue heads of the next accounts, or of one. */
async function readHeads(
  tx: Transaction,
  account: string | undefined,
  { after, accountsMax, now }: { after: string; accountsMax: number; now: number },
): Promise<QueueHead[]> {
  const { queueHeads } = tx.statements
  if (account === undefined) return tx.all(queueHeads, [after, accountsMax, now])
  // With the next account, since running runs are not counted for one alone.
  const next = await tx.all(queueHeads, [textBefore(account), 2, now])
  return next.filter(({ account_id }) => account_id === account)
}

/** In place of heads of versions that the claim leaves to others, the first runs of the same workflows that it takes. */
async function withoutOtherVersions(
  tx: Transaction,
  heads: readonly QueueHead[],
  workflows: ClaimableWorkflows,
  now: number,
): Promise<QueueHead[]> {
  const found = heads.map((head) => {
    const { otherVersions = [] } = workflows.find(head.account_id, head.workflow_id) ?? {}
    return otherVersions.length > 0 ? findHeadWithout(tx, head, otherVersions, { now }) : head
  })
  return (await Promise.all(found)).filter((head) => head !== undefined)
}

/** The first run of the head's workflow that goes on after a wait, and whose version the claim takes. */
async function findContinuing(
  tx: Transaction,
  head: QueueHead,
  workflows: ClaimableWorkflows,
  now: number,
): Promise<QueueHead | undefined> {
  const { account_id, workflow_id, running } = head
  const { otherVersions = [] } = workflows.find(account_id, workflow_id) ?? {}
  if (otherVersions.length > 0) return findHeadWithout(tx, head, otherVersions, { now, continues: true })
  const [first] = await tx.all(firstContinuing, [now, account_id, workflow_id])
  return first && { ...first, running }
}

/** A text that sorts before an account's id and after all smaller ids. */
function textBefore(account: string): string {
  return `${account.slice(0, -1)}${String.fromCharCode(account.charCodeAt(account.length - 1) - 1)}~`
}

/** A snapshot of the queue heads of the next accounts, and of those that keep a process of the worker. */
class FairSchedule {
  readonly #heads: readonly QueueHead[]
  readonly #running: RunningCounts
  readonly #claimer: Claimer
  readonly #limits: ConcurrencyLimits
  readonly #candidates = new Map<QueueHead, ClaimCandidate>()
  #picked = 0
  /** Heads that can still be picked. */
  readonly #openHeads: Set<QueueHead>
  readonly #order: AccountOrder
  readonly #now: number
  readonly #rotation: Rotation
  /** The account of the rotation that was picked last. */
  lastAccount: string | undefined

  private constructor(
    heads: QueueHead[],
    throttled: ReadonlySet<QueueHead>,
    running: RunningCounts,
    claimer: Claimer,
    { rotation, now }: { rotation: Rotation; now: number },
  ) {
    this.#now = now
    this.#rotation = rotation
    this.#heads = heads
    this.#openHeads = new Set(heads.filter((head) => !throttled.has(head)))
    this.#running = running
    this.#claimer = claimer
    this.#limits = {
      ofWorkflow: (run) => limitPer('workflow', claimer.workflows.find(run.account_id, run.workflow_id)),
      ofWorkflowInAccount: (run) => limitPer('account', claimer.workflows.find(run.account_id, run.workflow_id)),
      ofAccount: claimer.accountConcurrency || Number.POSITIVE_INFINITY,
    }
    const { recent, own } = claimer
    this.#order = new AccountOrder(new Set(heads.map(({ account_id }) => account_id)), { running, recent, own })
  }

  /** Reads the queue heads of the next accounts after one, `accountsMax` at most. */
  static async read(
    tx: Transaction,
    claimer: Claimer,
    { after, accountsMax, now }: { after: string; accountsMax: number; now: number },
  ): Promise<FairSchedule> {
    const inRotation = await readHeads(tx, claimer.workflows.accountId, { after, accountsMax, now })
    const read = [...inRotation, ...(await readKept(tx, inRotation, claimer.own, now))]
    const heads = await withoutOtherVersions(tx, read, claimer.workflows, now)
    const isCounted = heads.length > 0 && hasLimits(claimer)
    const running = isCounted ? await RunningCounts.read(tx, claimer.workflows.scopeOf) : new RunningCounts()
    if (!isCounted) for (const { account_id, running: count } of heads) running.byAccount.set(account_id, count)
    claimer.recent.see(running, heads, now)
    const throttled = await findThrottledHeads(tx, heads, claimer.workflows, now)
    // A run that goes on may stand behind a new one of higher priority, whose throttle it does not need.
    for (const head of throttled) {
      const continuing = await findContinuing(tx, head, claimer.workflows, now)
      if (continuing) heads.push(continuing)
    }
    const rotation = new Rotation(inRotation, accountsMax)
    return new FairSchedule(heads, throttled, running, claimer, { rotation, now })
  }

  /** Outside of a transaction: what it reads never changes. */
  async loadWorkflows(): Promise<void> {
    await this.#claimer.workflows.load(this.#heads)
  }

  /**
   * Picks up to `slots` runs that can be claimed within the limits, those of earlier calls included. Picks at most one
   * run with a browser context, a limit per key or a throttle of each account: which one is next depends on the run
   * behind it, which is not in the snapshot.
   */
  pick(slots: number): ClaimCandidate[] {
    const candidates = this.#candidates
    const openHeads = this.#openHeads
    this.#order.refresh([...candidates.values()].flatMap(({ accountId, countMax }) => Array(countMax).fill(accountId)))
    for (; this.#picked < slots; this.#picked += 1) {
      const best = this.#best(openHeads)
      if (!best) break
      const { head, workflow } = best
      const { account_id: accountId, workflow_id: workflowId } = head
      const { otherVersions } = workflow
      const first = { head, workflow, accountId, workflowId, otherVersions, countMax: 0 }
      const candidate = candidates.get(head) ?? first
      candidate.countMax += 1
      candidates.set(head, candidate)
      if (this.#rotation.accounts.has(accountId)) this.lastAccount = accountId
      this.#running.add(head)
      this.#order.pick(accountId)
      const others = [...openHeads].filter((each) => each.account_id === accountId)
      if (others.length > 1 || head.has_context || isLimitedByKey(workflow) || workflow.throttle)
        for (const each of others) openHeads.delete(each)
    }
    return [...candidates.values()]
  }

  get continueAfter(): string | undefined {
    return this.#rotation.continueAfter
  }

  /** Whether claiming the run must be exclusive: it is counted, or its browser context is leased. */
  isExclusive({ head, workflow }: Pick<ClaimCandidate, 'head' | 'workflow'>): boolean {
    const isCounted = workflow.concurrency !== undefined || workflow.throttle !== undefined
    return head.has_context === 1 || isCounted || this.#claimer.accountConcurrency > 0
  }

  get scopeOf(): ScopeOf {
    return this.#claimer.workflows.scopeOf
  }

  /** Whether any run of the snapshot must be claimed exclusively. */
  hasExclusive(): boolean {
    return this.#heads.some((head) => {
      const workflow = this.#claimer.workflows.find(head.account_id, head.workflow_id)
      return workflow !== undefined && this.isExclusive({ head, workflow })
    })
  }

  /** Whether there may be more runs to claim after these claims of the candidates. */
  hasMore(candidates: readonly ClaimCandidate[], claims: readonly Claim[]): boolean {
    if (this.continueAfter !== undefined || this.#heads.length > candidates.length) return true
    return candidates.some(({ accountId, workflowId, workflow, countMax }) => {
      const { length } = claims.filter((each) => each.accountId === accountId && each.workflowId === workflowId)
      // Runs with a browser context among them were left out.
      return length === countMax || workflow.usesBrowser
    })
  }

  #best(heads: Iterable<QueueHead>): { head: QueueHead; workflow: Claimable } | undefined {
    let best: { head: QueueHead; workflow: Claimable } | undefined
    for (const head of heads) {
      const workflow = this.#claimer.workflows.find(head.account_id, head.workflow_id)
      if (!workflow || this.#running.isAtLimit(head, this.#limits)) continue
      if (!best || this.#isBefore(head, best.head)) best = { head, workflow }
    }
    return best
  }

  #isBefore(a: QueueHead, b: QueueHead): boolean {
    if (a.account_id !== b.account_id) return this.#order.isBefore(a.account_id, b.account_id)
    const [ofA, ofB] = [this.#agedPriority(a), this.#agedPriority(b)]
    return ofA > ofB || (ofA === ofB && a.id < b.id)
  }

  /** Compares the first runs of an account's workflows, so that a flood of one workflow does not starve the others. */
  #agedPriority({ id, priority }: QueueHead): number {
    const waited = Math.max(0, this.#now - parseCreatedAt(id))
    return priority + Math.min(agedLevelsMax, waited / agingMilliseconds)
  }
}

/** Queue heads whose throttle per account or workflow is at its rate. A rate per key applies to single runs. */
async function findThrottledHeads(
  tx: Transaction,
  heads: readonly QueueHead[],
  workflows: ClaimableWorkflows,
  now: number,
): Promise<Set<QueueHead>> {
  const throttled = heads.flatMap((head) => {
    const { throttle } = workflows.find(head.account_id, head.workflow_id) ?? {}
    // A run that goes on after a wait has started before.
    if (!throttle || throttle.per === 'key' || head.continues === 1) return []
    return [{ head, throttle, id: throttleId(throttle, head, null, workflows.scopeOf) }]
  })
  if (throttled.length === 0) return new Set()
  const rows = await findThrottles(
    tx,
    throttled.map(({ id }) => id),
  )
  const waiting = throttled.filter(({ throttle, id }) => isAtRate(rows.get(id), throttle, now))
  return new Set(waiting.map(({ head }) => head))
}

// Which account a free slot goes to. First, an account that has just got its only process in this worker, since a process
// for another account has to be started: its short runs follow each other for 100 ms, as in deficit round robin. Then
// accounts without running runs. Among the others, a process of this worker keeps its account during its quantum. Then the
// account with the fewest running runs goes first, then the next in the rotation.

/** What a worker knows about its own attempts and processes. */
export interface OwnAttempts {
  /** The account of each attempt that has ended, but that the store counts as running since its outcome is not stored. */
  ended(): Iterable<string>
  /** The account of each idle process within its quantum. */
  withinQuantum(): Iterable<string>
  /** The accounts whose only process is idle at the start of its quantum. */
  keeping(): Iterable<string>
  /** The account has no ready run. */
  endQuantum(accountId: string): void
}

/** An account whose only run has just ended counts as running: its next run may not have been claimed yet. */
const recentMilliseconds = 100

/** The accounts that had running runs in recent snapshots, with the time of the latest. */
class RecentAccounts {
  readonly #seenAt = new Map<string, number>()

  see(running: RunningCounts, heads: readonly { account_id: string }[], now: number): void {
    // The clock may have been set back.
    const isRecent = (at: number) => Math.abs(now - at) < recentMilliseconds
    for (const [account, at] of this.#seenAt) if (!isRecent(at)) this.#seenAt.delete(account)
    for (const { account_id } of heads) if (running.ofAccount(account_id) > 0) this.#seenAt.set(account_id, now)
  }

  has(accountId: string): boolean {
    return this.#seenAt.has(accountId)
  }
}

class AccountOrder {
  readonly #running: RunningCounts
  readonly #recent: RecentAccounts
  readonly #own: OwnAttempts | undefined
  /** Each account's place in the rotation. */
  readonly #places: Map<string, number>
  /** The worker's ended attempts by account. */
  #ended = new Map<string, number>()
  /** The worker's idle processes within their quantum by account, without those for picked runs. */
  #withinQuantum = new Map<string, number>()
  /** The accounts that keep their only process. */
  #keeping = new Set<string>()

  /** @param accounts in the order of the rotation. */
  constructor(
    accounts: Iterable<string>,
    { running, recent, own }: { running: RunningCounts; recent: RecentAccounts; own: OwnAttempts | undefined },
  ) {
    this.#places = new Map([...accounts].map((account, place) => [account, place]))
    this.#running = running
    this.#recent = recent
    this.#own = own
  }

  /** Reads what the worker knows now. @param picked the account of each run that has been picked. */
  refresh(picked: Iterable<string>): void {
    this.#ended = countEach(this.#own?.ended() ?? [])
    this.#withinQuantum = countEach(this.#own?.withinQuantum() ?? [])
    this.#keeping = new Set(this.#own?.keeping())
    for (const account of picked) this.#useProcess(account)
  }

  /** The account becomes the last in the rotation, and one of its idle processes, if it has any, is used. */
  pick(account: string): void {
    this.#useProcess(account)
    this.#places.delete(account)
    this.#places.set(account, Math.max(-1, ...this.#places.values()) + 1)
  }

  isBefore(a: string, b: string): boolean {
    if (this.#keeps(a) !== this.#keeps(b)) return this.#keeps(a)
    if (this.#hasRuns(a) !== this.#hasRuns(b)) return this.#hasRuns(b)
    if (this.#hasRuns(a) && this.#hasQuantum(a) !== this.#hasQuantum(b)) return this.#hasQuantum(a)
    const [ofA, ofB] = [this.#runningOf(a), this.#runningOf(b)]
    if (ofA !== ofB) return ofA < ofB
    return (this.#places.get(a) ?? 0) < (this.#places.get(b) ?? 0)
  }

  #keeps(account: string): boolean {
    return this.#keeping.has(account) && this.#runningOf(account) === 0
  }

  #hasRuns(account: string): boolean {
    return this.#runningOf(account) > 0 || this.#recent.has(account)
  }

  #runningOf(account: string): number {
    return Math.max(0, this.#running.ofAccount(account) - (this.#ended.get(account) ?? 0))
  }

  #hasQuantum(account: string): boolean {
    return (this.#withinQuantum.get(account) ?? 0) > 0
  }

  #useProcess(account: string): void {
    this.#keeping.delete(account)
    this.#withinQuantum.set(account, (this.#withinQuantum.get(account) ?? 0) - 1)
  }
}

function countEach(values: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}
