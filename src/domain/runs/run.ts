/** The `Run` type, its conversion from a row, the time in a run's id, and the AAD of encrypted columns. */
import type { EncryptedColumn } from '../../storage/encrypted-columns.ts'
import type { RunsTable } from '../../storage/tables.ts'
import type { Artifact } from './artifacts.ts'
import { toRunError, toRunProgress } from './reported-values.ts'
import type { RunError, RunReason, RunStatus } from './run-state.ts'

/** Times are milliseconds since 1970. */
export interface Run {
  id: string
  accountId: string
  /** The API key that queued the run, or the user who did so in the dashboard. The API returns neither. */
  apiKeyId: string | null
  userId: string | null
  workflowId: string
  workflowVersion: string
  status: RunStatus
  reason: RunReason | null
  waitingFor: WaitingFor | null
  cancelRequested: boolean
  priority: number
  attempts: number
  /** With every secret masked. Parsed at each access. */
  readonly variables: Record<string, unknown>
  /** Parsed at each access. */
  readonly output: unknown
  /** `variables` and `output` as they are stored. */
  json: { variables: string; output: string }
  error: RunError | null
  progress: RunProgress | null
  browserContextId: string | null
  persistContext: PersistContext | null
  artifacts: Artifact[]
  createdAt: number
  availableAt: number | null
  expiresAt: number | null
  startedAt: number | null
  finishedAt: number | null
}

export type WaitingFor = 'worker' | 'delay' | 'concurrencyLimit' | 'browserContext'

/** When the browser's cookies and storage become the browser context's new version. */
export type PersistContext = 'never' | 'onSuccess' | 'always'

export interface RunProgress {
  percent: number
  message: string | null
}

/** An event of a run; `data` contains the members specific to its type. */
export interface RunEvent {
  /** Counts from 1 within the run, without gaps. */
  sequence: number
  at: number
  type: 'status' | 'log' | 'progress' | 'step' | 'artifact'
  data: Record<string, unknown>
}

/** An event that an attempt reports. */
export type Report = Omit<RunEvent, 'sequence'>

type IsAtLimit = (run: RunsTable) => boolean

/** @param isAtLimit whether the run's workflow or account has reached its concurrency limit. */
export function toRun(row: RunsTable, isAtLimit: IsAtLimit, artifacts: Artifact[]): Run {
  const run: object = {
    __proto__: parsedOnAccess,
    id: row.id,
    accountId: row.account_id,
    apiKeyId: row.api_key_id,
    userId: row.user_id,
    workflowId: row.workflow_id,
    workflowVersion: row.workflow_version,
    status: row.status as RunStatus,
    reason: row.reason as RunReason | null,
    waitingFor: waitingFor(row, isAtLimit),
    cancelRequested: row.cancel_requested === 1,
    priority: row.priority,
    attempts: row.attempts,
    json: { variables: row.variables, output: row.output ?? 'null' },
    error: parseJson(row.error, toRunError),
    progress: parseJson(row.progress, toRunProgress),
    browserContextId: row.browser_context_id,
    persistContext: row.persist_context as PersistContext | null,
    artifacts,
    createdAt: row.created_at,
    availableAt: row.available_at,
    expiresAt: row.expires_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
  }
  return run as Run
}

/** The prototype of runs: with getters on each object, V8 copies its members slowly (5 µs per request). */
const parsedOnAccess = {
  get variables(): unknown {
    return JSON.parse((this as unknown as Run).json.variables)
  },
  get output(): unknown {
    return JSON.parse((this as unknown as Run).json.output)
  },
}

/** The bytes of the columns that may be large. */
export function sizeOf({ variables, output, error }: RunsTable): number {
  return variables.length + (output?.length ?? 0) + (error?.length ?? 0)
}

function waitingFor(row: RunsTable, isAtLimit: IsAtLimit): WaitingFor | null {
  if (row.status !== 'queued') return null
  if (row.delayed === 1) return 'delay'
  if (row.waits_for_context === 1) return 'browserContext'
  return isAtLimit(row) ? 'concurrencyLimit' : 'worker'
}

function parseJson<Value, Result>(json: string | null, convert: (value: Value) => Result): Result | null {
  return json === null ? null : convert(JSON.parse(json))
}

/**
 * The lower bound of run ids created at or after this time: a version 7 UUID begins with 48 bits of milliseconds (RFC
 * 9562, section 5.7). No run has this id, because its version digit is 0.
 */
export function firstIdAt(milliseconds: number): string {
  const time = Math.min(Math.max(0, milliseconds), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`
}

/** The milliseconds in a run's id, so that `createdAt` agrees with filters by id to the millisecond. */
export function parseCreatedAt(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

/** Associated data (AAD) of a run's secrets: they decrypt in this row only. */
export function secretsAad(accountId: string, runId: string): string {
  return `${accountId}/runs/${runId}/secrets`
}

export function stepAad(runId: string, name: string): string {
  return `runs/${runId}/steps/${name}`
}

export const encryptedInRuns: readonly EncryptedColumn[] = [
  { table: 'runs', key: ['id'], column: 'secrets', aadColumns: ['account_id', 'id'], aad: secretsAad },
  { table: 'run_steps', key: ['run_id', 'name'], column: 'value', aadColumns: ['run_id', 'name'], aad: stepAad },
]

/**
 * Span attributes by OpenTelemetry's messaging conventions: queueing a run sends a message, an attempt processes it.
 * Written as text, so that OpenTelemetry is loaded only when tracing is on.
 */
export function messageAttributes(operation: 'send' | 'process', workflowId: string, runId: string) {
  return {
    'messaging.system': 'execution_service',
    'messaging.operation.name': operation,
    'messaging.operation.type': operation,
    'messaging.destination.name': workflowId,
    'messaging.message.id': runId,
  }
}
