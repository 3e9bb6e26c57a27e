/** What the service asks of a store. Every implementation passes the tests in test/storage. */
import type { Kysely } from 'kysely'

import type { Tables } from './tables.ts'

export type Value = string | number | null | Uint8Array

/** Statements that see one consistent state. */
export interface Transaction {
  /** For ordinary statements. */
  query: Kysely<Tables>
  /**
   * For the few hot statements: constant SQL with `?` for each value, prepared once and kept.
   * Returns the rows of a SELECT or a RETURNING clause.
   */
  all<Row extends object>(sql: string, values: readonly Value[]): Promise<Row[]>
  /**
   * What makes a SELECT, at its end, lock the rows that it finds until the transaction ends: for writes that may
   * overlap. The embedded store, in which none does, has nothing to say.
   */
  forUpdate: 'FOR UPDATE' | ''
}

/** A transaction that has ended. */
export interface Commit {
  /** How many callers' writes shared it. */
  writes: number
  /** From its beginning, waiting for others' included, until it was durable or refused. */
  seconds: number
  /** Whether it was refused because the store was unavailable. */
  unavailable: boolean
}

/** Something happened that another process may be waiting for. Ringing says that, never what. */
export type Topic = (typeof topics)[number]

export const topics = ['queue', 'runs', 'cancellations'] as const

export interface WriteOptions {
  /**
   * The work may overlap with others that say so too, as far as the store lets it: it locks what it decides on, and
   * always in the same order. For what is done again and again; everything else is better off alone.
   */
  concurrent?: boolean
  /** Of the works with the same turn none overlaps another, all the same. */
  exclusive?: 'claim' | 'maintenance'
  /** How many callers' writes the work holds, for whoever measures; 1 unless given. */
  batchSize?: number
}

export interface Store {
  /** Reads what has been committed. */
  read: Transaction
  /**
   * Runs `work` in a transaction that no other write overlaps, and resolves once its effects are durable (fsync). One
   * that throws is undone alone, whatever shares its commit. `work` awaits nothing but its session. It may be run
   * again when another was in its way, so that it changes nothing but through its session and what it returns.
   *
   * @throws {StoreUnavailable} when durability cannot be promised. Nothing of `work` was kept then, unless PostgreSQL
   * was lost in the moment of its commit: whether it was kept cannot be known.
   */
  write<Result>(work: (tx: Transaction) => Promise<Result>, options?: WriteOptions): Promise<Result>
  /** For what processes count together, and what need not outlast a crash. */
  counters: Counters
  /** Wakes whoever listens to `bell`, in this process and all others, after the write that is to be seen. */
  notify(bell: Topic): void
  /** Calls `listener` soon after each ring (rings may be merged); returns what ends it. */
  listen(bell: Topic, listener: () => void): () => void
  /**
   * Resolves when what rows held that were deleted or changed before is in none of the store's files. The embedded store
   * empties its write-ahead log, which has to wait for readers; PostgreSQL cannot do anything here: its vacuum, its log
   * and its replicas take their time.
   *
   * @throws {StoreUnavailable} when readers were in the way for too long. What was deleted is deleted; the next call, or
   * the last process to close the store, takes it out of the files.
   */
  scrub(): Promise<void>
  /** @throws {StoreUnavailable} when the store cannot serve. */
  check(): Promise<void>
  /** Calls `observer` after each transaction of this process that became durable or was refused. It must not throw. */
  observe(observer: (commit: Commit) => void): void
  close(): Promise<void>
  /** Hands out jobs; `undefined` in the embedded store, where the rows of runs are the queue. */
  jobs?: Jobs
}

/** Something to be done, for whoever takes it first. */
export interface Job {
  /** A UUID. */
  id: string
  priority: number
}

/** A job that was taken; both members together name this one taking of it. */
export interface ActiveJob {
  id: string
  /** How often it was taken before. */
  retryCount: number
}

/**
 * Queues of jobs. What changes them does so in the transaction of the session. A job is given to one taker at a time;
 * whoever was given it earlier has no say any more.
 */
export interface Jobs {
  /** Makes sure that there are queues of these names; not within a transaction. */
  open(queues: readonly string[]): Promise<void>
  add(tx: Transaction, queue: string, jobs: readonly Job[]): Promise<void>
  /** Takes up to `count` jobs, highest priority first, then oldest. None of a queue that was not opened. */
  fetch(tx: Transaction, queue: string, count: number): Promise<ActiveJob[]>
  /** Says that the jobs are still at work. */
  touch(tx: Transaction, queue: string, jobs: readonly ActiveJob[]): Promise<void>
  /** Nobody is given the jobs until they are unparked. */
  suspend(tx: Transaction, queue: string, jobs: readonly (Job | ActiveJob)[]): Promise<void>
  /** In the place that they had. */
  resume(tx: Transaction, queue: string, jobs: readonly Job[]): Promise<void>
  complete(tx: Transaction, queue: string, jobs: readonly ActiveJob[]): Promise<void>
  /** The job was lost with its taker: another may take it, unless that was the last time; it is a dead letter then. */
  fail(tx: Transaction, queue: string, job: Job & ActiveJob, isLast: boolean): Promise<void>
  /** Removes jobs that nobody has taken. */
  remove(queue: string, ids: readonly string[]): Promise<void>
}

/** The store cannot answer or cannot promise durability at this moment; the same call may succeed later. */
export class StoreUnavailable extends Error {}

/** For what may as well be done later: `scrub().catch(unlessUnavailable)`. */
export function ignoreUnavailable(error: unknown): void {
  if (!(error instanceof StoreUnavailable)) throw error
}
export interface Counters {
  /**
   * Adds to the count of `name` over all processes, and tells what it is now. A count is 0 at first, never less, and 0
   * again when its window has ended, which begins with the first addition.
   *
   * Waits for no disk: a power cut, or a crash of the store, may set counts back to 0.
   *
   * @throws {StoreUnavailable}
   */
  add(name: string, amount: number, windowMilliseconds: number): Promise<Count>
}

export interface Count {
  count: number
  /** Until the window ends, by a clock that all processes share: more than 0, and at most the window. */
  millisecondsLeft: number
}

/** Counts whose window has ended are removed this often, by each process that adds to any. */
export const expiryIntervalMilliseconds = 60_000
