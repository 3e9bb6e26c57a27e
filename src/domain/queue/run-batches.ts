/**
 * Queues batches of runs, all or none. A batch is validated in slices of a few milliseconds, so that other requests are
 * served in between, and inserted by one transaction.
 */
import { hash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { context, propagation, SpanKind } from '@opentelemetry/api'
import type { Encryption } from '../../storage/encryption.ts'
import { inList } from '../../storage/statement-values.ts'
import type { Store } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables/run-tables.ts'
import { inSpan } from '../../telemetry/tracing.ts'
import { rowBytes, type StorageUsage } from '../accounts/storage-usage.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { type DescribeLimit, Run } from '../runs/run.ts'
import type { EnqueueBatcher, NewRun } from './enqueue.ts'
import { refusedDetails } from './queue-problems.ts'
import {
  canonicalRequest,
  createIdempotencyKey,
  createRun,
  type QueueRequest,
  type Queuer,
  queuedRowColumns,
  type RefusedRun,
  toQueuedRow,
} from './queue-request.ts'
import type { readLimits } from './waiting.ts'

/** Maximum size of the variables of each run as JSON: what `queueRemoteRun` accepts. */
export const variablesBytesMax = 1024 * 1024

/** Maximum number of reported errors, as for every request. */
const errorsMax = 20

/** Maximum time of validation before other requests are served. */
const sliceMilliseconds = 10

/** A validation error of an entry: a JSON Pointer into the list of requests. */
export interface BatchError {
  pointer: string
  detail: string
}

export type BatchResult =
  | { kind: 'queued'; runs: Run[]; replayed: boolean }
  | { kind: 'invalid'; errors: BatchError[] }
  | { kind: 'idempotencyConflict' }
  /** The idempotency key belongs to a batch of which a run was deleted. */
  | { kind: 'runDeleted' }
  | { kind: 'tooManyQueuedRuns'; queuedMax: number }

interface BatchDependencies {
  store: Store
  workflows: WorkflowRegistry
  encryption: Encryption
  usage?: StorageUsage
  batcher: EnqueueBatcher
  readLimits(runs: Parameters<typeof readLimits>[2]): Promise<DescribeLimit>
  now(): number
}

export class RunBatches {
  readonly #dependencies: BatchDependencies

  constructor(dependencies: BatchDependencies) {
    this.#dependencies = dependencies
  }

  /** @throws {Problem} beyond the storage quota. */
  async queue(queuer: Queuer, requests: readonly QueueRequest[], key: string | undefined): Promise<BatchResult> {
    const { encryption, store, usage, batcher, now } = this.#dependencies
    const created = await this.#create(queuer, requests, key !== undefined)
    if ('errors' in created) return { kind: 'invalid', errors: created.errors }
    const { runs, canonical } = created
    const bytes = runs.reduce((sum, { variables }) => sum + rowBytes + variables.length, 0)
    // A repeated request returns its runs although nothing more can be stored.
    if (usage?.refusal(queuer.accountId, bytes) && !(key && (await batcher.isKeyInUse(queuer.accountId, key))))
      usage.require(queuer.accountId, bytes)
    // Read before the write: after the commit, nothing may fail before the response.
    const describeLimit = await this.#dependencies.readLimits(runs)
    const idempotencyKey = key === undefined ? undefined : createIdempotencyKey(encryption, key, canonical, now())
    const result = await inSpan('send batch', { kind: SpanKind.PRODUCER, attributes: toAttributes(runs) }, () => {
      const trace: { traceparent?: string } = {}
      propagation.inject(context.active(), trace)
      for (const run of runs) run.trace_context = trace.traceparent ?? null
      return batcher.enqueueTogether(runs, idempotencyKey)
    })
    switch (result.kind) {
      case 'enqueued':
        usage?.add(queuer.accountId, bytes)
        store.notify('queue')
        return {
          kind: 'queued',
          runs: result.runs.map((run) => new Run(toQueuedRow(run), describeLimit, [], [])),
          replayed: false,
        }
      case 'noSuchBrowserContext':
        return { kind: 'invalid', errors: result.indexes.slice(0, errorsMax).map(toContextError) }
      case 'tooManyQueuedRuns':
        return result
      case 'keyInUse': {
        const signatures = encryption.signatures('idempotency', canonical)
        if (!signatures.some((each) => each.equals(result.fingerprint))) return { kind: 'idempotencyConflict' }
        const first = await this.#find(queuer.accountId, result.runIds)
        return first ? { kind: 'queued', runs: first, replayed: true } : { kind: 'runDeleted' }
      }
    }
  }

  /** @param isRepeatable whether to compute what identifies the batch. */
  async #create(
    queuer: Queuer,
    requests: readonly QueueRequest[],
    isRepeatable: boolean,
  ): Promise<{ runs: NewRun[]; canonical: string } | { errors: BatchError[] }> {
    const runs: NewRun[] = []
    const errors: BatchError[] = []
    const hashes: string[] = []
    let sliceEnds = performance.now() + sliceMilliseconds
    for (const [index, request] of requests.entries()) {
      if (performance.now() > sliceEnds) {
        await nextTurn()
        sliceEnds = performance.now() + sliceMilliseconds
      }
      // Before `createRun` fills in defaults: a repeated request must match even if the schema has changed.
      if (isRepeatable) hashes.push(hash('sha256', canonicalRequest(request)))
      const created = createRun(this.#dependencies, queuer, request)
      if (created.kind !== 'created') errors.push(...toErrors(index, created))
      else if (created.run.variables.length > variablesBytesMax)
        errors.push({ pointer: `/${index}/variableData`, detail: `has more than ${variablesBytesMax} bytes as JSON` })
      else runs.push(created.run)
      if (errors.length >= errorsMax) break
    }
    if (errors.length > 0) return { errors: errors.slice(0, errorsMax) }
    return { runs, canonical: `batch ${hashes.join(' ')}` }
  }

  /** The runs in this order, without outputs, which could be a gigabyte; `undefined` if one of them was deleted. */
  async #find(accountId: string, ids: readonly string[]): Promise<Run[] | undefined> {
    const { store, readLimits } = this.#dependencies
    const { marks, values } = inList(ids)
    const found = await store.read.all<RunsTable>(
      `SELECT ${queuedRowColumns.filter((column) => column !== 'output' && column !== 'secrets')},
        NULL AS output, NULL AS secrets FROM runs
        WHERE id IN (${marks}) AND account_id || '' = ? AND status <> 'deleted'`,
      [...values, accountId],
    )
    if (found.length < ids.length) return undefined
    const describeLimit = await readLimits(found)
    const byId = new Map(found.map((row) => [row.id, new Run(row, describeLimit, [], undefined)]))
    return ids.flatMap((id) => byId.get(id) ?? [])
  }
}

function toErrors(index: number, refused: RefusedRun): BatchError[] {
  switch (refused.kind) {
    case 'noSuchWorkflow':
      return [{ pointer: `/${index}/workflowId`, detail: refusedDetails.noSuchWorkflow }]
    case 'usesNoBrowser':
      return [{ pointer: `/${index}/browserContextId`, detail: refusedDetails.usesNoBrowser }]
    case 'usesNoConcurrencyKey':
      return [{ pointer: `/${index}/concurrencyKey`, detail: refusedDetails.usesNoConcurrencyKey }]
    case 'variablesInvalid':
      return refused.errors.map(({ pointer, detail }) => ({ pointer: `/${index}/variableData${pointer}`, detail }))
  }
}

function toContextError(index: number): BatchError {
  return { pointer: `/${index}/browserContextId`, detail: refusedDetails.noSuchBrowserContext }
}

function toAttributes(runs: readonly NewRun[]) {
  return {
    'messaging.system': 'execution_service',
    'messaging.operation.name': 'send',
    'messaging.operation.type': 'send',
    'messaging.batch.message_count': runs.length,
  }
}
