/** Group commit: concurrent writes run in sequence in one SQLite transaction and share its fsync. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Commit, StoreUnavailable, type Transaction, type WriteOptions } from '../store.ts'
import { type Connection, isBusy, wrapStoreErrors } from './sqlite-connection.ts'

type Work<Result> = (tx: Transaction) => Promise<Result>

interface PendingWrite {
  work: Work<unknown>
  options: WriteOptions
  resolve(result: unknown): void
  reject(error: unknown): void
}

/** Bounds how long the first write of a transaction waits for the last. */
const writesMax = 512

export class GroupCommit {
  readonly #connection: Connection
  readonly #lockWaitMillisecondsMax: number
  #pending: PendingWrite[] = []
  #draining: Promise<void> | undefined
  /** Called after each transaction. */
  observer: (commit: Commit) => void = () => {}

  /** @param lockWaitMillisecondsMax how long a write waits for another process's transaction. */
  constructor(connection: Connection, lockWaitMillisecondsMax: number) {
    this.#connection = connection
    this.#lockWaitMillisecondsMax = lockWaitMillisecondsMax
  }

  write<Result>(work: Work<Result>, options: WriteOptions = {}): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ work, options, resolve: resolve as (result: unknown) => void, reject })
      this.#draining ??= this.#drain()
    })
  }

  /** Resolves when no write is pending. */
  async idle(): Promise<void> {
    await this.#draining
  }

  async #drain(): Promise<void> {
    await collectArrivals()
    while (this.#pending.length > 0) {
      const batch = this.#pending.splice(0, writesMax)
      const startedAt = performance.now()
      const observe = (unavailable: boolean) => {
        const writes = batch.reduce((sum, { options }) => sum + (options.batchSize ?? 1), 0)
        this.observer({ writes, seconds: (performance.now() - startedAt) / 1000, unavailable })
      }
      await this.#commit(batch, () => observe(false)).catch((error) => {
        if (error instanceof StoreUnavailable) observe(true)
        for (const { reject } of batch) reject(error)
      })
      if (this.#pending.length > 0) await collectArrivals()
    }
    this.#draining = undefined
  }

  async #commit(batch: PendingWrite[], onCommit: () => void): Promise<void> {
    await this.#begin()
    const callbacks: (() => void)[] = []
    try {
      for (const write of batch) callbacks.push(await this.#run(write, batch.length > 1))
      this.#execute('COMMIT')
    } catch (error) {
      const { database } = this.#connection
      if (database.isOpen && database.isTransaction) database.exec('ROLLBACK')
      throw error
    }
    onCommit()
    for (const callback of callbacks) callback()
  }

  /** Runs one write in a savepoint. Returns a callback that resolves or rejects its promise after the commit. */
  async #run({ work, resolve, reject }: PendingWrite, isShared: boolean): Promise<() => void> {
    if (isShared) this.#execute('SAVEPOINT work')
    try {
      const result = await work(this.#connection.tx)
      if (isShared) this.#execute('RELEASE work')
      return () => resolve(result)
    } catch (error) {
      if (error instanceof StoreUnavailable || !isShared) throw error
      this.#execute('ROLLBACK TO work; RELEASE work')
      return () => reject(error)
    }
  }

  async #begin(): Promise<void> {
    const deadline = performance.now() + this.#lockWaitMillisecondsMax
    for (;;) {
      try {
        return this.#execute('BEGIN IMMEDIATE')
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) throw error
        // A timer instead of SQLite's busy handler, which would block the process.
        await delay(1)
      }
    }
  }

  #execute(sql: string): void {
    wrapStoreErrors(() => this.#connection.database.exec(sql))
  }
}

/**
 * Lets requests that have arrived on other connections join the batch: one iteration of the event loop to read them and
 * one to authenticate them. With one iteration, batches were half as large.
 */
async function collectArrivals(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
  await new Promise((resolve) => setImmediate(resolve))
}
