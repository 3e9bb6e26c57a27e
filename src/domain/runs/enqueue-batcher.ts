/**
 * Writes runs into the queue: all that arrive together in one transaction and a few statements. Nobody is answered
 * before the commit that holds their run.
 */

import { context, ROOT_CONTEXT } from '@opentelemetry/api'
import { type Store, StoreUnavailable, type Transaction } from '../../storage/store.ts'
import { findContext } from '../browser-contexts/browser-contexts.sql.ts'
import type { Dispatcher } from './dispatcher.ts'
import { claimIdempotencyKey, type IdempotencyKey, releaseIdempotencyKey } from './idempotency-keys.ts'
import type { QueuedCap } from './queued-cap.ts'
import type { Queued } from './queueing.ts'
import { type EnqueuedRun, insertRuns, type NewRun } from './runs.sql.ts'

export interface EnqueueRequest {
  run: NewRun
  idempotencyKey: IdempotencyKey | undefined
}

export type EnqueueResult =
  | { kind: 'entered'; waitsForContext: boolean }
  | Refusal
  /** The key was used before, for this run. */
  | { kind: 'usedBefore'; runId: string; fingerprint: Uint8Array }

type Refusal = Extract<Queued, { kind: 'noSuchBrowserContext' | 'tooManyQueuedRuns' }>

/** For how many runs of an account there is room. */
interface Room {
  runs: number
}

interface Waiting {
  entry: EnqueueRequest
  resolve(entered: EnqueueResult): void
  reject(error: unknown): void
}

/** Bounds how long the first of them waits for the last. */
const batchMax = 256

export class EnqueueBatcher {
  readonly #store: Store
  readonly #handout: Dispatcher
  readonly #queuedCap: QueuedCap
  readonly #now: () => number
  #waiting: Waiting[] = []
  #draining: Promise<void> | undefined

  constructor(store: Store, handout: Dispatcher, queuedCap: QueuedCap, now: () => number) {
    this.#store = store
    this.#handout = handout
    this.#queuedCap = queuedCap
    this.#now = now
  }

  /** Once this resolves, the run survives a power cut. */
  enqueue(entry: EnqueueRequest): Promise<EnqueueResult> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entry, resolve, reject })
      // Outside the trace of the request that starts the drain: the batch serves other requests too.
      this.#draining ??= context.with(ROOT_CONTEXT, () => this.#drain())
    })
  }

  /** While one batch is on its way to the disk, the next one gathers. */
  async #drain(): Promise<void> {
    // What has arrived on other connections has yet to be read and authenticated.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, batchMax)
      await this.#write(batch)
    }
    this.#draining = undefined
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    try {
      const entries = batch.map(({ entry }) => entry)
      await this.#handout.open(entries.map(({ run }) => ({ account_id: run.accountId, workflow_id: run.workflowId })))
      const entered = await this.#store.write((tx) => this.#enterAll(tx, entries), {
        concurrent: true,
        batchSize: entries.length,
      })
      for (const [index, { resolve }] of batch.entries()) resolve(entered[index] as EnqueueResult)
    } catch (error) {
      // A commit whose answer was lost with its connection may have happened: the same runs are not written again.
      if (batch.length === 1 || error instanceof StoreUnavailable) {
        for (const { reject } of batch) reject(error)
        return
      }
      // One of them cannot be written; the others are not to suffer for it.
      for (const each of batch) await this.#write([each])
    }
  }

  async #enterAll(tx: Transaction, entries: readonly EnqueueRequest[]): Promise<EnqueueResult[]> {
    const rooms = await this.#rooms(tx, entries)
    const runs: EnqueuedRun[] = []
    const entered = new Map<EnqueueRequest, EnqueueResult>()
    for (const entry of inOneOrder(entries)) {
      const found = await this.#found(tx, entry, rooms.get(entry.run.accountId) as Room)
      entered.set(entry, found)
      if (found.kind !== 'entered') continue
      const { run } = entry
      runs.push({ ...run, waitsForContext: found.waitsForContext, jobId: this.#handout.jobIdOf(run.id) })
    }
    // In the order in which they were made, which is that of their ids.
    runs.sort((a, b) => (a.id < b.id ? -1 : 1))
    await insertRuns(tx, runs)
    await this.#handout.enter(tx, runs.map(readyRunOf))
    return entries.map((entry) => entered.get(entry) as EnqueueResult)
  }

  /** Before anything is written, and in one order, as the cap wants it. */
  async #rooms(tx: Transaction, entries: readonly EnqueueRequest[]): Promise<Map<string, Room>> {
    const rooms = new Map<string, Room>()
    const byAccount = Map.groupBy(entries, ({ run }) => run.accountId)
    for (const accountId of [...byAccount.keys()].sort()) {
      const wanted = byAccount.get(accountId)?.length ?? 0
      rooms.set(accountId, { runs: await this.#queuedCap.room(tx, accountId, wanted) })
    }
    return rooms
  }

  async #found(tx: Transaction, { run, idempotencyKey }: EnqueueRequest, room: Room): Promise<EnqueueResult> {
    if (idempotencyKey) {
      const earlier = await claimIdempotencyKey(tx, idempotencyKey, this.#now())
      if (earlier) return { kind: 'usedBefore', runId: earlier.run_id, fingerprint: earlier.fingerprint }
    }
    const admitted = await this.#admitted(tx, run, room)
    if (admitted.kind === 'entered') room.runs -= 1
    else if (idempotencyKey) await releaseIdempotencyKey(tx, idempotencyKey)
    return admitted
  }

  async #admitted(
    tx: Transaction,
    run: NewRun,
    room: Room,
  ): Promise<Extract<EnqueueResult, { kind: 'entered' }> | Refusal> {
    if (room.runs === 0) return { kind: 'tooManyQueuedRuns', queuedMax: this.#queuedCap.max }
    if (run.browserContextId === null) return { kind: 'entered', waitsForContext: false }
    const context = await findContext(tx, run.accountId, run.browserContextId)
    if (!context) return { kind: 'noSuchBrowserContext' }
    // One that is delayed is looked at again when its time has come.
    const isHeld = context.held_by_run_id !== null
    return { kind: 'entered', waitsForContext: isHeld && run.persistContext !== 'never' && run.availableAt === null }
  }
}

function readyRunOf({ id, accountId, workflowId, priority, jobId, availableAt, waitsForContext }: EnqueuedRun) {
  const isParked = availableAt !== null || waitsForContext
  return { id, account_id: accountId, workflow_id: workflowId, priority, job_id: jobId, isParked }
}

/** Of keys that others write at the same time, so that no two processes wait for one another. */
function inOneOrder(entries: readonly EnqueueRequest[]): EnqueueRequest[] {
  const orderOf = ({ idempotencyKey: key }: EnqueueRequest) => (key ? `${key.accountId} ${key.key}` : '')
  return entries.toSorted((a, b) => (orderOf(a) < orderOf(b) ? -1 : orderOf(a) > orderOf(b) ? 1 : 0))
}
