/** Reads runs: one, one with its history, or a page of a list. */
import type { Reserve } from '../../contract/tenant-limits.ts'
import type { Cursors } from '../../storage/cursors.ts'
import { findRuns, listRuns } from '../../storage/listed-runs.ts'
import { pageBytesMax, takeBatch } from '../../storage/purge-target.ts'
import type { RunToRead } from '../../storage/run-statements.ts'
import type { Store } from '../../storage/store.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import type { RunArtifacts } from './artifacts.ts'
import { historyBytes, type RunAttempt, readAttempts } from './attempt-history.ts'
import { type ListRequest, nameList, toRunFilter } from './list-request.ts'
import { type DescribeLimit, Run, sizeOf } from './run.ts'
import { type History, readHistory } from './run-history.ts'
import { isFinal, type RunStatus } from './run-state.ts'
import { findRun } from './runs.sql.ts'
import { addWaitingDetails, readLimits } from './waiting-details.ts'

export interface RunReaderDependencies {
  store: Store
  workflows: WorkflowRegistry
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
