/**
 * How much each account stores, and whether that reaches its quota. Maintenance measures all accounts continuously, a
 * few milliseconds at a time. Between measurements, each process adds the bytes that it stores. The check of a request
 * reads only memory, a purge has nothing to subtract, and the next measurement corrects every error.
 */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { Problem } from '../../contract/problem.ts'
import { takeBatch } from '../../storage/purge-target.ts'
import { nextRuns, rowBytes, sumRuns } from '../../storage/runs/run-maintenance.ts'
import { type Store, statement, type Transaction } from '../../storage/store.ts'

type AccountBytes = { account_id: string; bytes: number }
const sumOthers = statement<AccountBytes, []>(
  `SELECT account_id, CAST(SUM(bytes) AS BIGINT) AS bytes FROM (
      SELECT account_id, ${rowBytes} AS bytes FROM browser_contexts
      UNION ALL
      SELECT account_id, size_bytes + ${rowBytes} FROM browser_context_versions
        JOIN browser_contexts ON browser_contexts.id = browser_context_id
      UNION ALL
      SELECT account_id, size_bytes + ${rowBytes} FROM files
      UNION ALL
      SELECT account_id, size_bytes + ${rowBytes} FROM deployments WHERE account_id IS NOT NULL) AS sizes GROUP BY account_id`,
)
const readUsage = statement<AccountBytes, []>('SELECT account_id, bytes FROM storage_usage')
const writeUsage = statement<object, [bytes: number, accountId: string]>(
  `INSERT INTO storage_usage (bytes, account_id) SELECT CAST(? AS BIGINT), id FROM accounts WHERE id = ?
    ON CONFLICT (account_id) DO UPDATE SET bytes = excluded.bytes`,
)
/** The highest measurement of the day. */
const writeDay = statement<object, [day: string, bytes: number, accountId: string]>(
  `INSERT INTO storage_days (account_id, day, bytes) SELECT id, CAST(? AS TEXT), CAST(? AS BIGINT) FROM accounts WHERE id = ?
    ON CONFLICT (account_id, day) DO UPDATE SET
      bytes = CASE WHEN excluded.bytes > storage_days.bytes THEN excluded.bytes ELSE storage_days.bytes END`,
)

/** Bounds a statement: 5,000 events take 2 ms. */
const eventsMax = 5000
const defaults = {
  now: Date.now as () => number,
  /** How long a call of `maintain` measures before it leaves the rest to the next. */
  measureMilliseconds: 20,
  /** Whether this process measures, too. Otherwise it reads what others have measured. */
  measures: true,
}
export type UsageOptions = Partial<typeof defaults>
const intervalMilliseconds = 10_000
/** Between two reads of a process in which no account has stored anything. */
const unusedMilliseconds = 60_000
/** A process that dies while it measures delays the next measurement until then. */
const leaseMilliseconds = 60 * 60 * 1000
const lease = 'storage-usage'
/** Counts measurements, for all processes to notice them. */
const passes = 'storage-usage-measured'

interface Usage {
  measured: number
  /** What this process has added since it noticed the last measurement. */
  added: number
  /** How much of `added` this process's measurement contains, because it was stored before. */
  addedBeforeStart: number
  /** What was added before another process's measurement was noticed. It may be counted twice until the next one. */
  addedBefore: number
}

interface Measurement {
  sums: Map<string, number>
  /** The last run measured. */
  lastId: string
}

export class StorageUsage {
  /** In megabytes, as configured; 0 for no quota. */
  readonly quotaMegabytes: number
  readonly #store: Store
  readonly #options: typeof defaults
  readonly #usage = new Map<string, Usage>()
  #measurement: Measurement | undefined
  #measuring: Promise<void> | undefined
  #measureAt = 0
  #readAt = 0
  #isUsed = false
  /** The number of the last measurement that this process knows. */
  #passes = 0
  /** The last day for which this process has stored a measurement of every account. */
  #measuredDay = ''

  constructor(store: Store, quotaMegabytes: number, options: UsageOptions = {}) {
    this.#store = store
    this.quotaMegabytes = quotaMegabytes
    this.#options = { ...defaults, ...options }
  }

  /** Why the account may not store `bytes` more; `undefined` if it may. Without `bytes`: whether it has reached its quota. */
  refusal(accountId: string, bytes = 0): string | undefined {
    const stored = this.bytesOf(accountId)
    const quota = this.quotaMegabytes * 1024 * 1024
    if (quota === 0 || stored + bytes < quota) return undefined
    const advice = 'Delete runs, files or browser contexts, or wait until their retention ends.'
    if (stored < quota) {
      return `This request would store ${bytes} bytes, and exceed this account's storage quota of ${this.quotaMegabytes} MB. ${advice}`
    }
    return `This account has reached its storage quota of ${this.quotaMegabytes} MB. ${advice}`
  }

  /** @throws {Problem} 507 when the account may store nothing more. */
  require(accountId: string, bytes = 0): void {
    const detail = this.refusal(accountId, bytes)
    if (detail) throw new Problem({ kind: 'storage-quota-exceeded', detail: `${detail} Nothing was stored.` })
  }

  bytesOf(accountId: string): number {
    this.#isUsed = true
    const usage = this.#usage.get(accountId)
    return usage ? usage.measured + usage.added + usage.addedBefore : 0
  }

