/**
 * Enqueues runs: requests that arrive together share one transaction of a few statements. That transaction also checks
 * idempotency keys and the limit of queued runs.
 */

import { context, ROOT_CONTEXT } from '@opentelemetry/api'
import { countQueuedRuns, type InsertedRun } from '../../storage/runs/run-statements.ts'
import { repeatHasWaits } from '../../storage/runs/wait-statements.ts'
import {
  type Store,
  StoreUnavailable,
  type Transaction,
  untilAnswered,
  type WriteOptions,
} from '../../storage/store.ts'
import { findContextLeases } from '../browser-contexts/browser-contexts.sql.ts'
import { insertRunFiles, renewFiles } from '../files/files.sql.ts'
import type { FileVariable, VariableError } from '../workflows/workflows.ts'

/** A run to insert. Every other column has its default. */
export type NewRun = Omit<InsertedRun, 'secrets'> & {
  /** Encrypts the secrets. Called for each attempt to write them, since the encryption key may have changed. */
  secrets: (() => Uint8Array) | null
  /** The results of steps that the run does not execute, in their order. Encrypted for each attempt to write them. */
  steps?: readonly { name: string; bytes: number; encrypt: () => Uint8Array }[]
  /** The files in its variables; absent if there are none. */
  files?: readonly FileVariable[]
}

/** Runs of one account, in their order: all are enqueued, or none. */
interface EnqueueRequest {
  runs: readonly NewRun[]
  idempotencyKey: IdempotencyKey | undefined
  /** Writes in the same transaction. Not called if the runs are refused. */
  within?: ((tx: Transaction) => Promise<void>) | undefined
}

export interface IdempotencyKey {
  key: string
  /** A keyed hash of the request. */
  fingerprint: Uint8Array
  expiresAt: number
}

export type EnqueueResult =
  | { kind: 'enqueued'; runs: readonly NewRun[] }
  /** Positions of the runs whose browser context does not exist. */
  | { kind: 'noSuchBrowserContext'; indexes: number[] }
  /** With the positions of the runs whose files do not exist. */
  | { kind: 'noSuchFile'; errors: (VariableError & { index: number })[] }
  | { kind: 'tooManyQueuedRuns'; queuedMax: number }
  /** The idempotency key belongs to these earlier runs. */
  | { kind: 'keyInUse'; runIds: string[]; fingerprint: Uint8Array }

export class EnqueueBatcher {
  readonly #batcher: Batcher<EnqueueRequest, EnqueueResult>
  /** For runs without an idempotency key or a browser context, where a transaction would cost round trips. */
  readonly #plainBatcher: Batcher<EnqueueRequest, EnqueueResult | undefined> | undefined
  readonly #store: Store
  readonly #limit: QueuedRunsLimit
  readonly #fileRetentionMilliseconds: number
  readonly #now: () => number

  constructor(store: Store, limit: QueuedRunsLimit, fileRetentionMilliseconds: number, now: () => number) {
    this.#store = store
    this.#fileRetentionMilliseconds = fileRetentionMilliseconds
    this.#batcher = new Batcher(store, (tx, requests) => this.#enqueueAll(tx, requests))
    const insertPlain = (tx: Transaction, requests: EnqueueRequest[]) => this.#insertPlain(tx, requests)
    this.#plainBatcher = store.isRemote ? new Batcher(store, insertPlain, { oneStatement: true }) : undefined
    this.#limit = limit
    this.#now = now
  }

  /** Once this resolves, the runs survive a power cut. */
  async enqueue(request: EnqueueRequest): Promise<EnqueueResult> {
    const [run] = request.runs
    if (!run) return { kind: 'enqueued', runs: [] }
    if (request.runs.length > 1 || run.steps || request.within) return this.#enqueueAlone(request)
    const isPlain = !request.idempotencyKey && run.browser_context_id === null && !run.files
    const inserted = isPlain ? await this.#plainBatcher?.add(request) : undefined
    return inserted ?? this.#batcher.add(request)
  }

