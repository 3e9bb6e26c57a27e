/** What the service asks of a store. Every implementation passes the tests in test/storage. */
import type { Kysely } from 'kysely'
import type { Tables } from './tables.ts'

export type Value = string | number | null | Uint8Array

/** Statements that see one consistent state. */
export interface Session {
  /** For ordinary statements. */
  query: Kysely<Tables>
  /**
   * For the few hot statements: constant SQL with `?` for each value, prepared once and kept.
   * Returns the rows of a SELECT or a RETURNING clause.
   */
  all<Row extends object>(sql: string, values: readonly Value[]): Promise<Row[]>
}

/** Something happened that another process may be waiting for. Ringing says that, never what. */
export type Bell = 'queue' | 'runs' | 'cancellations'

export interface Store {
  /** Reads what has been committed. */
  read: Session
  /**
   * Runs `work` in a transaction that no other write overlaps, and resolves once its effects are durable (fsync).
   * Works that arrive together share one commit; one that throws is undone alone. `work` awaits nothing but its session.
   *
   * @throws {StoreUnavailable} when durability cannot be promised; nothing of `work` was kept then.
   */
  write<Result>(work: (session: Session) => Promise<Result>): Promise<Result>
  /** Wakes whoever listens to `bell`, in this process and all others, after the write that is to be seen. */
  ring(bell: Bell): void
  /** Calls `listener` soon after each ring (rings may be merged); returns what ends it. */
  listen(bell: Bell, listener: () => void): () => void
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
  close(): Promise<void>
}

/** The store cannot answer or cannot promise durability at this moment; the same call may succeed later. */
export class StoreUnavailable extends Error {}

/** For what may as well be done later: `scrub().catch(unlessUnavailable)`. */
export function unlessUnavailable(error: unknown): void {
  if (!(error instanceof StoreUnavailable)) throw error
}
