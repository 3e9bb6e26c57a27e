/**
 * Works on bulk actions in small batches, in any number of processes on one store. One transaction changes the runs of a
 * batch and moves the action behind them, so a killed process leaves either both or neither.
 */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { Encryption } from '../../storage/encryption.ts'
import { findRuns, listRunSizes } from '../../storage/runs/run-list.ts'
import { rowBytes } from '../../storage/runs/run-maintenance.ts'
import type { Transaction } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables/run-tables.ts'
import type { BulkActionsTable } from '../../storage/tables/tables.ts'
import type { StorageUsage } from '../accounts/storage-usage.ts'
import { findContextLeases } from '../browser-contexts/browser-contexts.sql.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { renewFiles } from '../files/files.sql.ts'
import { cancelRuns, toFinishedRuns } from '../queue/cancellation.ts'
import { insertRuns, type NewRun, QueuedRunsLimit, withContextLease } from '../queue/enqueue-batcher.ts'
import type { EnqueuerDependencies } from '../queue/enqueue-runs.ts'
import { describeRefusedRepeat } from '../queue/queue-problems.ts'
import { createRun } from '../queue/queue-request.ts'
import { repeatedOptions } from '../queue/run-options.ts'
import { Run, secretsAad } from '../runs/run.ts'
import { type FinishedRun, isFinal, type RunObserver, type RunStatus } from '../runs/run-state.ts'
import type { Secrets } from '../workflows/secrets.ts'
import { remainingRuns } from './bulk-actions.ts'

interface BulkWorkerDependencies extends EnqueuerDependencies {
  queuedRunsMax: number
  usage: StorageUsage
  observer?: RunObserver
  now?: () => number
}

/** Runs of one action. */
export const runsMax = 100_000

/** Runs of one transaction: on SQLite, it delays other writes by some milliseconds. */
const batchSize = 100

/** Bytes of the runs that a batch reads; one run may have more. */
const batchBytes = 4 * 1024 * 1024

/** Until an account is asked again whether it can have more runs. */
const waitMilliseconds = 5000

interface Batch {
  finished: FinishedRun[]
  queued: NewRun[]
  hasMore: boolean
}

export class BulkWorker {
  readonly #dependencies: BulkWorkerDependencies
  readonly #limit: QueuedRunsLimit
  readonly #now: () => number

  constructor(dependencies: BulkWorkerDependencies) {
    this.#dependencies = dependencies
    this.#limit = new QueuedRunsLimit(dependencies.queuedRunsMax)
    this.#now = dependencies.now ?? Date.now
  }

  /** Works on a batch of the action that has waited longest. False if none is due. */
  async once(): Promise<boolean> {
    const { store, usage, observer } = this.#dependencies
    const due = await this.#findDue(store.read)
    if (!due) return false
    const total = due.total ?? (await countTotal(store.read, due))
    const work = async (tx: Transaction) => {
      // Read again: another process may have worked on it.
      const action = await this.#findDue(tx)
      if (action?.id === due.id) action.total ??= total
      return action && this.#workOn(tx, action)
    }
    const batch = await store.write(work, { concurrent: true, exclusive: 'maintenance' })
    if (!batch) return false
    for (const run of batch.finished) observer?.finished(run)
    for (const { account_id, variables } of batch.queued) usage.add(account_id, rowBytes + variables.length)
    store.notify('queue')
    store.notify('cancellations')
    store.notify('runs')
    return batch.hasMore
  }

  async #findDue({ query }: Transaction): Promise<BulkActionsTable | undefined> {
    const unfinished = query.selectFrom('bulk_actions').selectAll().where('finished_at', 'is', null)
    return unfinished.where('next_at', '<=', this.#now()).orderBy('next_at').limit(1).executeTakeFirst()
  }