  /** Other requests of the same transaction would have to wait for these rows. Results of steps can have megabytes. */
  #enqueueAlone(request: EnqueueRequest): Promise<EnqueueResult> {
    const enqueue = async (tx: Transaction) => {
      const [result] = await this.#enqueueAll(tx, [request])
      if (result?.kind === 'enqueued') await request.within?.(tx)
      return result as EnqueueResult
    }
    return this.#store.write(enqueue, { concurrent: true, batchSize: request.runs.length })
  }

  async isKeyInUse(accountId: string, key: string): Promise<boolean> {
    const { read } = this.#store
    return (await read.all(read.statements.findIdempotencyKey, [accountId, key])).length > 0
  }

  /**
   * Inserts runs by one statement, without a transaction around it. Returns `undefined` for those that need one because
   * their account is near its limit.
   */
  async #insertPlain(tx: Transaction, requests: readonly EnqueueRequest[]): Promise<(EnqueueResult | undefined)[]> {
    const wanted = new Map([...Map.groupBy(requests, accountOf)].map(([id, ofAccount]) => [id, ofAccount.length]))
    const reserved = await this.#limit.reserveFarFrom(tx, wanted)
    const isPlain = (request: EnqueueRequest) => reserved.has(accountOf(request))
    await insertRuns(
      tx,
      requests.filter(isPlain).flatMap(({ runs }) => runs),
    )
    return requests.map((request) => (isPlain(request) ? { kind: 'enqueued', runs: request.runs } : undefined))
  }

  async #enqueueAll(tx: Transaction, requests: readonly EnqueueRequest[]): Promise<EnqueueResult[]> {
    const capacities = await this.#capacities(tx, requests)
    const results = new Map<EnqueueRequest, EnqueueResult>()
    // All transactions write keys in the same order, which prevents deadlocks.
    for (const request of requests.toSorted((a, b) => compare(keyOrder(a), keyOrder(b)))) {
      results.set(request, await this.#check(tx, request, capacities))
    }
    const runs = [...results.values()].flatMap((result) => (result.kind === 'enqueued' ? result.runs : []))
    runs.sort((a, b) => compare(a.id, b.id))
    await insertRuns(tx, runs)
    return requests.map((request) => results.get(request) as EnqueueResult)
  }

  /** How many runs each account may still enqueue. */
  async #capacities(tx: Transaction, requests: readonly EnqueueRequest[]): Promise<Map<string, number>> {
    const capacities = new Map<string, number>()
    const byAccount = Map.groupBy(requests, accountOf)
    // Sorted, because this may lock the accounts: the same order in all transactions prevents deadlocks.
    for (const [accountId, ofAccount] of [...byAccount].sort(([a], [b]) => compare(a, b))) {
      const wanted = ofAccount.reduce((sum, { runs }) => sum + runs.length, 0)
      capacities.set(accountId, await this.#limit.reserve(tx, accountId, wanted))
    }
    return capacities
  }

  async #check(tx: Transaction, request: EnqueueRequest, capacities: Map<string, number>): Promise<EnqueueResult> {
    const { runs, idempotencyKey } = request
    const [first] = runs as [NewRun, ...NewRun[]]
    const accountId = first.account_id
    const earlier = idempotencyKey && (await claimIdempotencyKey(tx, first, idempotencyKey, this.#now()))
    if (earlier) {
      const { run_id, run_ids, fingerprint } = earlier
      return { kind: 'keyInUse', runIds: run_ids === null ? [run_id] : JSON.parse(run_ids), fingerprint }
    }
    const capacity = capacities.get(accountId) ?? 0
    const result: EnqueueResult =
      capacity < runs.length
        ? { kind: 'tooManyQueuedRuns', queuedMax: this.#limit.max }
        : ((await this.#refuseFiles(tx, accountId, runs)) ?? (await waitForContexts(tx, accountId, runs)))
    if (result.kind === 'enqueued') {
      capacities.set(accountId, capacity - runs.length)
      if (idempotencyKey && runs.length > 1) {
        const ids = JSON.stringify(runs.map(({ id }) => id))
        await tx.all(tx.statements.nameRunsOfKey, [ids, accountId, idempotencyKey.key])
      }
      // A refused request does not use up its key.
    } else if (idempotencyKey)
      await tx.all(tx.statements.releaseIdempotencyKey, [accountId, idempotencyKey.key, first.id])
    return result
  }

  async #refuseFiles(tx: Transaction, accountId: string, runs: readonly NewRun[]): Promise<EnqueueResult | undefined> {
    const expiry = { now: this.#now(), retentionMilliseconds: this.#fileRetentionMilliseconds }
    const files = runs.flatMap((run, index) => (run.files ?? []).map((file) => ({ ...file, index })))
    const errors = await renewFiles(tx, accountId, files, expiry)
    return errors.length === 0 ? undefined : { kind: 'noSuchFile', errors }
  }
}

export async function waitForContexts(
  tx: Transaction,
  accountId: string,
  runs: readonly NewRun[],
): Promise<EnqueueResult> {
  if (runs.every((run) => run.browser_context_id === null)) return { kind: 'enqueued', runs }
  const leases = await findContextLeases(tx, accountId, runs)
  const unknown = runs.flatMap(({ browser_context_id: id }, index) => (id === null || leases.has(id) ? [] : index))
  if (unknown.length > 0) return { kind: 'noSuchBrowserContext', indexes: unknown }
  return { kind: 'enqueued', runs: runs.map((run) => withContextLease(run, leases)) }
}

/** The run, which waits if another run leases its browser context. For a delayed run, its claim decides. */
export function withContextLease(run: NewRun, leases: ReadonlyMap<string, string | null>): NewRun {
  const leasedBy = run.browser_context_id === null ? null : leases.get(run.browser_context_id)
  const waits = leasedBy != null && run.persist_context !== 'never' && run.delayed === 0
  return waits ? { ...run, waiting_for: 'browserContext' } : run
}

export async function insertRuns(tx: Transaction, runs: readonly NewRun[]): Promise<void> {
  if (runs.length === 0) return
  await tx.statements.insertRuns(
    tx,
    runs.map(({ steps: _, files: __, ...run }) => ({ ...run, secrets: run.secrets?.() ?? null })),
  )
  if (runs.some(({ files }) => files)) await insertRunFiles(tx, runs)
  for (const run of runs) {
    if (!run.steps) continue
    await insertSteps(tx, run.id, run.steps)
    await tx.all(repeatHasWaits, [run.id])
  }
}

/** Steps per statement, which bounds the number of its parameters. */
const stepsPerStatement = 100

async function insertSteps(tx: Transaction, runId: string, steps: NonNullable<NewRun['steps']>): Promise<void> {
  for (let from = 0; from < steps.length; from += stepsPerStatement) {
    const rows = steps.slice(from, from + stepsPerStatement).map(({ name, encrypt }, index) => {
      return { run_id: runId, name, value: encrypt(), position: from + index + 1 }
    })
    await tx.query.insertInto('run_steps').values(rows).execute()
  }
}

interface KeyUse {
  fingerprint: Uint8Array
  run_id: string
  run_ids: string | null
}

/** Returns the unexpired earlier use of the key, or stores this one. */
async function claimIdempotencyKey(
  tx: Transaction,
  { account_id, id }: NewRun,
  { key, fingerprint, expiresAt }: IdempotencyKey,
  now: number,
): Promise<KeyUse | undefined> {
  const values = [account_id, key, fingerprint, id, expiresAt, now] as const
  const claimed = await tx.all(tx.statements.claimIdempotencyKey, [...values])
  if (claimed.length > 0) return undefined
  const [earlier] = await tx.all(tx.statements.findIdempotencyKey, [account_id, key])
  return earlier
}

function accountOf({ runs: [run] }: EnqueueRequest): string {
  return run?.account_id ?? ''
}

function keyOrder(request: EnqueueRequest): string {
  const { idempotencyKey } = request
  return idempotencyKey ? `${accountOf(request)} ${idempotencyKey.key}` : ''
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

// Writes items that arrive together in one transaction. While one batch is written, the next one gathers.

/** Bounds how long the first item of a batch waits for the last. */
const batchMax = 256

interface Waiting<Item, Result> {
  item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}

type Write<Item, Result> = (tx: Transaction, items: Item[]) => Promise<Result[]>

export class Batcher<Item, Result> {
  readonly #store: Store
  readonly #write: Write<Item, Result>
  readonly #options: WriteOptions
  #waiting: Waiting<Item, Result>[] = []
  #draining: Promise<void> | undefined

  /** @param write returns a result for each item, in their order. */
  constructor(store: Store, write: Write<Item, Result>, options: WriteOptions = {}) {
    this.#store = store
    this.#write = write
    this.#options = options
  }

  /** Once this resolves, what was written survives a power cut. */
  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      // A batch serves several requests, so it belongs to no request's trace.
      this.#draining ??= context.with(ROOT_CONTEXT, () => this.#drain())
    })
  }

  async #drain(): Promise<void> {
    // Lets requests that have arrived on other connections be parsed and authenticated.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#waiting.length > 0) {
      await untilAnswered(this.#store, this.#writeBatch(this.#waiting.splice(0, batchMax), false))
    }
    this.#draining = undefined
  }

  /** @param isClosed whether later items may not join the batch. */
  async #writeBatch(batch: Waiting<Item, Result>[], isClosed: boolean): Promise<void> {
    try {
      const options = { ...this.#options, concurrent: true, batchSize: batch.length }
      const results = await this.#store.write((tx) => {
        // The write has waited for its transaction: items that arrived meanwhile join it.
        if (!isClosed) batch.push(...this.#waiting.splice(0, batchMax - batch.length))
        options.batchSize = batch.length
        const items = batch.map(({ item }) => item)
        return this.#write(tx, items)
      }, options)
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result)
    } catch (error) {
      // When the connection is lost during the commit, the items may be stored. Do not write them a second time.
      if (batch.length === 1 || error instanceof StoreUnavailable) {
        for (const { reject } of batch) reject(error)
        return
      }
      // A single item may have failed the transaction: write each one separately.
      for (const each of batch) await this.#writeBatch([each], true)
    }
  }
}

