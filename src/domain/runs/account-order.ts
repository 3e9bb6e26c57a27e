/**
 * Which account a free slot goes to. Accounts that are not served go first. Among the others, a process of this worker
 * keeps its account during its turn, since a process for another one may have to be started. Then the account with the
 * fewest running runs goes first, then the next in the order of turns.
 */
import type { RunningCounts } from './concurrency-limits.ts'

/** What a worker knows about its own attempts and processes. */
export interface OwnAttempts {
  /** The account of each attempt that has ended, but that the store counts as running since its outcome is not stored. */
  ended(): Iterable<string>
  /** The account of each idle process whose turn lasts. */
  inTurn(): Iterable<string>
}

/** An account whose only run has just ended is still served: its next run may not have been claimed yet. */
const servedMilliseconds = 100

/** The accounts that had running runs in recent snapshots, with the time of the latest. */
export class ServedAccounts {
  readonly #seenAt = new Map<string, number>()

  see(running: RunningCounts, heads: readonly { account_id: string }[], now: number): void {
    // The clock may have been set back.
    const isRecent = (at: number) => Math.abs(now - at) < servedMilliseconds
    for (const [account, at] of this.#seenAt) if (!isRecent(at)) this.#seenAt.delete(account)
    for (const { account_id } of heads) if (running.ofAccount(account_id) > 0) this.#seenAt.set(account_id, now)
  }

  has(accountId: string): boolean {
    return this.#seenAt.has(accountId)
  }
}

export class AccountOrder {
  readonly #running: RunningCounts
  readonly #served: ServedAccounts
  readonly #own: OwnAttempts | undefined
  /** Each account's place in the order of turns. */
  readonly #places: Map<string, number>
  /** The worker's ended attempts by account. */
  #ended = new Map<string, number>()
  /** The worker's idle processes in turn by account, without those for picked runs. */
  #inTurn = new Map<string, number>()

  /** @param accounts in the order of their turns. */
  constructor(
    accounts: readonly string[],
    { running, served, own }: { running: RunningCounts; served: ServedAccounts; own: OwnAttempts | undefined },
  ) {
    this.#places = new Map(accounts.map((account, place) => [account, place]))
    this.#running = running
    this.#served = served
    this.#own = own
  }

  /** Reads what the worker knows now. @param picked the account of each run that has been picked. */
  refresh(picked: Iterable<string>): void {
    this.#ended = countEach(this.#own?.ended() ?? [])
    this.#inTurn = countEach(this.#own?.inTurn() ?? [])
    for (const account of picked) this.#useProcess(account)
  }

  /** The account becomes the last in the order of turns, and one of its idle processes, if it has any, is used. */
  pick(account: string): void {
    this.#useProcess(account)
    this.#places.delete(account)
    this.#places.set(account, Math.max(-1, ...this.#places.values()) + 1)
  }

  isBefore(a: string, b: string): boolean {
    if (this.#isServed(a) !== this.#isServed(b)) return this.#isServed(b)
    if (this.#isServed(a) && this.#isInTurn(a) !== this.#isInTurn(b)) return this.#isInTurn(a)
    const [ofA, ofB] = [this.#runningOf(a), this.#runningOf(b)]
    if (ofA !== ofB) return ofA < ofB
    return (this.#places.get(a) ?? 0) < (this.#places.get(b) ?? 0)
  }

  #isServed(account: string): boolean {
    return this.#runningOf(account) > 0 || this.#served.has(account)
  }

  #runningOf(account: string): number {
    return Math.max(0, this.#running.ofAccount(account) - (this.#ended.get(account) ?? 0))
  }

  #isInTurn(account: string): boolean {
    return (this.#inTurn.get(account) ?? 0) > 0
  }

  #useProcess(account: string): void {
    this.#inTurn.set(account, (this.#inTurn.get(account) ?? 0) - 1)
  }
}

function countEach(values: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}
