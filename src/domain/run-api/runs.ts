/** Queues, cancels and deletes runs for callers. Reading is inherited from `RunReader`. */

import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { context, propagation, SpanKind } from '@opentelemetry/api'
import type { Reserve } from '../../contract/tenant-limits.ts'
import type { Cursors } from '../../storage/cursors.ts'
import type { Encryption } from '../../storage/encryption.ts'
import { pageBytesMax, takeBatch } from '../../storage/purge-target.ts'
import { findRuns, listRuns } from '../../storage/runs/run-list.ts'
import type { RunToRead } from '../../storage/runs/run-statements.ts'
import { type Statement, type Store, statement, type Transaction } from '../../storage/store.ts'
import { inSpan } from '../../telemetry/tracing.ts'
import { rowBytes, type StorageUsage } from '../accounts/storage-usage.ts'
import type { Actor, ApiKeyUse } from '../audit-log/audit-log.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { historyBytes, type RunAttempt, readAttempts } from '../queue/attempt-history.ts'
import { type Canceller, cancelRow } from '../queue/cancellation.ts'
import { EnqueueBatcher, QueuedRunsLimit } from '../queue/enqueue.ts'
import { resumeNextOfGroups } from '../queue/limits.ts'
import {
  canonicalRequest,
  createIdempotencyKey,
  createRun,
  type QueueRequest,
  type Queuer,
  type RefusedRun,
  toQueuedRow,
} from '../queue/queue-request.ts'
import { findStepsBefore, mayReuse, type RefusedStart, type RunStart, readStart } from '../queue/reused-steps.ts'
import { type BatchResult, RunBatches } from '../queue/run-batches.ts'
import { findRun, firstEvent, followsFirst, toEvent } from '../queue/runs.sql.ts'
import { addWaitingDetails, readLimits } from '../queue/waiting.ts'
import { type DescribeLimit, messageAttributes, Run, type RunEvent, secretsAad, sizeOf } from '../runs/run.ts'
import { isFinal, type RunObserver, type RunStatus, toFinishedRun } from '../runs/run-state.ts'
import type { Secrets } from '../workflows/secrets.ts'
import type { RunArtifacts } from './artifacts.ts'
import { type ListRequest, nameList, toRunFilter } from './list-request.ts'
import { deleteRun } from './run-erasure.ts'

// Reads runs: one, one with its history, or a page of a list.

interface RunReaderDependencies {
  store: Store
  workflows: WorkflowRegistry
  cursors: Cursors
  artifacts: RunArtifacts
  /** How many runs of one account may run at the same time; 0 for no limit. */
  accountConcurrency?: number
}

class RunReader {
  readonly #dependencies: RunReaderDependencies

  constructor(dependencies: RunReaderDependencies) {
    this.#dependencies = dependencies
  }

  async get(accountId: string, id: string, reserve?: Reserve): Promise<Run | undefined> {
    const { read } = this.#dependencies.store
    let row = await findRun(read, accountId, id)
    const reserved = row && reserve?.(sizeOf(row) + historyBytes(row))
    if (reserved) {
      // Do not keep the row in memory while waiting.
      row = undefined
      await reserved
      row = await findRun(read, accountId, id)
    }
    if (!row) return undefined
    const [run] = await this.#toRuns([row], await readAttempts(read, row))
    return run
  }

