/** Queues, cancels and deletes runs for callers. Reading is inherited from `RunReader`. */
import { context, propagation, SpanKind } from '@opentelemetry/api'
import type { Encryption } from '../../storage/encryption.ts'
import type { Transaction } from '../../storage/store.ts'
import { inSpan } from '../../telemetry/tracing.ts'
import { rowBytes, type StorageUsage } from '../accounts/storage-usage.ts'
import type { Actor, ApiKeyUse } from '../audit-log/audit-log.ts'
import type { Secrets } from '../workflows/secrets.ts'
import { type Canceller, cancelRow } from './cancellation.ts'
import { resumeNextOfGroups } from './concurrency-groups.ts'
import { EnqueueBatcher } from './enqueue-batcher.ts'
import {
  canonicalRequest,
  createIdempotencyKey,
  createRun,
  type QueueRequest,
  type Queuer,
  type RefusedRun,
  toQueuedRow,
} from './new-run.ts'
import { QueuedRunsLimit } from './queued-runs-limit.ts'
import { findStepsBefore, mayReuse, type RefusedStart, type RunStart, readStart } from './reused-steps.ts'
import { messageAttributes, Run, secretsAad } from './run.ts'
import { type BatchResult, RunBatches } from './run-batches.ts'
import { deleteRun } from './run-erasure.ts'
import { RunReader, type RunReaderDependencies } from './run-reader.ts'
import { type RunObserver, toFinishedRun } from './run-state.ts'
import { findRun } from './runs.sql.ts'

export type { QueueRequest } from './new-run.ts'

export type QueueResult =
  | { kind: 'queued'; run: Run; replayed: boolean }
  | RefusedRun
  | { kind: 'noSuchBrowserContext' }
  | { kind: 'idempotencyConflict' }
  /** The idempotency key belongs to a run that was deleted. */
  | { kind: 'runDeleted' }
  | { kind: 'tooManyQueuedRuns'; queuedMax: number }

interface RunsDependencies extends RunReaderDependencies {
  usage?: StorageUsage
  encryption: Encryption
  /** How many queued runs an account may have; 0 for no limit. */
  queuedRunsMax?: number
  observer?: RunObserver
}

export interface QueueOptions {
  /** Replace the masks in the variables of a schedule. */
  secrets?: Secrets
  /** Writes in the transaction that stores the run. Not called if the run is refused or exists already. */
  andStore?: (tx: Transaction, runId: string) => Promise<void>
}

export class Runs extends RunReader {
  readonly #dependencies: RunsDependencies
  readonly #batcher: EnqueueBatcher
  readonly #batches: RunBatches
  readonly #now: () => number

  constructor(dependencies: RunsDependencies, now = Date.now) {
    super(dependencies)
    const { store, queuedRunsMax = 0 } = dependencies
    this.#dependencies = dependencies
    this.#batcher = new EnqueueBatcher(store, new QueuedRunsLimit(queuedRunsMax), now)
    const readLimits = this.readLimits.bind(this)
    this.#batches = new RunBatches({ ...dependencies, batcher: this.#batcher, readLimits, now })
    this.#now = now
  }

