/** A caller's request for a schedule: its validation, and the columns that follow from it. */
import { findValueErrors } from '../../contract/value-checks.ts'
import type { Encryption } from '../../storage/encryption.ts'
import type { Transaction } from '../../storage/store.ts'
import type { SchedulesTable } from '../../storage/tables/tables.ts'
import { findContextLeases } from '../browser-contexts/browser-contexts.sql.ts'
import { canonicalJson } from '../canonical-json.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { renewFiles } from '../files/files.sql.ts'
import { toMemberErrors } from '../queue/queue-problems.ts'
import { createRun, type RefusedRun } from '../queue/queue-request.ts'
import { defaultScheduleOptions, type ScheduleOptions } from '../queue/run-options.ts'
import { extractSecrets } from '../workflows/secrets.ts'
import type { FileVariable } from '../workflows/workflows.ts'
import { type OverlapPolicy, type ScheduleError, timingOf, toQueueRequest } from './schedule.ts'
import { findTimingError, type MissedPolicy, nextTimeOf, normalizeCron } from './schedule-times.ts'
import { secretsAad } from './schedules.sql.ts'

/** Absent members stay as they are; for a new schedule, they have their defaults. */
export interface ScheduleChange
  extends Partial<{ [Name in keyof ScheduleOptions]: ScheduleOptions[Name] | undefined }> {
  name?: string | null | undefined
  variables?: Record<string, unknown> | undefined
  /** Replaces an interval. */
  cron?: string | undefined
  timeZone?: string | undefined
  /** Replaces a cron expression. */
  intervalSeconds?: number | undefined
  missed?: MissedPolicy | undefined
  overlap?: OverlapPolicy | undefined
  paused?: boolean | undefined
}

export interface ScheduleRequest {
  workflows: WorkflowRegistry
  encryption: Encryption
  /** From when a file is used until it expires. */
  fileRetentionMilliseconds?: number
}

/** `files`: of its variables, if these change. */
type Changed = { row: SchedulesTable; files: readonly FileVariable[] | undefined } | { errors: ScheduleError[] }

/** A schedule before its first change, which gives it variables and times. */
export function emptySchedule(id: string, accountId: string, workflowId: string, now: number): SchedulesTable {
  return {
    id,
    account_id: accountId,
    name: null,
    workflow_id: workflowId,
    variables: '{}',
    secrets: null,
    options: JSON.stringify(defaultScheduleOptions),
    cron: null,
    time_zone: null,
    interval_seconds: null,
    interval_starts_at: null,
    missed: 'skip',
    overlap: 'allow',
    paused_reason: null,
    paused_detail: null,
    next_at: null,
    waits_for_run: 0,
    last_run_id: null,
    last_run_for: null,
    last_skipped_for: null,
    last_skip_reason: null,
    created_at: now,
    updated_at: now,
  }
}

/** Applies the change to the row and validates the result, in the transaction that stores it. */
export async function changeSchedule(
  tx: Transaction,
  dependencies: ScheduleRequest,
  before: SchedulesTable,
  change: ScheduleChange,
  now: number,
): Promise<Changed> {
  const { variables: variableData, ...others } = change
  const invalid = findValueErrors('UpdateScheduleRequest', { ...others, variableData })
  if (invalid.length > 0) return { errors: invalid }
  const conflict = findConflict(before, change)
  if (conflict) return { errors: [conflict] }
  const row = { ...before, ...changedColumns(before, change, now), updated_at: now }
  const timingError = findTimingError(timingOf(row), now)
  if (timingError) return { errors: [{ pointer: `/${timingError.member}`, detail: timingError.detail }] }
  const variables = changedVariables(before, change)
  // A paused schedule may be renamed although its workflow is gone.
  if (row.paused_reason === null || variables || row.options !== before.options) {
    const errors = await checkRuns(tx, dependencies, row, variables)
    if (errors.length > 0) return { errors }
  }
  const files = variables && filesIn(dependencies, row, variables)
  if (files && files.length > 0) {
    const { fileRetentionMilliseconds: retentionMilliseconds = 0 } = dependencies
    const errors = await renewFiles(tx, row.account_id, files, { now, retentionMilliseconds })
    if (errors.length > 0) return { errors: toMemberErrors({ kind: 'variablesInvalid', errors }) }
  }
  if (variables) Object.assign(row, encryptVariables(dependencies, row, variables))
  return { row: { ...row, ...dueColumns(before, row, now) }, files }
}

function findConflict(before: SchedulesTable, change: ScheduleChange): ScheduleError | undefined {
  const { cron, timeZone, intervalSeconds } = change
  if (cron !== undefined && intervalSeconds !== undefined) {
    return { pointer: '/intervalSeconds', detail: 'cannot be combined with cron' }
  }
  const hasCron = cron !== undefined || (intervalSeconds === undefined && before.cron !== null)
  if (timeZone !== undefined && !hasCron) return { pointer: '/timeZone', detail: 'cannot be set without cron' }
  const hasTiming = hasCron || intervalSeconds !== undefined || before.interval_seconds !== null
  return hasTiming ? undefined : { pointer: '/cron', detail: 'is required, or intervalSeconds' }
}

