/** Group commit: concurrent writes run in sequence in one SQLite transaction and share its fsync. */
import { open } from 'node:fs/promises'
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

/**
 * How long a write that finds the file locked waits before it tries again. Another process's transaction lasts about as
 * long as its fsync. Each attempt costs an exception, so the pauses grow.
 */
const lockedMilliseconds = { min: 1, max: 4 }

/** A transaction that is not durable becomes so with the next one, or after this time. */
const durableLaterMilliseconds = 20

export class GroupCommit {
  readonly #connection: Connection
  readonly #logPath: string
  /** Whether the connection syncs the log at each commit. */
  #syncs = true
  #syncTimer: NodeJS.Timeout | undefined
  /** Whether a failure may have lost earlier commits that were not synced. */
  #mustRewriteLog = false
  readonly #lockWaitMillisecondsMax: number
  #pending: PendingWrite[] = []
  #draining: Promise<void> | undefined
  /** Called after each transaction. */
  observer: (commit: Commit) => void = () => {}

  /** @param lockWaitMillisecondsMax how long a write waits for another process's transaction. */
  constructor(connection: Connection, lockWaitMillisecondsMax: number) {
    this.#connection = connection
    this.#logPath = `${connection.database.location()}-wal`
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
      const batch: PendingWrite[] = []
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
    await this.#begin(batch)
    const callbacks: (() => void)[] = []
    try {
      for (const write of batch) callbacks.push(await this.#run(write, batch.length > 1))
      this.#execute('COMMIT')
      this.#syncLater()
    } catch (error) {
      const { database } = this.#connection
      if (database.isOpen && database.isTransaction) database.exec('ROLLBACK')
      if (error instanceof StoreUnavailable) this.#mustRewriteLog = true
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

  /**
   * Begins a transaction, and moves the pending writes to its batch: those that arrived during the wait for the lock share
   * its commit.
   */
  async #begin(batch: PendingWrite[]): Promise<void> {
    const deadline = performance.now() + this.#lockWaitMillisecondsMax
    for (let pause = lockedMilliseconds.min; ; pause = Math.min(2 * pause, lockedMilliseconds.max)) {
      try {
        this.#rewriteLog()
        this.#setSync(this.#pending.some(({ options }) => !options.durableLater))
        withoutStackTrace(() => this.#execute('BEGIN IMMEDIATE'))
        batch.push(...this.#pending.splice(0, writesMax))
        return
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) {
          batch.push(...this.#pending.splice(0, writesMax))
          throw error
        }
        // A timer instead of SQLite's busy handler, which would block the process.
        await delay(pause)
      }
    }
  }

  /**
   * After a failed sync, the operating system may drop what it has not written, and the next sync succeeds without it. A
   * power cut would then end the log before commits that were acknowledged later. A checkpoint moves the whole log into
   * the database file, which it syncs.
   */
  #rewriteLog(): void {
    if (!this.#mustRewriteLog) return
    const checkpoint = this.#connection.database.prepare('PRAGMA wal_checkpoint(TRUNCATE)')
    const [result] = wrapStoreErrors(() => checkpoint.all())
    if (result?.busy !== 0) throw new StoreUnavailable('The log cannot be rewritten while other processes read it.')
    this.#mustRewriteLog = false
  }

  /** Not possible within a transaction. Checkpoints sync the log in any case, before they change the file. */
  #setSync(syncs: boolean): void {
    if (syncs === this.#syncs) return
    this.#execute(`PRAGMA synchronous = ${syncs ? 'FULL' : 'NORMAL'}`)
    this.#syncs = syncs
  }

  /** After a transaction without a sync. The sync runs in a thread, and is not needed when another transaction syncs. */
  #syncLater(): void {
    if (this.#syncs) {
      clearTimeout(this.#syncTimer)
      this.#syncTimer = undefined
      return
    }
    this.#syncTimer ??= setTimeout(async () => {
      this.#syncTimer = undefined
      // Best effort: if it fails, so does the next transaction.
      const log = await open(this.#logPath).catch(() => undefined)
      await log?.datasync().catch(() => {})
      await log?.close()
    }, durableLaterMilliseconds).unref()
  }

  #execute(sql: string): void {
    wrapStoreErrors(() => this.#connection.database.exec(sql))
  }
}

/** Reading the stack takes most of the time of a BEGIN that finds the file locked, which is no error. */
function withoutStackTrace<Result>(act: () => Result): Result {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return act()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
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