  /**
   * Queues a run. Once this resolves, the run survives a power cut.
   *
   * @throws {Problem} beyond the storage quota.
   */
  async queue(queuer: Queuer, request: QueueRequest, { secrets, andStore }: QueueOptions = {}): Promise<QueueResult> {
    const { store, workflows: registry, encryption, usage } = this.#dependencies
    // Before `createRun` fills in defaults: a repeated request must match even if the schema has changed.
    const { idempotencyKey: key } = request
    const canonical = key === undefined ? '' : canonicalRequest(request)
    const earlierSecrets =
      secrets ?? (request.secretsFrom === undefined ? {} : await this.#earlierSecrets(queuer, request))
    const created = createRun({ workflows: registry, encryption }, queuer, request, earlierSecrets)
    if (created.kind !== 'created') return created
    const { run } = created
    const { id, account_id } = run
    const stepBytes = request.start?.results.reduce((sum, { value }) => sum + Buffer.byteLength(value), 0) ?? 0
    // A repeated request returns its run although nothing more can be stored.
    if (usage?.refusal(account_id, stepBytes) && !(key && (await this.#batcher.isKeyInUse(account_id, key))))
      usage.require(account_id, stepBytes)
    // Read before the write: after the commit, nothing may fail before the response.
    const describeLimit = await this.readLimits([run])
    const idempotencyKey = key === undefined ? undefined : createIdempotencyKey(encryption, key, canonical, this.#now())
    const attributes = messageAttributes('send', run.workflow_id, id)
    const result = await inSpan(`send ${run.workflow_id}`, { kind: SpanKind.PRODUCER, attributes }, () => {
      const trace: { traceparent?: string } = {}
      propagation.inject(context.active(), trace)
      run.trace_context = trace.traceparent ?? null
      return this.#batcher.enqueue({ run, idempotencyKey, andStore: andStore && ((tx) => andStore(tx, id)) })
    })
    if (result.kind === 'enqueued') {
      usage?.add(account_id, rowBytes + run.variables.length + stepBytes)
      store.notify('queue')
      return { kind: 'queued', run: new Run(toQueuedRow(result.run), describeLimit, [], []), replayed: false }
    }
    if (result.kind !== 'keyInUse') return result
    const signatures = encryption.signatures('idempotency', canonical)
    if (!signatures.some((each) => each.equals(result.fingerprint))) return { kind: 'idempotencyConflict' }
    const first = await this.get(account_id, result.runId)
    if (!first) return { kind: 'runDeleted' }
    return { kind: 'queued', run: first, replayed: true }
  }

  /** Queues all runs or none, in one transaction. @throws {Problem} beyond the storage quota. */
  queueBatch(queuer: Queuer, requests: readonly QueueRequest[], idempotencyKey?: string): Promise<BatchResult> {
    return this.#batches.queue(queuer, requests, idempotencyKey)
  }

  /** Cancels a queued run, requests a running one to stop, and leaves a finished one unchanged. */
  async cancel(accountId: string, id: string, by: Canceller = {}): Promise<Run | undefined> {
    const { store, observer } = this.#dependencies
    const cancel = async (tx: Transaction) => {
      const at = this.#now()
      const row = await cancelRow(tx, accountId, id, by, at)
      if (row?.status === 'queued') await resumeNextOfGroups(tx, [row])
      return row && { row, at }
    }
    const cancelled = await store.write(cancel, { concurrent: true })
    if (cancelled) {
      const { row, at } = cancelled
      store.notify('cancellations')
      store.notify('runs')
      if (row.status === 'queued') {
        observer?.finished(toFinishedRun(row, { status: 'cancelled', reason: 'cancelRequested' }, at))
      }
    }
    return this.get(accountId, id)
  }

  /** How many results a run that starts from that step reuses, with unchanged variables; 0 if it cannot start there. */
  async countReusable(finished: Run, fromStep: string): Promise<number> {
    const found = await findStepsBefore(this.#dependencies, finished, fromStep)
    return 'before' in found ? found.before.length : 0
  }

  /** What the request needs as `start`, to start from that step of the finished run. */
  readStart(
    finished: Run,
    fromStep: string,
    by: Queuer,
    variables: QueueRequest['variables'],
  ): Promise<RunStart | RefusedStart> {
    return readStart(this.#dependencies, finished, fromStep, { by, variables })
  }

  /** Erases a finished run; returns an unfinished one unchanged, and `undefined` if the account has no such run. */
  async delete(accountId: string, id: string, by: Actor | ApiKeyUse): Promise<'deleted' | Run | undefined> {
    const deleted = await deleteRun(this.#dependencies.store, accountId, id, by)
    return deleted === 'unfinished' ? this.get(accountId, id) : deleted
  }

  /** The secrets of the run in `secretsFrom`, if the caller may reuse them. */
  async #earlierSecrets({ accountId, apiKeyId, userId = null }: Queuer, request: QueueRequest): Promise<Secrets> {
    const { store, encryption } = this.#dependencies
    const { secretsFrom, workflowId, variables } = request
    const row = secretsFrom === undefined ? undefined : await findRun(store.read, accountId, secretsFrom)
    if (!row?.secrets || row.workflow_id !== workflowId) return {}
    const earlier = { apiKeyId: row.api_key_id, userId: row.user_id, variables: JSON.parse(row.variables) }
    if (!mayReuse({ apiKeyId, userId }, variables, earlier)) return {}
    return JSON.parse(encryption.decrypt(row.secrets, secretsAad(accountId, row.id)))
  }
}
