/** Creates and reads bulk actions. `BulkWorker` works on them. */
import { requireValid } from '../../contract/value-checks.ts'
import type { Encryption } from '../../storage/encryption.ts'
import { type PurgeTarget, purgeById } from '../../storage/purge-target.ts'
import { countRuns, type RunFilter } from '../../storage/runs/run-list.ts'
import { parseId } from '../../storage/statement-values.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import type { BulkActionsTable } from '../../storage/tables/tables.ts'
import { type Actor, type ApiKeyUse, recordAudit, toActor } from '../audit-log/audit-log.ts'
import { canonicalJson } from '../canonical-json.ts'
import { type ListRequest, toRunFilter } from '../run-api/list-request.ts'
import { createRunId, firstIdAt, parseCreatedAt } from '../runs/run.ts'
import { isFinal, type RunStatus, transitions } from '../runs/run-state.ts'

// A bulk action as callers see it, and the runs that it concerns.

export type BulkActionKind = 'cancel' | 'rerun'

/** Filters of `listRuns`, as the caller gave them. */
export interface BulkFilter
  extends Omit<ListRequest, 'createdAfter' | 'createdBefore' | 'search' | 'order' | 'limit' | 'cursor'> {
  createdAfter?: string | undefined
  createdBefore?: string | undefined
}

/** Times are milliseconds since 1970. */
export interface BulkAction {
  id: string
  kind: BulkActionKind
  filter: BulkFilter
  status: 'working' | 'waiting' | 'finished'
  waitsFor: 'queuedRunsLimit' | 'storageQuota' | null
  /** `null` until the runs have been counted. */
  total: number | null
  matched: number
  done: number
  skipped: number
  failed: number
  firstFailure: { runId: string; detail: string } | null
  limitReached: boolean
  createdAt: number
  finishedAt: number | null
}

function toBulkAction(row: BulkActionsTable): BulkAction {
  const isFinished = row.finished_at !== null
  return {
    id: row.id,
    kind: row.kind as BulkActionKind,
    filter: JSON.parse(row.filter),
    status: isFinished ? 'finished' : row.waits_for === null ? 'working' : 'waiting',
    waitsFor: row.waits_for as BulkAction['waitsFor'],
    total: row.total,
    matched: row.matched,
    done: row.done,
    skipped: row.skipped,
    failed: row.failed,
    firstFailure: row.first_failure === null ? null : JSON.parse(row.first_failure),
    limitReached: row.limit_reached === 1,
    createdAt: row.created_at,
    finishedAt: row.finished_at,
  }
}

export function toListRequest({ createdAfter, createdBefore, ...filter }: BulkFilter): ListRequest {
  const parse = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text))
  const times = { createdAfter: parse(createdAfter), createdBefore: parse(createdBefore) }
  return { ...filter, ...times, order: 'oldestFirst', limit: 1 }
}

/** The average since the action was created. */
export function runsPerSecond({ matched, createdAt, finishedAt }: BulkAction, now = Date.now()): number {
  const milliseconds = (finishedAt ?? now) - createdAt
  return milliseconds <= 0 ? 0 : Math.round((matched * 10_000) / milliseconds) / 10
}

const allStatuses = Object.keys(transitions) as RunStatus[]

export function changeableStatuses(kind: BulkActionKind): RunStatus[] {
  return allStatuses.filter((each) => isFinal(each) === (kind === 'rerun'))
}

/** The runs that are left: without a status in the filter, those that the action can change. */
export function remainingRuns(row: Pick<BulkActionsTable, 'id' | 'kind' | 'filter' | 'last_run_id'>): RunFilter {
  const request = toListRequest(JSON.parse(row.filter))
  const status = request.status ?? changeableStatuses(row.kind as BulkActionKind)
  const filter = toRunFilter({ ...request, status }, row.last_run_id ?? undefined)
  const before = filter.before !== undefined && filter.before < row.id ? filter.before : row.id
  return { ...filter, before }
}

/** Unfinished bulk actions of an account, so that many of one account do not delay those of others. */
export const unfinishedMax = 10

const auditActions = { cancel: 'bulkAction.cancelStarted', rerun: 'bulkAction.rerunStarted' } as const

const idempotencyMilliseconds = 24 * 60 * 60 * 1000

export interface NewBulkAction {
  kind: BulkActionKind
  filter: BulkFilter
  apiKeyId: string | null
  userId?: string | null
  /** Whether the caller may queue runs with a browser context. */
  usesBrowserContexts: boolean
  idempotencyKey?: string | undefined
}

type CreateBulkActionResult =
  | { kind: 'created'; action: BulkAction; replayed: boolean }
  | { kind: 'idempotencyConflict' }
  | { kind: 'tooManyBulkActions' }

export class BulkActions {
  readonly #store: Store
  readonly #encryption: Encryption