  /** Counts bytes that this process has stored, until they are measured. */
  add(accountId: string, bytes: number): void {
    this.#isUsed = true
    this.#usageOf(accountId).added += bytes
  }

  /** Whether a measurement of this process is under way. */
  get isMeasuring(): boolean {
    return this.#measurement !== undefined
  }

  /**
   * Measures for some milliseconds, if a measurement is due and no other process measures. Call it every second while
   * `isMeasuring`.
   */
  async maintain(): Promise<void> {
    const now = this.#options.now()
    if (this.#options.measures && (this.#measurement || now >= this.#measureAt)) await this.#measure(now)
    await this.#readIfDue(now)
  }

  /** Reads what another process has measured, if it may have changed. Call it every ten seconds. */
  async read(): Promise<void> {
    const now = this.#options.now()
    // A process that neither stores nor checks anything needs no exact values.
    if (this.#isUsed || now >= this.#readAt + unusedMilliseconds) await this.#readIfDue(now)
    this.#isUsed = false
  }

  async #readIfDue(now: number): Promise<void> {
    if (now < this.#readAt) return
    this.#readAt = now + intervalMilliseconds
    await this.#read()
  }

  /** Lets another process measure. */
  async stop(): Promise<void> {
    if (this.#measurement) await this.#store.counters.add(lease, -1, leaseMilliseconds)
    this.#measurement = undefined
  }

  /** Calls at the same time share one. */
  #measure(now: number): Promise<void> {
    this.#measuring ??= this.#measureOnce(now).finally(() => {
      this.#measuring = undefined
    })
    return this.#measuring
  }

  async #measureOnce(now: number): Promise<void> {
    const { counters } = this.#store
    if (!this.#measurement) {
      this.#measureAt = now + intervalMilliseconds
      const { count } = await counters.add(lease, 1, leaseMilliseconds)
      if (count !== 1) return void (await counters.add(lease, -1, leaseMilliseconds))
      this.#measurement = { sums: new Map(), lastId: '' }
      for (const usage of this.#usage.values()) usage.addedBeforeStart = usage.added
    }
    const measurement = this.#measurement
    const startedAt = performance.now()
    while (await this.#measureRuns(measurement)) {
      if (performance.now() - startedAt > this.#options.measureMilliseconds) return
      await yieldToEventLoop()
    }
    // Stopped in the meantime.
    if (this.#measurement !== measurement) return
    // A copy: after an error, the next call repeats this, and no other process measures until it has succeeded.
    const sums = new Map(measurement.sums)
    addAll(sums, await this.#store.read.all(sumOthers, []))
    await this.#write(sums)
    this.#passes = (await counters.add(passes, 1, leaseMilliseconds)).count
    this.#measurement = undefined
    for (const usage of this.#usage.values()) {
      usage.added -= usage.addedBeforeStart
      usage.addedBeforeStart = 0
      usage.addedBefore = 0
    }
    this.#readAt = now
    await counters.add(lease, -1, leaseMilliseconds)
  }

  /** Measures the next runs; returns whether there may be more. */
  async #measureRuns(measurement: Measurement): Promise<boolean> {
    const { read } = this.#store
    const runs = takeBatch(await read.all(nextRuns, [measurement.lastId]), eventsMax)
    const lastId = runs.at(-1)?.id
    if (lastId === undefined) return false
    addAll(measurement.sums, await read.all(sumRuns, [measurement.lastId, lastId]))
    measurement.lastId = lastId
    return true
  }

  async #write(sums: ReadonlyMap<string, number>): Promise<void> {
    const known = new Map((await this.#store.read.all(readUsage, [])).map((row) => [row.account_id, row.bytes]))
    const accounts = [...new Set([...known.keys(), ...sums.keys()])].sort()
    const day = new Date(this.#options.now()).toISOString().slice(0, 10)
    const isNewDay = day !== this.#measuredDay
    const changed = accounts.filter((id) => isNewDay || (known.get(id) ?? 0) !== (sums.get(id) ?? 0))
    if (changed.length === 0) return
    const write = async (tx: Transaction) => {
      // An account may have been deleted during the measurement.
      for (const id of changed) {
        const bytes = sums.get(id) ?? 0
        await tx.all(writeUsage, [bytes, id])
        await tx.all(writeDay, [day, bytes, id])
      }
    }
    await this.#store.write(write, { concurrent: true, exclusive: 'maintenance' })
    this.#measuredDay = day
  }

  async #read(): Promise<void> {
    const { count } = await this.#store.counters.add(passes, 0, leaseMilliseconds)
    const isMeasured = count !== this.#passes
    this.#passes = count
    for (const { account_id, bytes } of await this.#store.read.all(readUsage, []))
      this.#usageOf(account_id).measured = bytes
    if (!isMeasured) return
    for (const usage of this.#usage.values()) {
      usage.addedBefore = usage.added
      usage.added = 0
      usage.addedBeforeStart = 0
    }
  }

  #usageOf(accountId: string): Usage {
    let usage = this.#usage.get(accountId)
    if (!usage) {
      usage = { measured: 0, added: 0, addedBeforeStart: 0, addedBefore: 0 }
      this.#usage.set(accountId, usage)
    }
    return usage
  }
}

function addAll(sums: Map<string, number>, rows: readonly AccountBytes[]): void {
  for (const { account_id, bytes } of rows) sums.set(account_id, (sums.get(account_id) ?? 0) + bytes)
}
