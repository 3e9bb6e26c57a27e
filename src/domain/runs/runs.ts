/** What callers do with runs: queue, read, list and cancel them. */
import { context, propagation, SpanKind } from '@opentelemetry/api'
import { v7 as uuid } from 'uuid'
import type { Cursors } from '../../storage/cursors.ts'
import type { Encryption } from '../../storage/encryption.ts'
import { ignoreUnavailable, type Store } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables.ts'
import { inSpan } from '../../telemetry/tracing.ts'
import type { Secrets } from '../workflows/secrets.ts'
import type { Workflows } from '../workflows/workflows.ts'
import type { RunArtifacts } from './artifacts.ts'
import { type Dispatcher, dispatcherFor } from './dispatcher.ts'
import { secretsAad } from './encrypted-columns.ts'
import { EnqueueBatcher } from './enqueue-batcher.ts'
import { QueuedCap } from './queued-cap.ts'
import {
  fingerprintOf,
  identityOf,
  inOrder,
  isFingerprintOf,
  type Queued,
  type QueueRequest,
  type Queuer,
  queuedRun,
} from './queueing.ts'
import { type Run, runOf } from './run.ts'
import { type History, historyOf } from './run-history.ts'
import { firstIdAt, momentOf } from './run-id.ts'
import { finishedRun, type RunObserver } from './run-observer.ts'
import { isFinal, type RunStatus } from './run-state.ts'
import * as rows from './runs.sql.ts'
import { messageAttributes } from './trace-attributes.ts'

export interface ListRequest {
  workflowId?: string | undefined
  /** One status or several. */
  status?: RunStatus | readonly RunStatus[] | undefined
  createdAfter?: number | undefined
  createdBefore?: number | undefined
  limit: number
  cursor?: string | undefined
}

const idempotencyMilliseconds = 24 * 60 * 60 * 1000

export interface RunsDependencies {
  store: Store
  workflows: Workflows
  encryption: Encryption
  cursors: Cursors
  artifacts: RunArtifacts
  /** How many runs of one account may run at the same time; 0, as without it, for any number. */
  accountConcurrency?: number
  /** How many runs an account may have queued; 0, as without it, for any number. */
  queuedRunsMax?: number
  observer?: RunObserver
}

export class Runs {
  readonly #store: Store
  readonly #workflows: Workflows
  readonly #encryption: Encryption
  readonly #cursors: Cursors
  readonly #artifacts: RunArtifacts
  readonly #handout: Dispatcher
  readonly #admission: EnqueueBatcher
  readonly #accountConcurrency: number
  readonly #observer: RunObserver | undefined
  readonly #now: () => number

  constructor(parts: RunsDependencies, now = Date.now) {
    this.#handout = dispatcherFor(parts.store)
    this.#admission = new EnqueueBatcher(parts.store, this.#handout, new QueuedCap(parts.queuedRunsMax ?? 0), now)
    this.#accountConcurrency = parts.accountConcurrency ?? 0
    this.#store = parts.store
    this.#workflows = parts.workflows
    this.#encryption = parts.encryption
    this.#cursors = parts.cursors
    this.#artifacts = parts.artifacts
    this.#observer = parts.observer
    this.#now = now
  }

