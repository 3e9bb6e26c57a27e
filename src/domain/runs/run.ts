/** A run as the domain has it, and how a row becomes one. */
import type { RunsTable } from '../../storage/tables.ts'
import type { Artifact } from './artifacts.ts'
import type { RunError, RunReason, RunStatus } from './run-state.ts'

export interface Run {
  id: string
  accountId: string
  /** The API key that queued it, or the user who did so in the dashboard; neither is told on the wire. */
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
  /** With every secret masked. */
  variables: Record<string, unknown>
  output: unknown
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

/** Something that happened to a run; `data` holds what its type adds. */
export interface RunEvent {
  sequence: number
  at: number
  type: 'status' | 'log' | 'progress' | 'step' | 'artifact'
  data: Record<string, unknown>
}

type AtLimit = (run: { accountId: string; workflowId: string }) => boolean

/** @param atLimit whether the run's workflow, or its account, runs as often as its concurrency limit allows. */
export function runOf(row: RunsTable, atLimit: AtLimit, artifacts: Artifact[]): Run {
  return {
    id: row.id,
    accountId: row.account_id,
    apiKeyId: row.api_key_id,
    userId: row.user_id,
    workflowId: row.workflow_id,
    workflowVersion: row.workflow_version,
    status: row.status as RunStatus,
    reason: row.reason as RunReason | null,
    waitingFor: waitingFor(row, atLimit),
    cancelRequested: row.cancel_requested === 1,
    priority: row.priority,
    attempts: row.attempts,
    variables: JSON.parse(row.variables),
    output: parsed(row.output),
    error: parsed(row.error),
    progress: parsed(row.progress),
    browserContextId: row.browser_context_id,
    persistContext: row.persist_context as PersistContext | null,
    artifacts,
    createdAt: row.created_at,
    availableAt: row.available_at,
    expiresAt: row.expires_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
  }
}

function waitingFor(row: RunsTable, atLimit: AtLimit): WaitingFor | null {
  if (row.status !== 'queued') return null
  if (row.delayed === 1) return 'delay'
  if (row.waits_for_context === 1) return 'browserContext'
  return atLimit({ accountId: row.account_id, workflowId: row.workflow_id }) ? 'concurrencyLimit' : 'worker'
}

function parsed<Value>(json: string | null): Value | null {
  return json === null ? null : JSON.parse(json)
}