  /** Like `get`, with the run's place in the queue and the run that it waits for, which take further queries. */
  async getWithWaiting(accountId: string, id: string, reserve?: Reserve): Promise<Run | undefined> {
    const run = await this.get(accountId, id, reserve)
    if (run?.status === 'queued') await addWaitingDetails(this.#dependencies.store.read, run)
    return run
  }

  /**
   * A run and its history; `undefined` when the account has no such run. The run is never older than the history's last
   * event, so that a caller who follows events from there misses none, and the history of a finished run is complete.
   */
  async getWithHistory(
    accountId: string,
    id: string,
    { logsMax }: { logsMax: number },
  ): Promise<{ run: Run; history: History } | undefined> {
    const { read } = this.#dependencies.store
    const row = await findRun(read, accountId, id)
    if (!row) return undefined
    const before = await readHistory(read, row.id, logsMax)
    const run = await this.getWithWaiting(accountId, id)
    if (!run) return undefined
    const hasFinishedSince = isFinal(run.status) && !isFinal(row.status as RunStatus)
    return { run, history: hasFinishedSince ? await readHistory(read, row.id, logsMax) : before }
  }

  /**
   * A page of runs; `undefined` when the cursor belongs to another list. It has fewer runs than `limit` when they would be
   * larger than `pageBytesMax` together. The request must have no errors (`findListErrors`).
   */
  async list(
    accountId: string,
    request: ListRequest,
    reserve?: Reserve,
  ): Promise<{ runs: Run[]; nextCursor: string | null } | undefined> {
    const { store, cursors } = this.#dependencies
    const { limit, cursor } = request
    const list = nameList(accountId, request)
    const after = cursor === undefined ? undefined : cursors.read(list, cursor)
    if (cursor !== undefined && after === undefined) return undefined
    const found = await listRuns(store.read, accountId, toRunFilter(request, after), limit + 1)
    const page = takeBatch(found.slice(0, limit), pageBytesMax)
    const last = found.length > page.length ? page.at(-1) : undefined
    const reserved = reserve?.(page.reduce((sum, { size_bytes }) => sum + size_bytes, 0))
    if (reserved) {
      // Do not keep rows in memory while waiting.
      for (const run of found) delete run.row
      await reserved
    }
    const rows = await findRuns(store.read, page)
    return { runs: await this.#toRuns(rows), nextCursor: last ? cursors.write(list, last.id) : null }
  }

  /** @param attempts of the only row; lists have none, so that a page stays small. */
  async #toRuns(rows: RunToRead[], attempts?: RunAttempt[]): Promise<Run[]> {
    const describeLimit = await this.readLimits(rows)
    const withArtifacts = rows.filter(({ has_artifacts }) => has_artifacts === 1).map(({ id }) => id)
    const artifacts = await this.#dependencies.artifacts.findByRun(withArtifacts)
    return rows.map((row) => new Run(row, describeLimit, artifacts.get(row.id) ?? [], attempts))
  }

  protected readLimits(runs: Parameters<typeof readLimits>[2]): Promise<DescribeLimit> {
    const { store, workflows, accountConcurrency } = this.#dependencies
    return readLimits(store.read, { workflows, accountConcurrency }, runs)
  }
}

export type { QueueRequest } from '../queue/queue-request.ts'

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

interface QueueOptions {
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

// A run's events, bounded for a page: a run may have logged 100,000 lines.

export interface History {
  /** In order: statuses, steps, artifacts, the last progress and the last log lines. */
  events: RunEvent[]
  /** Older log lines that are left out. */
  logsOmitted: number
  /** Older events of other types that are left out. */
  othersOmitted: number
}

/** How many statuses, steps and artifacts a history has at most. */
const othersMax = 1000

/**
 * Events per read, between which the event loop continues: 2,000 take 0.4 ms. An index by type would save reading every
 * log line (35 ms for 100,000), but cost a write for each event of every run.
 */
const eventsPerRead = 2000

const findLast = statement<{ latest: number }, [runId: string]>(
  'SELECT COALESCE(MAX(sequence), 1) AS latest FROM run_events WHERE run_id = ?',
)

interface Row {
  sequence: number
  at: number
  type: string
  data: string
}
const toRow = ({ data, ...event }: RunEvent): Row => ({ ...event, data: JSON.stringify(data) })
type Range = [runId: string, above: number, upTo: number]

const inRange = 'SELECT sequence, at, type, data FROM run_events WHERE run_id = ? AND sequence > ? AND sequence <= ?'
const findOthers: Statement<Row, Range> = statement(`${inRange} AND type <> 'log' ORDER BY sequence DESC`)
const findLogs: Statement<Row, [...Range, limit: number]> = statement(
  `${inRange} AND type = 'log' ORDER BY sequence DESC LIMIT ?`,
)

/** Reads backwards from the last event. */
export async function readHistory(tx: Transaction, runId: string, logsMax: number): Promise<History> {
  const [last] = await tx.all(findLast, [runId])
  const latest = last?.latest ?? 1
  const logs: Row[] = []
  const others: Row[] = []
  let progress: Row | undefined
  let othersOmitted = 0
  // Sequence numbers have no gaps, so every event that is not of another type is a log line.
  let logCount = latest
  for (let end = latest; end > 0; end -= eventsPerRead) {
    if (end < latest) await yieldToEventLoop()
    const above = Math.max(0, end - eventsPerRead)
    const found = await tx.all(findOthers, [runId, above, end])
    if (above === 0 && followsFirst(found.at(-1))) found.push(toRow(firstEvent(runId)))
    for (const row of found) {
      logCount -= 1
      if (row.type === 'progress') progress ??= row
      else if (others.length < othersMax) others.push(row)
      else othersOmitted += 1
    }
    const missing = logsMax - logs.length
    if (missing > 0) logs.push(...(await tx.all(findLogs, [runId, above, end, missing])))
  }
  const rows = [...logs, ...others, ...(progress ? [progress] : [])].sort((a, b) => a.sequence - b.sequence)
  return { events: rows.map(toEvent), logsOmitted: logCount - logs.length, othersOmitted }
}
