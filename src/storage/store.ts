/** The interface of a store. Each implementation passes the conformance tests in test/storage. */
import type { Kysely } from 'kysely'
import type { SchemaDifference } from './migrations/migrations.ts'
import type { RunStatements } from './runs/run-statements.ts'
import type { Tables } from './tables/tables.ts'

export type Value = string | number | null | Uint8Array

/** Constant SQL with `?` for each value, and the types of its rows and values. */
export interface Statement<Row extends object = object, Values extends readonly Value[] = readonly Value[]> {
  readonly sql: string
  /** Carries the types; never set. */
  readonly types?: (values: Values) => Row
}

export function statement<Row extends object = object, Values extends readonly Value[] = readonly Value[]>(
  sql: string,
): Statement<Row, Values> {
  return { sql }
}

/** Statements in one transaction. Each statement of `Store.read` sees the last committed state. */
export interface Transaction {
  /** Builds statements that are not performance-critical. */
  query: Kysely<Tables>
  /**
   * Runs a prepared statement, cached per connection. Returns the rows of a SELECT or a RETURNING clause. Statements that do
   * not depend on each other may be sent together by `Promise.all`, and are executed in the order of the calls. Each must be
   * the last of its promise: what follows one of them would go on after another has failed and the transaction has ended.
   */
  all<Row extends object, Values extends readonly Value[] = readonly Value[]>(
    statement: Statement<Row, Values> | string,
    values: NoInfer<Values>,
  ): Promise<Row[]>
  /** The statements of runs, written for this store's query planner and locks. */
  statements: RunStatements
}

/** A transaction that has committed or failed. */
export interface Commit {
  /** Number of callers' writes in the transaction. */
  writes: number
  /** Duration from BEGIN, including the wait for locks, to durability or failure. */
  seconds: number
  /** Whether the transaction failed because the store was unavailable. */
  unavailable: boolean
}

/** Subjects of notifications. A notification has no payload: the listener reads the store. */
export const topics = ['queue', 'runs', 'cancellations', 'deployments', 'liveViews', 'maintenance'] as const
export type Topic = (typeof topics)[number]

/**
 * While notifications arrive, every topic is notified only at each thirtieth interval of the fallback: a process that was
 * killed between its commit and its notification is the only cause of a lost one, and maintenance finds that sooner.
 */
export const reliableFactor = 30

export interface WriteOptions {
  /**
   * Lets the transaction run concurrently with other concurrent ones, where the store supports it. The work must lock
   * the rows that it decides on, always in the same order. For frequent writes; all others keep the default.
   */
  concurrent?: boolean
  /**
   * The work of a concurrent transaction is one statement that locks only the rows that it changes. PostgreSQL
   * executes it in one round trip, and does not isolate it from other writes.
   */
  oneStatement?: boolean
  /**
   * Lets the write resolve before it is durable, for SQLite only. Later writes that are durable include it, and without
   * one it becomes durable within 20 ms. A power cut before that undoes it, and ends every process that has seen it.
   */
  durableLater?: boolean
  /** Runs a concurrent transaction one at a time with those that name the same lock. */
  exclusive?: 'claim' | 'maintenance'
  /** Number of callers' writes that the work contains, for metrics; default 1. Read after the commit. */
  batchSize?: number
}

export interface Store {
  /** Whether statements travel to a server, so that each costs a round trip. */
  readonly isRemote: boolean
  /** Reads committed data. */
  read: Transaction
  /**
   * Runs `work` in a transaction that is isolated from every other write, and resolves once it is durable (fsync), unless
   * `durableLater` is set.
   * Several calls may share one commit; a call whose work throws is rolled back alone. The work awaits only its own
   * statements. It may be retried after a conflict, so its only effects are its statements and its result.
   *
   * @throws {StoreUnavailable} when durability cannot be guaranteed. The transaction is rolled back, except when the
   * connection to PostgreSQL is lost during COMMIT: its outcome is unknown then.
   */
  write<Result>(work: (tx: Transaction) => Promise<Result>, options?: WriteOptions): Promise<Result>
  counters: Counters
  /** Wakes all listeners to `topic` in all processes. Call it after the write has committed. */
  notify(topic: Topic): void
  /** Calls `listener` after notifications, which may be coalesced. Returns a function that removes the listener. */
  listen(topic: Topic, listener: () => void): () => void
  /**
   * Resolves when data that was deleted or overwritten is in none of the store's files. SQLite truncates its
   * write-ahead log. On PostgreSQL this does nothing: vacuum, WAL and replicas have their own schedule.
   *
   * @throws {StoreUnavailable} when readers blocked it for too long. The data is deleted; the next call, or the last
   * process that closes the store, removes it from the files.
   */
  scrub(): Promise<void>
  /** @throws {StoreUnavailable} when the store cannot serve. */
  check(): Promise<void>
  /** Sets the callback for each transaction of this process that commits or fails; it must not throw. */
  observe(observer: (commit: Commit) => void): void
  close(): Promise<void>
}

/** Read-only access to an existing store. Opening one creates, migrates and writes nothing. */
export interface StoreInspection {
  /** For messages: the file, or the database without its password. */
  path: string
  store: Pick<Store, 'read'>
  schema: SchemaDifference
  close(): void | Promise<void>
}

/** Counts shared by all processes of an installation. They are not durable: a crash may reset them to 0. */
export interface Counters {
  /**
   * Atomically adds `amount` to a counter and returns the result, which is never below 0. The first addition starts the
   * counter's window; when the window ends, the counter is 0 again.
   *
   * @throws {StoreUnavailable}
   */
  add(name: string, amount: number, windowMilliseconds: number): Promise<Count>
}

export interface Count {
  count: number
  /** Time to the end of the window, by a clock that all processes share: more than 0, and at most the window. */
  millisecondsLeft: number
}

/** How often each process that uses counters deletes those whose window has ended. */
export const expiryIntervalMilliseconds = 60_000

/** The store cannot respond, or cannot guarantee durability. The same call may succeed later. */
export class StoreUnavailable extends Error {}

/** Ignores StoreUnavailable and rethrows anything else: `scrub().catch(ignoreUnavailable)`. */
export function ignoreUnavailable(error: unknown): void {
  if (!(error instanceof StoreUnavailable)) throw error
}

const lateMilliseconds = 1000

/**
 * Waits until the store has answered, so that the next batch gathers meanwhile; but no longer than a second for a remote
 * store, whose connection may have died. Never rejects.
 */
export async function untilAnswered({ isRemote }: Store, answer: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise((resolve) => {
    if (isRemote) timer = setTimeout(resolve, lateMilliseconds)
  })
  await Promise.race([answer.catch(() => {}), late])
  clearTimeout(timer)
}
