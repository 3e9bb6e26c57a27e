/** Reads runs: one, one with its history, or a page of a list. */
import type { Reserve } from '../../contract/tenant-limits.ts'
import type { Cursors } from '../../storage/cursors.ts'
import { pageBytesMax, takeBatch } from '../../storage/purge-target.ts'
import { findRuns, listRunSizes } from '../../storage/run-list.ts'
import type { Store } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables.ts'
import type { Workflows } from '../workflows/workflows.ts'
import type { RunArtifacts } from './artifacts.ts'
import { RunningCounts } from './concurrency-limits.ts'
import { firstIdAt, type Run, sizeOf, toRun } from './run.ts'
import { type History, readHistory } from './run-history.ts'
import { isFinal, type RunStatus } from './run-state.ts'
import { findRun } from './runs.sql.ts'

export interface ListRequest {
  workflowId?: string | undefined
  /** Any of these. */
  status?: RunStatus | readonly RunStatus[] | undefined
  createdAfter?: number | undefined
  createdBefore?: number | undefined
  limit: number
  cursor?: string | undefined
}

export interface RunReaderDependencies {
  store: Store
  workflows: Workflows
  cursors: Cursors
  artifacts: RunArtifacts
  /** How many runs of one account may run at the same time; 0 for no limit. */
  accountConcurrency?: number
}

export class RunReader {
  readonly #dependencies: RunReaderDependencies

  constructor(dependencies: RunReaderDependencies) {
    this.#dependencies = dependencies
  }

  async get(accountId: string, id: string, reserve?: Reserve): Promise<Run | undefined> {
    const { read } = this.#dependencies.store
    let row = await findRun(read, accountId, id)
    const reserved = row && reserve?.(sizeOf(row))
    if (reserved) {
      // Do not keep the row in memory while waiting.
      row = undefined
      await reserved
      row = await findRun(read, accountId, id)
    }
    const [run] = row ? await this.#toRuns([row]) : []
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
    const run = await this.get(accountId, id)
    if (!run) return undefined
    const hasFinishedSince = isFinal(run.status) && !isFinal(row.status as RunStatus)
    return { run, history: hasFinishedSince ? await readHistory(read, row.id, logsMax) : before }
  }

  /**
   * A page of runs, newest first; `undefined` when the cursor belongs to another list. It has fewer runs than `limit` when
   * they would be larger than `pageBytesMax` together.
   */
  async list(
    accountId: string,
    request: ListRequest,
    reserve?: Reserve,
  ): Promise<{ runs: Run[]; nextCursor: string | null } | undefined> {
    const { store, cursors } = this.#dependencies
    const { limit, cursor, workflowId, status, createdAfter, createdBefore } = request
    // Sorted, so that a cursor fits the same statuses in another order.
    const statuses = status === undefined ? undefined : [...new Set([status].flat())].sort()
    const list = JSON.stringify(['runs', accountId, workflowId, statuses, createdAfter, createdBefore])
    const after = cursor === undefined ? undefined : cursors.read(list, cursor)
    if (cursor !== undefined && after === undefined) return undefined
    const filter = {
      workflowId,
      statuses: statuses?.map((each) => ({ status: each, isFinal: isFinal(each) })),
      from: createdAfter === undefined ? undefined : firstIdAt(createdAfter),
      before: [after, createdBefore === undefined ? undefined : firstIdAt(createdBefore)]
        .filter((id) => id !== undefined)
        .sort()[0],
    }
    const found = await listRunSizes(store.read, accountId, filter, limit + 1)
    const page = takeBatch(found.slice(0, limit), pageBytesMax)
    const last = found.length > page.length ? page.at(-1) : undefined
    await reserve?.(page.reduce((sum, { size_bytes }) => sum + size_bytes, 0))
    const rows = await findRuns(store.read, page)
    return { runs: await this.#toRuns(rows), nextCursor: last ? cursors.write(list, last.id) : null }
  }

  async #toRuns(rows: RunsTable[]): Promise<Run[]> {
    const isAtLimit = await this.readLimits(rows)
    const started = rows.filter(({ attempts }) => attempts > 0).map(({ id }) => id)
    const artifacts = await this.#dependencies.artifacts.findByRun(started)
    return rows.map((row) => toRun(row, isAtLimit, artifacts.get(row.id) ?? []))
  }

  /** Counts running runs only if a queued run among these has a concurrency limit. */
  protected async readLimits(runs: readonly Pick<RunsTable, 'status' | 'workflow_id'>[]) {
    const { workflows, store, accountConcurrency } = this.#dependencies
    const limits = {
      ofWorkflow: (id: string) => workflows.get(id)?.concurrencyLimit ?? Number.POSITIVE_INFINITY,
      ofAccount: accountConcurrency || Number.POSITIVE_INFINITY,
    }
    const hasLimit = runs.some(
      (run) => run.status === 'queued' && Math.min(limits.ofAccount, limits.ofWorkflow(run.workflow_id)) < Infinity,
    )
    const running = hasLimit ? await RunningCounts.read(store.read) : undefined
    return (run: RunsTable) => running?.isAtLimit(run, limits) ?? false
  }
}