  /** Queues a run; once this resolves it survives a power cut. */
  async queue(by: Queuer, request: QueueRequest): Promise<Queued> {
    const { accountId, apiKeyId, userId = null } = by
    const workflow = this.#workflows.get(request.workflowId)
    if (!workflow) return { kind: 'noSuchWorkflow' }
    const { browserContext } = request
    if (browserContext && !workflow.usesBrowser) return { kind: 'usesNoBrowser' }
    const identity = request.idempotencyKey === undefined ? undefined : identityOf(request)
    const earlierSecrets = await this.#earlierSecrets(by, request)
    const checked = this.#workflows.checkVariables(workflow.id, request.variables, earlierSecrets)
    if ('errors' in checked) return { kind: 'variablesInvalid', errors: checked.errors }

    const id = uuid()
    const createdAt = momentOf(id)
    const hasSecrets = Object.keys(checked.secrets).length > 0
    const seal = () => this.#encryption.encrypt(JSON.stringify(checked.secrets), secretsAad(accountId, id))
    const run: rows.NewRun = {
      id,
      accountId,
      apiKeyId,
      userId,
      workflowId: workflow.id,
      workflowVersion: workflow.version,
      priority: request.priority,
      variables: JSON.stringify(checked.masked),
      secrets: hasSecrets ? seal : null,
      createdAt,
      availableAt: request.delaySeconds === 0 ? null : createdAt + request.delaySeconds * 1000,
      expiresAt: request.expiresInSeconds === undefined ? null : createdAt + request.expiresInSeconds * 1000,
      browserContextId: browserContext?.id.toLowerCase() ?? null,
      persistContext: browserContext?.persist ?? null,
    }
    // Read before the write: nothing may fail between the commit and the answer.
    const atLimit = await this.#limits([{ status: 'queued', account_id: accountId, workflow_id: workflow.id }])
    const attributes = messageAttributes('send', workflow.id, id)
    const entered = await inSpan(`send ${workflow.id}`, { kind: SpanKind.PRODUCER, attributes }, () => {
      const carrier: { traceparent?: string } = {}
      propagation.inject(context.active(), carrier)
      run.traceContext = carrier.traceparent
      return this.#admission.enqueue({ run, idempotencyKey: this.#keyOf(run, request, identity) })
    })
    if (entered.kind === 'noSuchBrowserContext' || entered.kind === 'tooManyQueuedRuns') return entered
    if (entered.kind === 'entered') {
      this.#store.notify('queue')
      const waits = entered.waitsForContext ? 'context' : atLimit(run) ? 'limit' : undefined
      return { kind: 'queued', run: queuedRun(run, checked.masked, waits), replayed: false }
    }
    if (!isFingerprintOf(identity ?? '', entered.fingerprint, this.#encryption)) return { kind: 'idempotencyConflict' }
    const first = await this.get(accountId, entered.runId)
    if (!first) throw new Error(`An idempotency key names run ${entered.runId}, which does not exist.`)
    return { kind: 'queued', run: first, replayed: true }
  }

  async get(accountId: string, id: string): Promise<Run | undefined> {
    const row = await rows.findRun(this.#store.read, accountId, id)
    const [run] = row ? await this.#told([row]) : []
    return run
  }

  /**
   * A run and what has happened to it; `undefined` when the account has no such run. The run is as it is after the
   * history's last event or later, so that whoever follows the events from there misses nothing, and a run that has
   * finished has done so in its history, too.
   */
  async getWithHistory(
    accountId: string,
    id: string,
    { logsMax }: { logsMax: number },
  ): Promise<{ run: Run; history: History } | undefined> {
    const row = await rows.findRun(this.#store.read, accountId, id)
    if (!row) return undefined
    const before = await historyOf(this.#store.read, row.id, logsMax)
    const run = await this.get(accountId, id)
    if (!run) return undefined
    const endedBetween = isFinal(run.status) && !isFinal(row.status as RunStatus)
    return { run, history: endedBetween ? await historyOf(this.#store.read, row.id, logsMax) : before }
  }

  /** A page of runs, newest first; `undefined` when the cursor was not written for this list. */
  async list(accountId: string, request: ListRequest): Promise<{ runs: Run[]; nextCursor: string | null } | undefined> {
    const { limit, cursor, workflowId, status, createdAfter, createdBefore } = request
    const statuses = status === undefined ? undefined : [...new Set([status].flat())].sort()
    // In an order of its own: the same filters in another order are the same list.
    const list = JSON.stringify(['runs', accountId, workflowId, statuses, createdAfter, createdBefore])
    const after = cursor === undefined ? undefined : this.#cursors.read(list, cursor)
    if (cursor !== undefined && after === undefined) return undefined
    const from = createdAfter === undefined ? undefined : firstIdAt(createdAfter)
    const beforeId = createdBefore === undefined ? undefined : firstIdAt(createdBefore)
    const filter = { workflowId, statuses, from, before: least(after, beforeId) }
    const found = await rows.listRuns(this.#store.read, accountId, filter, limit + 1)
    const page = found.slice(0, limit)
    const last = found.length > limit ? page.at(-1) : undefined
    return {
      runs: await this.#told(page),
      nextCursor: last ? this.#cursors.write(list, last.id) : null,
    }
  }

  /** Cancels a run that has not finished; a running one is asked to end. */
  async cancel(accountId: string, id: string): Promise<Run | undefined> {
    const cancelled = await this.#store.write(async (tx) => {
      const row = await rows.findRun(tx, accountId, id)
      if (!row || isFinal(row.status as RunStatus) || row.cancel_requested === 1) return undefined
      const at = this.#now()
      const ended = row.status === 'queued'
      const change = ended ? { status: 'cancelled', reason: 'cancelRequested', finished_at: at } : {}
      const update = tx.query.updateTable('runs').set({ ...change, cancel_requested: 1 })
      await update.where('id', '=', row.id).execute()
      if (ended) await rows.forgetSteps(tx, row.id)
      const data = { status: ended ? 'cancelled' : row.status, attempt: row.attempts, reason: 'cancelRequested' }
      await rows.appendEvent(tx, row.id, { at, type: 'status', data })
      return { row, at }
    })
    if (cancelled) {
      const { row, at } = cancelled
      this.#store.notify('cancellations')
      this.#store.notify('runs')
      if (row.status === 'queued') {
        this.#observer?.finished(finishedRun(row, { status: 'cancelled', reason: 'cancelRequested' }, at))
        // What nobody takes any more may as well be left to whoever comes upon it.
        await this.#handout.withdraw(row).catch(ignoreUnavailable)
      }
    }
    return this.get(accountId, id)
  }

  /**
   * The secrets of the run that is to be run again. With other variables beside them only for who has queued it: with
   * another address, say, a workflow may send its secret there, and nobody may learn so what somebody else has put in.
   */
  async #earlierSecrets({ accountId, apiKeyId, userId = null }: Queuer, request: QueueRequest): Promise<Secrets> {
    const { secretsFrom, workflowId, variables } = request
    const row = secretsFrom === undefined ? undefined : await rows.findRun(this.#store.read, accountId, secretsFrom)
    if (!row?.secrets || row.workflow_id !== workflowId) return {}
    const own = (userId !== null && row.user_id === userId) || (apiKeyId !== null && row.api_key_id === apiKeyId)
    if (!own && JSON.stringify(variables, inOrder) !== JSON.stringify(JSON.parse(row.variables), inOrder)) return {}
    return JSON.parse(this.#encryption.decrypt(row.secrets, secretsAad(accountId, row.id)))
  }

  #keyOf({ accountId, id }: rows.NewRun, { idempotencyKey: key }: QueueRequest, identity: string | undefined) {
    if (key === undefined || identity === undefined) return undefined
    const fingerprint = fingerprintOf(identity, this.#encryption)
    return { accountId, key, fingerprint, runId: id, expiresAt: this.#now() + idempotencyMilliseconds }
  }

  async #told(found: RunsTable[]): Promise<Run[]> {
    const atLimit = await this.#limits(found)
    const artifacts = await this.#artifacts.of(found.filter(({ attempts }) => attempts > 0).map(({ id }) => id))
    return found.map((row) => runOf(row, atLimit, artifacts.get(row.id) ?? []))
  }

  /** Tells which runs wait for a concurrency limit; asks the store only when one depends on it. */
  async #limits(found: readonly Limited[]): Promise<(run: { accountId: string; workflowId: string }) => boolean> {
    const limitOf = (workflowId: string) =>
      this.#workflows.get(workflowId)?.concurrencyLimit ?? Number.POSITIVE_INFINITY
    const ofAccount = this.#accountConcurrency || Number.POSITIVE_INFINITY
    const depends = found.some(
      (row) => row.status === 'queued' && Number.isFinite(Math.min(ofAccount, limitOf(row.workflow_id))),
    )
    if (!depends) return () => false
    const running = await rows.countRunning(this.#store.read)
    return ({ accountId, workflowId }) =>
      rows.runningOf(running, { workflowId }) >= limitOf(workflowId) ||
      rows.runningOf(running, { accountId }) >= ofAccount
  }
}

type Limited = Pick<RunsTable, 'status' | 'account_id' | 'workflow_id'>

function least(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return a < b ? a : b
}
