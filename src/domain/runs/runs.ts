/** Queues, cancels and deletes runs for callers. Reading is inherited from `RunReader`. */
import { context, propagation, SpanKind } from '@opentelemetry/api'
import type { Encryption } from '../../storage/encryption.ts'
import type { Transaction } from '../../storage/store.ts'
import { inSpan } from '../../telemetry/tracing.ts'
import { rowBytes, type StorageUsage } from '../accounts/storage-usage.ts'
import type { Actor, ApiKeyUse } from '../audit-log/audit-log.ts'
import type { Secrets } from '../workflows/secrets.ts'
import type { VariableError } from '../workflows/workflows.ts'
import { groupOf, isLimitedByKey } from './concurrency-groups.ts'
import { EnqueueBatcher, type NewRun, QueuedRunsLimit } from './enqueue-batcher.ts'
import { createRunId, messageAttributes, type PersistContext, parseCreatedAt, Run, secretsAad } from './run.ts'
import { deleteRun } from './run-erasure.ts'
import { RunReader, type RunReaderDependencies } from './run-reader.ts'
import { isFinal, type RunObserver, type RunStatus, toFinishedRun } from './run-state.ts'
import { appendStatus, findRun, lockRun } from './runs.sql.ts'

/** An API key, or a user in the dashboard. */
interface Queuer {
  accountId: string
  apiKeyId: string | null
  userId?: string | null
}

/** The API key or the user that cancels a run. */
interface Canceller {
  apiKeyId?: string
  userId?: string
}

export interface QueueRequest {
  workflowId: string
  variables: Record<string, unknown>
  idempotencyKey: string | undefined
  delaySeconds: number
  expiresInSeconds: number | undefined
  priority: number
  /** Distinct; `undefined` without any, so that the fingerprints of earlier requests stay the same. */
  tags?: readonly string[] | undefined
  /** For a workflow with a limit per key. */
  concurrencyKey?: string | undefined
  browserContext?: { id: string; persist: PersistContext } | undefined
  /**
   * A run of the same account and workflow whose secrets replace the masks in `variables`. Applies if the same caller
   * queued that run or all other variables are equal; otherwise the masks are not replaced.
   */
  secretsFrom?: string | undefined
}

export type QueueResult =
  | { kind: 'queued'; run: Run; replayed: boolean }
  | { kind: 'noSuchWorkflow' }
  | { kind: 'noSuchBrowserContext' }
  | { kind: 'usesNoBrowser' }
  /** The workflow has no limit per key. */
  | { kind: 'usesNoConcurrencyKey' }
  | { kind: 'variablesInvalid'; errors: VariableError[] }
  | { kind: 'idempotencyConflict' }
  /** The idempotency key belongs to a run that was deleted. */
  | { kind: 'runDeleted' }
  | { kind: 'tooManyQueuedRuns'; queuedMax: number }

const idempotencyMilliseconds = 24 * 60 * 60 * 1000

interface RunsDependencies extends RunReaderDependencies {
  usage?: StorageUsage
  encryption: Encryption
  /** How many queued runs an account may have; 0 for no limit. */
  queuedRunsMax?: number
  observer?: RunObserver
}

export class Runs extends RunReader {
  readonly #dependencies: RunsDependencies
  readonly #batcher: EnqueueBatcher
  readonly #now: () => number

  constructor(dependencies: RunsDependencies, now = Date.now) {
    super(dependencies)
    const { store, queuedRunsMax = 0 } = dependencies
    this.#dependencies = dependencies
    this.#batcher = new EnqueueBatcher(store, new QueuedRunsLimit(queuedRunsMax), now)
    this.#now = now
  }

