/** Creates, reads, lists, changes, triggers and deletes the schedules of accounts. */

import { v7 as uuid } from 'uuid'
import type { Cursors, PageRequest } from '../../storage/cursors.ts'
import type { Encryption } from '../../storage/encryption.ts'
import { readColumns } from '../../storage/runs/run-lookups.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import type { SchedulesTable } from '../../storage/tables/tables.ts'
import { type Actor, type ApiKeyUse, recordAudit, toActor } from '../audit-log/audit-log.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { setScheduleFiles } from '../files/files.sql.ts'
import type { QueueResult, Runs } from '../run-api/runs.ts'
import { deletedStatus } from '../runs/run-state.ts'
import { nextTimesMax, type Schedule, type ScheduleError, toQueueRequest, toSchedule } from './schedule.ts'
import { changeSchedule, emptySchedule, type ScheduleChange } from './schedule-request.ts'
import { findTimingError, nextTimeOf, nextTimes, normalizeCron } from './schedule-times.ts'
import { findSchedule } from './schedules.sql.ts'

interface SchedulesDependencies {
  store: Store
  encryption: Encryption
  cursors: Cursors
  workflows: WorkflowRegistry
  runs: Pick<Runs, 'queue'>
  /** Maximum schedules per account; 0 for no limit. */
  schedulesMax: number
  /** From when a file is used until it expires. */
  fileRetentionMilliseconds?: number
}

export type NewSchedule = ScheduleChange & { workflowId: string; variables: Record<string, unknown> }

/** What a caller gives of a schedule's times. */
export type GivenTiming = { cron: string; timeZone: string } | { intervalSeconds: number }

export type CreateResult =
  | { kind: 'created'; schedule: Schedule }
  | { kind: 'invalid'; errors: ScheduleError[] }
  | { kind: 'tooManySchedules'; schedulesMax: number }

export class Schedules {
  readonly #dependencies: SchedulesDependencies
  readonly #now: () => number

  constructor(dependencies: SchedulesDependencies, now: () => number = Date.now) {
    this.#dependencies = dependencies
    this.#now = now
  }

