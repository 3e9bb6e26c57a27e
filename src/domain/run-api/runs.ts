/** Queues, cancels and deletes runs for callers. Reading is inherited from `RunReader`. */

import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { Cursors } from '../../storage/cursors.ts'
import { boundPage } from '../../storage/purge-target.ts'
import { findIdByEnd, findRuns, listRuns } from '../../storage/runs/run-list.ts'
import { readColumns } from '../../storage/runs/run-lookups.ts'
import type { RunToRead } from '../../storage/runs/run-statements.ts'
import { parseId } from '../../storage/statement-values.ts'
import { type Statement, type Store, statement, type Transaction } from '../../storage/store.ts'
import { type Actor, type ApiKeyUse, recordRunAction } from '../audit-log/audit-log.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { historyBytes, readAttempts } from '../queue/attempt-history.ts'
import { type Canceller, cancelRuns, toFinishedRuns } from '../queue/cancellation.ts'
import {
  type EnqueuedBatch,
  type EnqueuedRun,
  type EnqueueOptions,
  Enqueuer,
  type EnqueuerDependencies,
} from '../queue/enqueue-runs.ts'
import { type QueueRequest, type Queuer, queuedRowColumns } from '../queue/queue-request.ts'
import { findStepsBefore, type RefusedStart, type RunStart, readStart } from '../queue/reused-steps.ts'
import { findRun, firstEvent, followsFirst, toEvent } from '../queue/runs.sql.ts'
import { addWaitingDetails, readLimits } from '../queue/waiting.ts'
import { type DescribeLimit, Run, type RunAttempt, type RunEvent, sizeOf } from '../runs/run.ts'
import { deletedStatus, isFinal, type RunObserver, type RunStatus } from '../runs/run-state.ts'
import type { Sized } from '../sized.ts'
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

  async get(accountId: string, id: string): Promise<Run | undefined> {
    return (await this.measure(accountId, id))?.read()
  }

  /** A run to read; the size is that of its row and history. */
  async measure(accountId: string, id: string): Promise<Sized<Run | undefined> | undefined> {
    const { read } = this.#dependencies.store
    let row = await findRun(read, accountId, id)
    if (!row) return undefined
    return {
      sizeBytes: sizeOf(row) + historyBytes(row),
      forget: () => {
        row = undefined
      },
      read: async () => {
        row ??= await findRun(read, accountId, id)
        if (!row) return undefined
        const [run] = await this.#toRuns([row], await readAttempts(read, row))
        return run
      },
    }
  }

  /** Whether the account has the run, and it is one of these workflows. */
  async isOf(accountId: string, id: string, workflowIds: readonly string[]): Promise<boolean> {
    const runId = parseId(id)
    const columns = ['account_id', 'workflow_id'] as const
    const [row] = runId === undefined ? [] : await readColumns(this.#dependencies.store.read, columns, [runId])
    return row?.account_id === accountId && workflowIds.includes(row.workflow_id)
  }

  /** The run with this id, or with an id of the account's newest runs that ends so, as lists show it. */
  async find(accountId: string, text: string): Promise<Run | undefined> {
    const [, end] = /^…?([0-9a-f-]{8,35})$/.exec(text.toLowerCase()) ?? []
    if (end === undefined) return this.get(accountId, text)
    const id = await findIdByEnd(this.#dependencies.store.read, accountId, end)
    return id === undefined ? undefined : this.get(accountId, id)
  }

  async getWithWaiting(accountId: string, id: string): Promise<Run | undefined> {
    const run = await this.get(accountId, id)
    return run && this.withWaiting(run)
  }

  /** Adds the run's place in the queue and the run that it waits for, which take further queries. */
  async withWaiting(run: Run): Promise<Run> {
    if (run.waitingFor !== null) await addWaitingDetails(this.#dependencies.store.read, run)
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

  /** See `findPage`. */
  async list(accountId: string, request: ListRequest) {
    const page = await this.findPage(accountId, request)
    return page && { runs: await page.read(), nextCursor: page.nextCursor }
  }

  /**
   * A page of runs to read; `undefined` when the cursor belongs to another list. It has fewer runs than `limit` when they
   * would be larger than a page may be. The request must have no errors (`findListErrors`).
   */
  async findPage(
    accountId: string,
    request: ListRequest,
  ): Promise<(Sized<Run[]> & { nextCursor: string | null }) | undefined> {
    const { store, cursors } = this.#dependencies
    const list = (after: string | undefined, limit: number) =>
      listRuns(store.read, accountId, toRunFilter(request, after), limit)
    const page = await cursors.page(nameList(accountId, request), request, list, { bound: boundPage })
    return (
      page && {
        nextCursor: page.nextCursor,
        sizeBytes: page.rows.reduce((sum, { size_bytes }) => sum + size_bytes, 0),
        forget() {
          for (const run of page.rows) delete run.row
        },
        read: async () => this.#toRuns(await findRuns(store.read, page.rows)),
      }
    )
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

/** `runDeleted`: the idempotency key belongs to a request whose run, or one of whose runs, was deleted. */
type Queued<Result> = Exclude<Result, { kind: 'queued' | 'repeated' }> | { kind: 'runDeleted' }

export type QueueResult = Queued<EnqueuedRun> | { kind: 'queued'; run: Run; replayed: boolean }

export type BatchResult = Queued<EnqueuedBatch> | { kind: 'queued'; runs: Run[]; replayed: boolean }

interface RunsDependencies extends RunReaderDependencies, EnqueuerDependencies {
  observer?: RunObserver
}

export class Runs extends RunReader {
  readonly #dependencies: RunsDependencies
  readonly #enqueuer: Enqueuer
  readonly #now: () => number

  constructor(dependencies: RunsDependencies, now = Date.now) {
    super(dependencies)
    this.#dependencies = dependencies
    this.#enqueuer = new Enqueuer(dependencies, now)
    this.#now = now
  }

  /**
   * Queues a run. Once this resolves, the run survives a power cut.
   *
   * @throws {Problem} beyond the storage quota.
   */
  async queue(queuer: Queuer, request: QueueRequest, options?: EnqueueOptions): Promise<QueueResult> {
    const repeats = request.rerunOf === undefined ? options : { ...options, within: recordRepetition(queuer, request) }
    const enqueued = await this.#enqueuer.enqueue(queuer, request, repeats)
    if (enqueued.kind === 'queued') return { ...enqueued, replayed: false }
    if (enqueued.kind !== 'repeated') return enqueued
    const first = await this.get(queuer.accountId, enqueued.runIds[0] ?? '')
    return first ? { kind: 'queued', run: first, replayed: true } : { kind: 'runDeleted' }
  }

  /** Queues all runs or none, in one transaction. @throws {Problem} beyond the storage quota. */
  async queueBatch(queuer: Queuer, requests: readonly QueueRequest[], idempotencyKey?: string): Promise<BatchResult> {
    const enqueued = await this.#enqueuer.enqueueBatch(queuer, requests, idempotencyKey)
    if (enqueued.kind === 'queued') return { ...enqueued, replayed: false }
    if (enqueued.kind !== 'repeated') return enqueued
    const first = await this.#findAll(queuer.accountId, enqueued.runIds)
    return first ? { kind: 'queued', runs: first, replayed: true } : { kind: 'runDeleted' }
  }

  /** The runs in this order, without outputs, which could be a gigabyte; `undefined` if one of them was deleted. */
  async #findAll(accountId: string, ids: readonly string[]): Promise<Run[] | undefined> {
    const columns = queuedRowColumns.filter((column) => column !== 'output' && column !== 'secrets')
    const rows = await readColumns(this.#dependencies.store.read, columns, ids)
    const found = rows.flatMap((row) =>
      row.account_id === accountId && row.status !== deletedStatus ? { ...row, output: null, secrets: null } : [],
    )
    if (found.length < ids.length) return undefined
    const describeLimit = await this.readLimits(found)
    const byId = new Map(found.map((row) => [row.id, new Run(row, describeLimit, [], undefined)]))
    return ids.flatMap((id) => byId.get(id) ?? [])
  }

  /** Cancels a queued or waiting run, requests a running one to stop, and leaves a finished one unchanged. */
  async cancel(accountId: string, id: string, by: Canceller = {}): Promise<Run | undefined> {
    const { store, observer } = this.#dependencies
    const at = this.#now()
    const cancel = async (tx: Transaction) => {
      const ended = await cancelRuns(tx, accountId, [id], by, at)
      const [run] = ended
      const ofRun = run && { id: run.id, workflowId: run.workflow_id }
      if (ofRun) await recordRunAction(tx, { accountId, ...by }, ofRun, 'run.cancelled')
      return ended
    }
    const cancelled = await store.write(cancel, { concurrent: true })
    if (cancelled.length > 0) {
      store.notify('cancellations')
      store.notify('runs')
      for (const run of toFinishedRuns(cancelled, at)) observer?.finished(run)
    }
    return this.get(accountId, id)
  }

  /** Records that a key has made a token which reads the run. */
  async recordToken(run: Run, apiKeyId: string): Promise<void> {
    const by = { accountId: run.accountId, apiKeyId }
    await this.#dependencies.store.write((tx) => recordRunAction(tx, by, run, 'run.tokenCreated'))
  }

  /** How many results a run that starts from that step reuses, with unchanged variables; 0 if it cannot start there. */
  async countReusable(finished: Run, fromStep: string): Promise<number> {
    const found = await findStepsBefore(this.#dependencies, finished, fromStep)
    return 'before' in found ? found.before.length : 0
  }

  /** The `start` of a request whose run starts from a step of the finished run. */
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
}

function recordRepetition(queuer: Queuer, { workflowId, rerunOf }: QueueRequest) {
  return (tx: Transaction, runId: string) =>
    recordRunAction(tx, queuer, { id: runId, workflowId }, 'run.repeated', { repeats: rerunOf })
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
