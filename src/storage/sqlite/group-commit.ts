/** Group commit: the writes that arrive together run one after another in one transaction and share its fsync. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Commit, StoreUnavailable, type Transaction, type WriteOptions } from '../store.ts'
import { type Connection, isBusy, wrapStoreErrors } from './sqlite-connection.ts'

type Work<Result> = (tx: Transaction) => Promise<Result>

interface Waiting {
  work: Work<unknown>
  parts: number
  resolve(result: unknown): void
  reject(error: unknown): void
}

/** Bounds how long the first of a batch waits for the last. */
const batchSizeMax = 512

export class GroupCommit {
  readonly #connection: Connection
  readonly #lockWaitMillisecondsMax: number
  #waiting: Waiting[] = []
  #draining: Promise<void> | undefined
  /** Told of each transaction. */
  observer: (commit: Commit) => void = () => {}

  /** @param lockWaitMillisecondsMax how long a write waits for another process's transaction. */
  constructor(connection: Connection, lockWaitMillisecondsMax: number) {
    this.#connection = connection
    this.#lockWaitMillisecondsMax = lockWaitMillisecondsMax
  }

  write<Result>(work: Work<Result>, { batchSize: parts = 1 }: WriteOptions = {}): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ work, parts, resolve: resolve as (result: unknown) => void, reject })
      this.#draining ??= this.#drain()
    })
  }

  /** Resolves when nothing is waiting. */
  async idle(): Promise<void> {
    await this.#draining
  }

  async #drain(): Promise<void> {
    await nextTurn()
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, batchSizeMax)
      const begun = performance.now()
      const works = batch.reduce((sum, { parts }) => sum + parts, 0)
      const ended = (unavailable: boolean) =>
        this.observer({ writes: works, seconds: (performance.now() - begun) / 1000, unavailable })
      await this.#commit(batch, () => ended(false)).catch((error) => {
        if (error instanceof StoreUnavailable) ended(true)
        for (const each of batch) each.reject(error)
      })
      if (this.#waiting.length > 0) await nextTurn()
    }
    this.#draining = undefined
  }

  async #commit(batch: Waiting[], committed: () => void): Promise<void> {
    await this.#begin()
    const done: (() => void)[] = []
    try {
      for (const each of batch) done.push(await this.#run(each, batch.length > 1))
      this.#execute('COMMIT')
    } catch (error) {
      this.#rollback()
      throw error
    }
    committed()
    for (const settle of done) settle()
  }

  /** Runs one work so that it is undone alone when it throws; returns what to tell its caller after the commit. */
  async #run({ work, resolve, reject }: Waiting, shared: boolean): Promise<() => void> {
    if (shared) this.#execute('SAVEPOINT work')
    try {
      const result = await work(this.#connection.tx)
      if (shared) this.#execute('RELEASE work')
      return () => resolve(result)
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error
      if (!shared) throw error
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
        // A timer instead of SQLite's busy handler, which would put the whole process to sleep.
        await delay(1)
      }
    }
  }

  #execute(sql: string): void {
    wrapStoreErrors(() => this.#connection.database.exec(sql))
  }

  #rollback(): void {
    const { database } = this.#connection
    if (database.isOpen && database.isTransaction) database.exec('ROLLBACK')
  }
}

/**
 * Lets everything that has already arrived on other connections join the batch. It needs one turn of the event loop to
 * be read and one to be authenticated; with one turn alone, batches were half as large.
 */
async function nextTurn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
  await new Promise((resolve) => setImmediate(resolve))
}
