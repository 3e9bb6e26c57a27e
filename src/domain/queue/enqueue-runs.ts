/**
 * Queues runs for callers: validates their requests, and enqueues all runs of a request or none. A single run is a batch of
 * one.
 */

import { hash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { context, propagation, SpanKind } from '@opentelemetry/api'
import { errorsMax } from '../../contract/problem.ts'
import type { Encryption } from '../../storage/encryption.ts'
import { rowBytes } from '../../storage/runs/run-maintenance.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import { inSpan } from '../../telemetry/tracing.ts'
import type { StorageUsage } from '../accounts/storage-usage.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { messageAttributes, Run, secretsAad } from '../runs/run.ts'
import type { Secrets } from '../workflows/secrets.ts'
import type { VariableError } from '../workflows/workflows.ts'
import { EnqueueBatcher, type EnqueueResult, type NewRun, QueuedRunsLimit } from './enqueue-batcher.ts'
import { type RequestError, toErrors } from './queue-problems.ts'
import {
  canonicalRequest,
  createIdempotencyKey,
  createRun,
  type QueueRequest,
  type Queuer,
  type RefusedRun,
  toQueuedRow,
} from './queue-request.ts'
import { mayReuse } from './reused-steps.ts'
import { findRun } from './runs.sql.ts'
import { readLimits } from './waiting.ts'

/** Maximum size of the variables of each run of a batch as JSON: what `queueRemoteRun` accepts. */
export const variablesBytesMax = 1024 * 1024

/** Maximum time of validation before other requests are served. */
const sliceMilliseconds = 10

/** What a request is refused for, whatever its runs are. */
type Conflict =
  | { kind: 'idempotencyConflict' }
  | { kind: 'tooManyQueuedRuns'; queuedMax: number }
  /** The idempotency key belongs to these runs, which an equal request has queued. */
  | { kind: 'repeated'; runIds: string[] }

/** A run refers to a browser context or a file that the account does not have. */
type UnknownReference = Extract<EnqueueResult, { kind: 'noSuchBrowserContext' | 'noSuchFile' }>

export type EnqueuedRun = { kind: 'queued'; run: Run } | RefusedRun | Conflict

export type EnqueuedBatch =
  | { kind: 'queued'; runs: Run[] }
  /** The index is the position of the run in the batch. */
  | { kind: 'invalid'; errors: (RequestError & { index: number })[] }
  | Conflict

export interface EnqueuerDependencies {
  store: Store
  workflows: WorkflowRegistry
  encryption: Encryption
  usage?: StorageUsage
  /** How many queued runs an account may have; 0 for no limit. */
  queuedRunsMax?: number
  /** How many runs of one account may run at the same time; 0 for no limit. */
  accountConcurrency?: number
  /** From when a file is used until it expires. */
  fileRetentionMilliseconds?: number
}

export interface EnqueueOptions {
  /** Replace the masks in the variables of a schedule. */
  secrets?: Secrets
  /** Writes in the transaction that stores the run. Not called if the run is refused or exists already. */
  within?: (tx: Transaction, runId: string) => Promise<void>
}

export class Enqueuer {
  readonly #dependencies: EnqueuerDependencies
  readonly #batcher: EnqueueBatcher
  readonly #now: () => number

  constructor(dependencies: EnqueuerDependencies, now: () => number) {
    const { store, queuedRunsMax = 0, fileRetentionMilliseconds = 0 } = dependencies
    this.#dependencies = dependencies
    this.#batcher = new EnqueueBatcher(store, new QueuedRunsLimit(queuedRunsMax), fileRetentionMilliseconds, now)
    this.#now = now
  }

  /** @throws {Problem} beyond the storage quota. */
  async enqueue(queuer: Queuer, request: QueueRequest, options: EnqueueOptions = {}): Promise<EnqueuedRun> {
    const { within, secrets = await this.#earlierSecrets(queuer, request) } = options
    const compiling = this.#compiling(queuer, request)
    if (compiling) await compiling
    // Before `createRun` fills in defaults: a repeated request must match even if the schema has changed.
    const canonical = request.idempotencyKey === undefined ? '' : canonicalRequest(request)
    const created = createRun(this.#dependencies, queuer, request, secrets)
    if (created.kind !== 'created') return created
    const { run } = created
    const enqueued = await this.#store([run], { key: request.idempotencyKey, canonical }, within)
    if (enqueued.kind === 'noSuchBrowserContext') return { kind: 'noSuchBrowserContext' }
    if (enqueued.kind === 'noSuchFile')
      return { kind: 'variablesInvalid', errors: enqueued.errors.map(toVariableError) }
    return enqueued.kind === 'queued' ? { kind: 'queued', run: enqueued.runs[0] as Run } : enqueued
  }

  /** Set while a thread compiles the schema of the variables, which would stop this one. */
  #compiling({ accountId }: Queuer, { workflowId }: QueueRequest): Promise<void> | undefined {
    return this.#dependencies.workflows.current(accountId).compiling(workflowId)
  }

  /** Queues all runs of one account or none, in one transaction. @throws {Problem} beyond the storage quota. */
  async enqueueBatch(queuer: Queuer, requests: readonly QueueRequest[], key?: string): Promise<EnqueuedBatch> {
    for (const request of requests) {
      const compiling = this.#compiling(queuer, request)
      if (compiling) await compiling
    }
    const created = await this.#createAll(queuer, requests, key !== undefined)
    if ('errors' in created) return { kind: 'invalid', errors: created.errors }
    const enqueued = await this.#store(created.runs, { key, canonical: created.canonical })
    if (enqueued.kind === 'noSuchFile') {
      const errors = enqueued.errors.map(({ index, pointer, detail }) => {
        return { member: 'variableData' as const, index, pointer, detail }
      })
      return { kind: 'invalid', errors: errors.slice(0, errorsMax) }
    }
    if (enqueued.kind !== 'noSuchBrowserContext') return enqueued
    const [error] = toErrors({ kind: 'noSuchBrowserContext' }) as [RequestError]
    return { kind: 'invalid', errors: enqueued.indexes.slice(0, errorsMax).map((index) => ({ ...error, index })) }
  }

  /**
   * Validates requests in slices of a few milliseconds, so that other requests are served in between.
   *
   * @param isRepeatable whether to compute what identifies the batch.
   */
  async #createAll(
    queuer: Queuer,
    requests: readonly QueueRequest[],
    isRepeatable: boolean,
  ): Promise<{ runs: NewRun[]; canonical: string } | { errors: (RequestError & { index: number })[] }> {
    const runs: NewRun[] = []
    const errors: (RequestError & { index: number })[] = []
    const hashes: string[] = []
    let sliceEnds = performance.now() + sliceMilliseconds
    for (const [index, request] of requests.entries()) {
      if (performance.now() > sliceEnds) {
        await nextTurn()
        sliceEnds = performance.now() + sliceMilliseconds
      }
      if (isRepeatable) hashes.push(hash('sha256', canonicalRequest(request)))
      const created = createRun(this.#dependencies, queuer, request)
      if (created.kind !== 'created') errors.push(...toErrors(created).map((error) => ({ ...error, index })))
      else if (created.run.variables.length > variablesBytesMax) {
        const detail = `has more than ${variablesBytesMax} bytes as JSON`
        errors.push({ member: 'variableData', pointer: '', detail, index })
      } else runs.push(created.run)
      if (errors.length >= errorsMax) break
    }
    if (errors.length > 0) return { errors: errors.slice(0, errorsMax) }
    return { runs, canonical: `batch ${hashes.join(' ')}` }
  }

  /** Stores runs of one account. @param canonical identifies the request if it has an idempotency key. */
  async #store(
    runs: NewRun[],
    { key, canonical }: { key: string | undefined; canonical: string },
    within?: EnqueueOptions['within'],
  ): Promise<{ kind: 'queued'; runs: Run[] } | UnknownReference | Conflict> {
    const { store, encryption, usage, workflows, accountConcurrency } = this.#dependencies
    const [first] = runs
    if (!first) return { kind: 'queued', runs: [] }
    const { account_id: accountId } = first
    const ofSteps = runs.flatMap(({ steps = [] }) => steps).reduce((sum, { bytes }) => sum + bytes, 0)
    const bytes = runs.reduce((sum, { variables }) => sum + rowBytes + variables.length, ofSteps)
    // A single run may exceed the quota by its variables, which have at most 1 MiB.
    const needed = runs.length === 1 ? ofSteps : bytes
    // A repeated request returns its runs although nothing more can be stored.
    if (usage?.refusal(accountId, needed) && !(key && (await this.#batcher.isKeyInUse(accountId, key))))
      usage.require(accountId, needed)
    // Read before the write: after the commit, nothing may fail before the response.
    const describeLimit = await readLimits(store.read, { workflows, accountConcurrency }, runs)
    const idempotencyKey = key === undefined ? undefined : createIdempotencyKey(encryption, key, canonical, this.#now())
    const { name, ...span } = spanOf(runs)
    const result = await inSpan(name, span, () => {
      const trace: { traceparent?: string } = {}
      propagation.inject(context.active(), trace)
      for (const run of runs) run.trace_context = trace.traceparent ?? null
      return this.#batcher.enqueue({ runs, idempotencyKey, within: within && ((tx) => within(tx, first.id)) })
    })
    if (result.kind === 'enqueued') {
      usage?.add(accountId, bytes)
      store.notify('queue')
      return { kind: 'queued', runs: result.runs.map((run) => new Run(toQueuedRow(run), describeLimit, [], [])) }
    }
    if (result.kind !== 'keyInUse') return result
    const signatures = encryption.signatures('idempotency', canonical)
    const isSame = signatures.some((each) => each.equals(result.fingerprint))
    return isSame ? { kind: 'repeated', runIds: result.runIds } : { kind: 'idempotencyConflict' }
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

const toVariableError = ({ pointer, detail }: VariableError): VariableError => ({ pointer, detail })

function spanOf(runs: readonly NewRun[]) {
  const [run] = runs
  const kind = SpanKind.PRODUCER
  if (run && runs.length === 1)
    return { name: `send ${run.workflow_id}`, kind, attributes: messageAttributes('send', run.workflow_id, run.id) }
  const attributes = {
    'messaging.system': 'execution_service',
    'messaging.operation.name': 'send',
    'messaging.operation.type': 'send',
    'messaging.batch.message_count': runs.length,
  }
  return { name: 'send batch', kind, attributes }
}