// The limit of an account's queued runs, which QUEUED_RUNS_MAX sets.

/** Within this distance of its limit, the queued runs of an account are counted for each batch. */
const distanceMin = 5000

/** An upper bound for the rate of all processes (15 were measured), which limits how long a count can be reused. */
const runsPerMillisecond = 50

/** Limits the queued runs of an account exactly, without counting them for each batch while the limit is far. */
export class QueuedRunsLimit {
  readonly max: number
  readonly #distance: number
  /** The last count of each account, and the runs that this process has added since. */
  readonly #counts = new Map<string, { queued: number; countedAt: number }>()

  /** @param max runs of an account; 0 for no limit. */
  constructor(max: number) {
    this.max = max
    this.#distance = Math.max(distanceMin, max / 2)
  }

  /**
   * Returns how many of `wanted` runs the account may enqueue. Call it before anything is written in the transaction,
   * once for each account, in the order of their ids: near the limit it locks the account.
   */
  async reserve(tx: Transaction, accountId: string, wanted: number): Promise<number> {
    if ((await this.reserveFarFrom(tx, new Map([[accountId, wanted]]))).has(accountId)) return wanted
    await tx.all(tx.statements.lockAccount, [accountId])
    await this.#count(tx, [accountId])
    const count = this.#counts.get(accountId) ?? { queued: 0 }
    const reserved = Math.min(wanted, Math.max(0, this.max - count.queued))
    count.queued += reserved
    return reserved
  }