  constructor(store: Store, encryption: Encryption) {
    this.#store = store
    this.#encryption = encryption
  }

  /**
   * Once this resolves, the action survives a power cut and is completed whatever happens to this process.
   *
   * @throws {Problem} if the document does not allow the filter.
   */
  async create(accountId: string, given: NewBulkAction, by: Actor | ApiKeyUse): Promise<CreateBulkActionResult> {
    const { kind, filter, idempotencyKey } = given
    requireValid('RunFilters', filter)
    const canonical = canonicalJson({ kind, filter })
    const row = this.#toRow(accountId, given, canonical)
    const create = async (tx: Transaction): Promise<CreateBulkActionResult> => {
      const { query } = tx
      const ofAccount = query.selectFrom('bulk_actions').where('account_id', '=', accountId)
      if (idempotencyKey !== undefined) {
        const withKey = ofAccount.selectAll().where('idempotency_key', '=', idempotencyKey)
        const since = row.created_at - idempotencyMilliseconds
        const earlier = await withKey.where('created_at', '>', since).executeTakeFirst()
        if (earlier) return this.#replay(earlier, canonical)
      }
      const unfinished = ofAccount.select('id').where('finished_at', 'is', null)
      if ((await unfinished.limit(unfinishedMax).execute()).length >= unfinishedMax)
        return { kind: 'tooManyBulkActions' }
      await query.insertInto('bulk_actions').values(row).execute()
      const actor = await toActor(tx, by)
      await recordAudit(tx, accountId, { action: auditActions[kind], by: actor, details: { id: row.id, ...filter } })
      return { kind: 'created', action: toBulkAction(row), replayed: false }
    }
    const result = await this.#store.write(create)
    this.#store.notify('maintenance')
    return result
  }

  /** The number of runs that the action would concern if it was created now, counted up to `limit`. */
  async count(accountId: string, kind: BulkActionKind, filter: BulkFilter, limit: number): Promise<number> {
    const row = { id: createRunId(), kind, filter: JSON.stringify(filter), last_run_id: null }
    return countRuns(this.#store.read, accountId, remainingRuns(row), limit)
  }

  /** The account's unfinished actions, oldest first. */
  async unfinished(accountId: string): Promise<BulkAction[]> {
    const rows = this.#store.read.query.selectFrom('bulk_actions').selectAll().where('account_id', '=', accountId)
    return (await rows.where('finished_at', 'is', null).orderBy('id').execute()).map(toBulkAction)
  }

  async get(accountId: string, id: string): Promise<BulkAction | undefined> {
    const parsed = parseId(id)
    if (parsed === undefined) return undefined
    const rows = this.#store.read.query.selectFrom('bulk_actions').selectAll().where('id', '=', parsed)
    const row = await rows.where('account_id', '=', accountId).executeTakeFirst()
    return row && toBulkAction(row)
  }

  #replay(earlier: BulkActionsTable, canonical: string): CreateBulkActionResult {
    const signatures = this.#encryption.signatures('idempotency', canonical)
    const isSame = signatures.some((each) => earlier.fingerprint !== null && each.equals(earlier.fingerprint))
    return isSame ? { kind: 'created', action: toBulkAction(earlier), replayed: true } : { kind: 'idempotencyConflict' }
  }

  #toRow(accountId: string, given: NewBulkAction, canonical: string): BulkActionsTable {
    const id = createRunId()
    const createdAt = parseCreatedAt(id)
    const { kind, filter, apiKeyId, userId = null, usesBrowserContexts, idempotencyKey } = given
    return {
      ...{ id, kind, account_id: accountId, filter: JSON.stringify(filter), api_key_id: apiKeyId, user_id: userId },
      uses_browser_contexts: usesBrowserContexts ? 1 : 0,
      idempotency_key: idempotencyKey ?? null,
      fingerprint: idempotencyKey === undefined ? null : this.#encryption.sign('idempotency', canonical),
      ...{
        last_run_id: null,
        total: null,
        matched: 0,
        done: 0,
        skipped: 0,
        failed: 0,
        first_failure: null,
        waits_for: null,
      },
      ...{ limit_reached: 0, next_at: 0, created_at: createdAt, finished_at: null },
    }
  }
}

/** Finished actions older than RUN_RETENTION_DAYS; at least a day old, until which their idempotency keys are in use. */
export function expiredBulkActions(runRetentionDays: number, now: () => number): PurgeTarget {
  const retention = Math.max(runRetentionDays, 1) * idempotencyMilliseconds
  return purgeById('bulk_actions', ({ query }, limit) => {
    const older = query
      .selectFrom('bulk_actions')
      .select('id')
      .where('id', '<', firstIdAt(now() - retention))
    return older.where('finished_at', 'is not', null).orderBy('id').limit(limit).execute()
  })
}