  /** @param id a UUIDv7; creating a schedule of the account again returns it as it is. */
  async create(
    accountId: string,
    { workflowId, ...given }: NewSchedule,
    by: Actor | ApiKeyUse,
    id: string = uuid(),
  ): Promise<CreateResult> {
    const { schedulesMax } = this.#dependencies
    const now = this.#now()
    return this.#changeTimes(async (tx): Promise<CreateResult> => {
      const existing = await findSchedule(tx, accountId, id)
      if (existing) return { kind: 'created', schedule: toSchedule(existing, new Map()) }
      const empty = emptySchedule(id, accountId, workflowId, now)
      const changed = await changeSchedule(tx, this.#dependencies, empty, given, now)
      if ('errors' in changed) return { kind: 'invalid', errors: changed.errors }
      const ids = tx.query.selectFrom('schedules').select('id').where('account_id', '=', accountId)
      if (schedulesMax > 0 && (await ids.limit(schedulesMax).execute()).length >= schedulesMax) {
        return { kind: 'tooManySchedules', schedulesMax }
      }
      await tx.query.insertInto('schedules').values(changed.row).execute()
      if (changed.files) await setScheduleFiles(tx, changed.row.id, changed.files)
      await audit(tx, changed.row, 'schedule.created', by)
      return { kind: 'created', schedule: toSchedule(changed.row, new Map()) }
    })
  }

  async get(accountId: string, id: string): Promise<Schedule | undefined> {
    const { read } = this.#dependencies.store
    const row = await findSchedule(read, accountId, id)
    return row && toSchedule(row, await findStatuses(read, [row]))
  }

  /** A page, newest first; `undefined` for a cursor of another list. */
  async list(accountId: string, request: PageRequest) {
    const { store, cursors } = this.#dependencies
    const all = store.read.query.selectFrom('schedules').selectAll().where('account_id', '=', accountId)
    const page = await cursors.page(['schedules', accountId], request, (after, limit) => {
      const rows = after === undefined ? all : all.where('id', '<', after)
      return rows.orderBy('id', 'desc').limit(limit).execute()
    })
    if (!page) return undefined
    const statuses = await findStatuses(store.read, page.rows)
    return { schedules: page.rows.map((row) => toSchedule(row, statuses)), nextCursor: page.nextCursor }
  }

  /**
   * Changes, pauses or resumes a schedule. Times that passed while it was paused get no runs.
   *
   * @returns validation errors, or `undefined` if there is no such schedule.
   */
  async update(accountId: string, id: string, change: ScheduleChange, by: Actor | ApiKeyUse) {
    const now = this.#now()
    return this.#changeTimes(async (tx): Promise<Schedule | { errors: ScheduleError[] } | undefined> => {
      const before = await findSchedule(tx, accountId, id)
      if (!before) return undefined
      const changed = await changeSchedule(tx, this.#dependencies, before, change, now)
      if ('errors' in changed) return changed
      const { id: _, ...columns } = changed.row
      await tx.query.updateTable('schedules').set(columns).where('id', '=', before.id).execute()
      if (changed.files) await setScheduleFiles(tx, before.id, changed.files)
      const { variables, ...shown } = change
      const details = { ...shown, ...(variables && { variableData: 'changed' }) }
      await audit(tx, changed.row, 'schedule.changed', by, details)
      return toSchedule(changed.row, await findStatuses(tx, [changed.row]))
    })
  }

  /** The next times of a schedule that is created now. */
  previewTimes(given: GivenTiming): { times: number[] } | { errors: ScheduleError[] } {
    const now = this.#now()
    const timing = 'cron' in given ? { ...given, cron: normalizeCron(given.cron) } : { ...given, startsAt: now }
    const error = findTimingError(timing, now)
    if (error) return { errors: [{ pointer: `/${error.member}`, detail: error.detail }] }
    return { times: nextTimes(nextTimeOf(timing), now, nextTimesMax) }
  }

  /** Queues a run now, also of a paused schedule. `undefined` if there is no such schedule. */
  async trigger(accountId: string, id: string, by: Actor | ApiKeyUse): Promise<QueueResult | undefined> {
    const { store, encryption, runs } = this.#dependencies
    const row = await findSchedule(store.read, accountId, id)
    if (!row) return undefined
    const { request, secrets } = toQueueRequest(encryption, row, null)
    const queuer = 'apiKeyId' in by ? { apiKeyId: by.apiKeyId } : { apiKeyId: null, userId: by.id }
    const within = (tx: Transaction, runId: string) => audit(tx, row, 'schedule.triggered', by, { runId })
    return runs.queue({ accountId, ...queuer }, request, { secrets, within })
  }

  /** Notifies maintenance, which waits until the next schedule is due. */
  async #changeTimes<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    const { store } = this.#dependencies
    const result = await store.write(work)
    store.notify('maintenance')
    return result
  }

  /** Erases the schedule; its runs stay. Returns whether it existed. */
  async delete(accountId: string, id: string, by: Actor | ApiKeyUse): Promise<boolean> {
    return this.#dependencies.store.write(async (tx) => {
      const row = await findSchedule(tx, accountId, id)
      if (!row) return false
      await tx.query.deleteFrom('schedules').where('id', '=', row.id).execute()
      await audit(tx, row, 'schedule.deleted', by)
      return true
    })
  }
}

/** The statuses of the schedules' last runs, by run. */
async function findStatuses(tx: Transaction, rows: readonly SchedulesTable[]): Promise<Map<string, string>> {
  const ids = rows.flatMap(({ last_run_id: id }) => id ?? [])
  const runs = await readColumns(tx, ['id', 'status'], ids)
  return new Map(runs.flatMap(({ id, status }) => (status === deletedStatus ? [] : [[id, status]])))
}

type ScheduleAction = `schedule.${'created' | 'changed' | 'triggered' | 'deleted'}`

async function audit(
  tx: Transaction,
  { id, account_id, name, workflow_id }: SchedulesTable,
  action: ScheduleAction,
  by: Actor | ApiKeyUse,
  details: Record<string, unknown> = {},
): Promise<void> {
  const subject = { id, name: name ?? workflow_id }
  await recordAudit(tx, account_id, { action, by: await toActor(tx, by), subject, details })
}