  async #workOn(tx: Transaction, action: BulkActionsTable): Promise<Batch> {
    const now = this.#now()
    const filter = remainingRuns(action)
    const left = runsMax - action.matched
    // One more than the batch tells whether runs remain.
    const listed = await listRunSizes(tx, action.account_id, filter, Math.min(batchSize, left) + 1)
    const page = listed.slice(0, Math.min(batchSize, left, fitting(listed.map(({ size_bytes }) => size_bytes))))
    const batch: Batch = { finished: [], queued: [], hasMore: true }
    action.waits_for = null
    action.next_at = now
    if (action.kind === 'cancel') await this.#cancel(tx, action, page, batch)
    else await this.#rerun(tx, action, await findRuns(tx, page), batch)
    const isStuck = action.waits_for !== null
    if (!isStuck && (page.length === listed.length || action.matched >= runsMax)) {
      action.finished_at = now
      action.total = action.matched
      action.limit_reached = page.length < listed.length ? 1 : 0
    }
    if (isStuck) action.next_at = now + waitMilliseconds
    const { id, ...columns } = action
    await tx.query.updateTable('bulk_actions').set(columns).where('id', '=', id).execute()
    return batch
  }

  async #cancel(
    tx: Transaction,
    action: BulkActionsTable,
    page: readonly { id: string }[],
    batch: Batch,
  ): Promise<void> {
    const by = { apiKeyId: action.api_key_id, userId: action.user_id }
    const now = this.#now()
    const ids = page.map(({ id }) => id)
    const cancelled = await cancelRuns(tx, action.account_id, ids, by, now)
    const changed = new Set(cancelled.map(({ id }) => id))
    for (const id of ids) count(action, id, changed.has(id) ? 'done' : 'skipped')
    batch.finished = toFinishedRuns(cancelled, now)
  }

  async #rerun(tx: Transaction, action: BulkActionsTable, rows: readonly RunsTable[], batch: Batch): Promise<void> {
    const { usage } = this.#dependencies
    const finished = rows.filter(({ status }) => isFinal(status as RunStatus))
    if (finished.length > 0 && usage.refusal(action.account_id)) {
      action.waits_for = 'storageQuota'
      return
    }
    // Before anything is written, because this may lock the account.
    let capacity = await this.#limit.reserve(tx, action.account_id, finished.length)
    const contexts = await findContextLeases(tx, action.account_id, finished)
    for (const row of rows) {
      if (!isFinal(row.status as RunStatus)) {
        count(action, row.id, 'skipped')
        continue
      }
      if (capacity === 0) {
        action.waits_for = 'queuedRunsLimit'
        break
      }
      const repeated = await this.#withFiles(tx, repeatRun(this.#dependencies, action, row, contexts))
      if (typeof repeated === 'string') {
        action.first_failure ??= JSON.stringify({ runId: row.id, detail: repeated })
        count(action, row.id, 'failed')
        continue
      }
      capacity -= 1
      batch.queued.push(repeated)
      count(action, row.id, 'done')
    }
    await insertRuns(tx, batch.queued)
  }

  /** Renews the files of a run that is about to be queued. Returns a sentence if one of them does not exist. */
  async #withFiles(tx: Transaction, run: NewRun | string): Promise<NewRun | string> {
    if (typeof run === 'string' || !run.files) return run
    const { fileRetentionMilliseconds: retentionMilliseconds = 0 } = this.#dependencies
    const errors = await renewFiles(tx, run.account_id, run.files, { now: this.#now(), retentionMilliseconds })
    return errors.length === 0 ? run : describeRefusedRepeat({ kind: 'variablesInvalid', errors })
  }
}

/** Runs of one read of a count: on SQLite, it takes some milliseconds. */
const countedSize = 2000

async function countTotal(tx: Transaction, action: BulkActionsTable): Promise<number> {
  let [total, last] = [action.matched, action.last_run_id]
  while (total < runsMax) {
    const filter = remainingRuns({ ...action, last_run_id: last })
    const runs = await listRunSizes(tx, action.account_id, filter, Math.min(countedSize, runsMax - total))
    total += runs.length
    last = runs.at(-1)?.id ?? null
    if (runs.length < countedSize) break
    await yieldToEventLoop()
  }
  return total
}

function count(action: BulkActionsTable, runId: string, outcome: 'done' | 'skipped' | 'failed'): void {
  action.last_run_id = runId
  action.matched += 1
  action[outcome] += 1
}

/** How many of the sizes fit into a batch; at least one. */
function fitting(sizes: readonly number[]): number {
  let sum = 0
  const over = sizes.findIndex((size) => {
    sum += size
    return sum > batchBytes
  })
  return over === -1 ? sizes.length : Math.max(1, over)
}

// The new runs of a bulk action that repeats finished ones.

type ContextLeases = Awaited<ReturnType<typeof findContextLeases>>

/**
 * The run that repeats a finished one, with its variables and secrets: because the variables do not change, every caller
 * that may queue runs may repeat it. Returns a sentence if the run cannot be repeated.
 */
function repeatRun(
  { workflows, encryption }: { workflows: WorkflowRegistry; encryption: Encryption },
  { account_id: accountId, api_key_id: apiKeyId, user_id: userId, uses_browser_contexts: may }: BulkActionsTable,
  row: RunsTable,
  contexts: ContextLeases,
): NewRun | string {
  const contextId = row.browser_context_id
  if (contextId !== null && may === 0)
    return 'The run has a browser context, and the API key lacks browser-contexts:use.'
  if (contextId !== null && !contexts.has(contextId)) return describeRefusedRepeat({ kind: 'noSuchBrowserContext' })
  const secrets = readSecrets(encryption, row)
  if (secrets === undefined) return 'The service could not read the secrets of the run.'
  const queuer = { accountId, apiKeyId, userId }
  const run = new Run(row, () => undefined, [], [])
  const { workflowId, variables, id } = run
  const request = { ...repeatedOptions(run), workflowId, variables, rerunOf: id }
  const created = createRun({ workflows, encryption }, queuer, request, secrets)
  return created.kind === 'created' ? withContextLease(created.run, contexts) : describeRefusedRepeat(created)
}

/** Never throws: a run that cannot be read must not stop the action, nor those of other accounts. */
function readSecrets(encryption: Encryption, { id, account_id, secrets }: RunsTable): Secrets | undefined {
  try {
    return secrets === null ? {} : JSON.parse(encryption.decrypt(secrets, secretsAad(account_id, id)))
  } catch {
    return undefined
  }
}