function changedColumns(before: SchedulesTable, change: ScheduleChange, now: number): Partial<SchedulesTable> {
  const { cron, timeZone, intervalSeconds, paused } = change
  const options: ScheduleOptions = JSON.parse(before.options)
  for (const name of Object.keys(options) as (keyof ScheduleOptions)[]) {
    if (change[name] !== undefined) Object.assign(options, { [name]: change[name] })
  }
  const columns: Partial<SchedulesTable> = { options: JSON.stringify(options) }
  if (change.name !== undefined) columns.name = change.name
  if (change.missed !== undefined) columns.missed = change.missed
  if (change.overlap !== undefined) columns.overlap = change.overlap
  if (intervalSeconds !== undefined && intervalSeconds !== before.interval_seconds) {
    Object.assign(columns, { interval_seconds: intervalSeconds, interval_starts_at: now, cron: null, time_zone: null })
  } else if (cron !== undefined || timeZone !== undefined) {
    const zone = timeZone ?? before.time_zone ?? 'UTC'
    const noInterval = { interval_seconds: null, interval_starts_at: null }
    Object.assign(columns, {
      cron: cron === undefined ? before.cron : normalizeCron(cron),
      time_zone: zone,
      ...noInterval,
    })
  }
  if (paused === true) columns.paused_reason = before.paused_reason ?? 'request'
  if (paused === false) Object.assign(columns, { paused_reason: null, paused_detail: null })
  return columns
}

/** The given variables, unless they are the stored ones with their masks: the secrets stay as they are then. */
function changedVariables(before: SchedulesTable, { variables }: ScheduleChange): Record<string, unknown> | undefined {
  if (variables === undefined || before.secrets === null) return variables
  return canonicalJson(variables) === canonicalJson(JSON.parse(before.variables)) ? undefined : variables
}

/** Why its runs would be refused. */
async function checkRuns(
  tx: Transaction,
  dependencies: ScheduleRequest,
  row: SchedulesTable,
  variables: Record<string, unknown> | undefined,
): Promise<ScheduleError[]> {
  const refused = findRefusal(dependencies, row, variables)
  if (refused) return toMemberErrors(refused)
  const { browserContextId }: ScheduleOptions = JSON.parse(row.options)
  if (browserContextId === null) return []
  const contexts = await findContextLeases(tx, row.account_id, [{ browser_context_id: browserContextId }])
  if (contexts.has(browserContextId.toLowerCase())) return []
  return toMemberErrors({ kind: 'noSuchBrowserContext' })
}

/** Why a run that the schedule queues now would be refused, with other variables if they are given. */
export function findRefusal(
  { workflows, encryption }: ScheduleRequest,
  row: SchedulesTable,
  variables?: Record<string, unknown>,
): RefusedRun | undefined {
  const { request, secrets } = toQueueRequest(encryption, row, null)
  const queuer = { accountId: row.account_id, apiKeyId: null }
  const checked = variables ? { ...request, variables: structuredClone(variables) } : request
  const created = createRun({ workflows, encryption }, queuer, checked, variables ? {} : secrets)
  return created.kind === 'created' ? undefined : created
}

function filesIn({ workflows }: ScheduleRequest, row: SchedulesTable, variables: Record<string, unknown>) {
  const { account_id, workflow_id } = row
  return workflows.current(account_id).filesIn(workflow_id, variables)
}

/** Valid variables as they are stored. Defaults are left out, so that each run gets those of its deployment. */
function encryptVariables(
  { workflows, encryption }: ScheduleRequest,
  { id, account_id, workflow_id }: SchedulesTable,
  variables: Record<string, unknown>,
): Pick<SchedulesTable, 'variables' | 'secrets'> {
  const checked = workflows.current(account_id).checkVariables(workflow_id, structuredClone(variables))
  const pointers = 'secrets' in checked ? Object.keys(checked.secrets) : []
  const { masked, secrets } = extractSecrets(variables, pointers)
  const hasSecrets = Object.keys(secrets).length > 0
  return {
    variables: JSON.stringify(masked),
    secrets: hasSecrets ? encryption.encrypt(JSON.stringify(secrets), secretsAad(account_id, id)) : null,
  }
}

/** Recomputes the next time if the times have changed or the schedule is resumed. */
function dueColumns(before: SchedulesTable, row: SchedulesTable, now: number): Partial<SchedulesTable> {
  if (row.paused_reason !== null) return { next_at: null, waits_for_run: 0 }
  const timing = timingOf(row)
  const isSame = before.next_at !== null && JSON.stringify(timing) === JSON.stringify(timingOf(before))
  if (!isSame) return { next_at: nextTimeOf(timing)(now) ?? null, waits_for_run: 0 }
  return row.overlap === 'queue' ? {} : { waits_for_run: 0 }
}