  /** Queues a run. Once this resolves, the run survives a power cut. @throws {Problem} beyond the storage quota. */
  async queue(queuer: Queuer, request: QueueRequest): Promise<QueueResult> {
    const { store, workflows: registry, encryption, usage } = this.#dependencies
    const workflows = registry.current(queuer.accountId)
    const workflow = workflows.get(request.workflowId)
    if (!workflow) return { kind: 'noSuchWorkflow' }
    if (request.browserContext && !workflow.usesBrowser) return { kind: 'usesNoBrowser' }
    if (request.concurrencyKey !== undefined && !isLimitedByKey(workflow)) return { kind: 'usesNoConcurrencyKey' }
    // Before `checkVariables` fills in defaults: a repeated request must match even if the schema has changed.
    const { idempotencyKey: key } = request
    const canonical = key === undefined ? '' : canonicalRequest(request)
    const earlierSecrets = await this.#earlierSecrets(queuer, request)
    const checked = workflows.checkVariables(workflow.id, request.variables, earlierSecrets)
    if ('errors' in checked) return { kind: 'variablesInvalid', errors: checked.errors }

    const deploymentId = workflows.deploymentOf(workflow.id)
    const run = toNewRun(queuer, request, { ...workflow, deploymentId }, checked.masked)
    if (isLimitedByKey(workflow)) run.concurrency_group = groupOf(run, request.concurrencyKey)
    const { id, account_id } = run
    if (Object.keys(checked.secrets).length > 0) {
      run.secrets = () => encryption.encrypt(JSON.stringify(checked.secrets), secretsAad(account_id, id))
    }
    // A repeated request returns its run although nothing more can be stored.
    if (usage?.refusal(account_id) && !(key && (await this.#isKeyInUse(account_id, key)))) usage.require(account_id)
    // Read before the write: after the commit, nothing may fail before the response.
    const describeLimit = await this.readLimits([run])
    const idempotencyKey =
      key === undefined
        ? undefined
        : {
            key,
            fingerprint: encryption.sign('idempotency', canonical),
            expiresAt: this.#now() + idempotencyMilliseconds,
          }
    const attributes = messageAttributes('send', workflow.id, id)
    const result = await inSpan(`send ${workflow.id}`, { kind: SpanKind.PRODUCER, attributes }, () => {
      const trace: { traceparent?: string } = {}
      propagation.inject(context.active(), trace)
      run.trace_context = trace.traceparent ?? null
      return this.#batcher.enqueue({ run, idempotencyKey })
    })
    if (result.kind === 'enqueued') {
      usage?.add(account_id, rowBytes + run.variables.length)
      store.notify('queue')
      const row = { ...unstarted, ...result.run, secrets: null }
      return { kind: 'queued', run: new Run(row, describeLimit, [], []), replayed: false }
    }
    if (result.kind !== 'keyInUse') return result
    const signatures = encryption.signatures('idempotency', canonical)
    if (!signatures.some((each) => each.equals(result.fingerprint))) return { kind: 'idempotencyConflict' }
    const first = await this.get(account_id, result.runId)
    if (!first) return { kind: 'runDeleted' }
    return { kind: 'queued', run: first, replayed: true }
  }

  async #isKeyInUse(accountId: string, key: string): Promise<boolean> {
    const { read } = this.#dependencies.store
    return (await read.all(read.statements.findIdempotencyKey, [accountId, key])).length > 0
  }

  /** Cancels a queued run, requests a running one to stop, and leaves a finished one unchanged. */
  async cancel(accountId: string, id: string, by: Canceller = {}): Promise<Run | undefined> {
    const { store, observer } = this.#dependencies
    const cancel = async (tx: Transaction) => {
      const at = this.#now()
      const row = await lockRun(tx, accountId, id)
      if (!row || isFinal(row.status as RunStatus) || row.cancel_requested === 1) return undefined
      const isQueued = row.status === 'queued'
      const change = isQueued ? { status: 'cancelled', reason: 'cancelRequested', finished_at: at } : {}
      const { apiKeyId = null, userId = null } = by
      const canceller = { cancelled_by_key_id: apiKeyId, cancelled_by_user_id: userId }
      const update = tx.query.updateTable('runs').set({ ...change, ...canceller, cancel_requested: 1 })
      await update.where('id', '=', row.id).execute()
      if (isQueued) await tx.all(tx.statements.deleteSteps, [row.id])
      await appendStatus(tx, row, isQueued ? 'cancelled' : row.status, 'cancelRequested', at)
      return { row, at }
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

  /** Erases a finished run; returns an unfinished one unchanged, and `undefined` if the account has no such run. */
  async delete(accountId: string, id: string, by: Actor | ApiKeyUse): Promise<'deleted' | Run | undefined> {
    const deleted = await deleteRun(this.#dependencies.store, accountId, id, by)
    return deleted === 'unfinished' ? this.get(accountId, id) : deleted
  }

  /**
   * The secrets of the run in `secretsFrom`. Other callers get them only with unchanged variables: with a different
   * URL, for example, the workflow might send the secret to another host.
   */
  async #earlierSecrets({ accountId, apiKeyId, userId = null }: Queuer, request: QueueRequest): Promise<Secrets> {
    const { store, encryption } = this.#dependencies
    const { secretsFrom, workflowId, variables } = request
    const row = secretsFrom === undefined ? undefined : await findRun(store.read, accountId, secretsFrom)
    if (!row?.secrets || row.workflow_id !== workflowId) return {}
    const isOwn = (userId !== null && row.user_id === userId) || (apiKeyId !== null && row.api_key_id === apiKeyId)
    if (!isOwn && canonicalJson(variables) !== canonicalJson(JSON.parse(row.variables))) return {}
    return JSON.parse(encryption.decrypt(row.secrets, secretsAad(accountId, row.id)))
  }
}

/** Columns that an INSERT leaves at their defaults. */
const unstarted = {
  reason: null,
  attempts: 0,
  failures: 0,
  losses: 0,
  attempt_started_at: null,
  attempt_ends: null,
  output: null,
  error: null,
  progress: null,
  cancel_requested: 0,
  cancelled_by_key_id: null,
  cancelled_by_user_id: null,
  started_at: null,
  finished_at: null,
  worker_id: null,
  lease_expires_at: null,
  deployment_problem: null,
} as const

function toNewRun(
  { accountId, apiKeyId, userId = null }: Queuer,
  { priority, delaySeconds, expiresInSeconds, tags, browserContext }: QueueRequest,
  workflow: { id: string; version: string; deploymentId: string | null },
  variables: Record<string, unknown>,
): NewRun {
  const id = createRunId()
  const createdAt = parseCreatedAt(id)
  return {
    id,
    account_id: accountId,
    api_key_id: apiKeyId,
    user_id: userId,
    workflow_id: workflow.id,
    workflow_version: workflow.version,
    status: 'queued',
    priority,
    variables: JSON.stringify(variables),
    secrets: null,
    created_at: createdAt,
    delayed: delaySeconds === 0 ? 0 : 1,
    available_at: delaySeconds === 0 ? null : createdAt + delaySeconds * 1000,
    expires_at: expiresInSeconds === undefined ? null : createdAt + expiresInSeconds * 1000,
    browser_context_id: browserContext?.id.toLowerCase() ?? null,
    persist_context: browserContext?.persist ?? null,
    waits_for_context: 0,
    trace_context: null,
    deployment_id: workflow.deploymentId,
    tags: tags === undefined ? null : JSON.stringify(tags),
    concurrency_group: null,
  }
}

/** Identifies a request that is sent again with its idempotency key. */
function canonicalRequest({ idempotencyKey: _, browserContext, tags, ...request }: QueueRequest): string {
  // UUIDs are case-insensitive (RFC 9562, section 4).
  const sameContext = browserContext && { ...browserContext, id: browserContext.id.toLowerCase() }
  return canonicalJson({ ...request, browserContext: sameContext, tags: tags?.toSorted() })
}

/** JSON with sorted members: their order has no meaning (RFC 8259, section 4). */
function canonicalJson(json: unknown): string {
  return JSON.stringify(json, (_, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}