  /**
   * Like `reserve`, but reserves all or none of an account's runs: none if its limit is near. Writes and locks nothing.
   *
   * @param wanted runs by account.
   * @returns the accounts whose runs are reserved.
   */
  async reserveFarFrom(tx: Transaction, wanted: ReadonlyMap<string, number>): Promise<Set<string>> {
    if (this.max === 0) return new Set(wanted.keys())
    const isFar = (id: string) => {
      const near = this.max - this.#distance - (wanted.get(id) ?? 0)
      return near >= 0 && (this.#counts.get(id)?.queued ?? 0) <= near
    }
    const oldest = performance.now() - this.#distance / runsPerMillisecond
    const isRecent = (id: string) => (this.#counts.get(id)?.countedAt ?? Number.NEGATIVE_INFINITY) > oldest
    const candidates = [...wanted.keys()].filter(isFar)
    await this.#count(
      tx,
      candidates.filter((id) => !isRecent(id)),
    )
    const reserved = candidates.filter(isFar)
    for (const id of reserved) {
      const count = this.#counts.get(id)
      if (count) count.queued += wanted.get(id) ?? 0
    }
    return new Set(reserved)
  }

  async #count(tx: Transaction, accountIds: readonly string[]): Promise<void> {
    if (accountIds.length === 0) return
    const countedAt = performance.now()
    for (const { account_id, count } of await countQueuedRuns(tx, accountIds, this.max))
      this.#counts.set(account_id, { queued: count, countedAt })
  }
}
