/** The format of scenarios.yaml: its types, and the JSON Schema that the docs publish. */
import type { LogLevel } from '../domain/runs/reported-values.ts'
import type { ArtifactMediaType } from '../domain/workflows/define-workflow.ts'

/** What runs of a workflow do. The first scenario that matches a run decides. */
export interface Scenario {
  workflow: string
  variables?: Record<string, unknown>
  durationSeconds?: number
  actions?: readonly Action[]
  outcome?: OutcomeName
  firstAttempts?: number
  endsInStep?: string
  error?: ScenarioError
  output?: unknown
  evidence?: EvidenceSummary
}

export const outcomeNames = ['succeeded', 'failed', 'timedOut', 'workerLost'] as const
export type OutcomeName = (typeof outcomeNames)[number]

export interface ScenarioError {
  name?: string
  message: string
}

/** One member. */
export interface Action extends QuickAction {
  step?: string | { name: string; durationSeconds?: number; value?: unknown; actions?: readonly QuickAction[] }
  pause?: number
  sleep?: { name: string; seconds?: number; until?: string }
  ask?: string | { wait: string; title?: string; timeoutSeconds?: number; show?: Record<string, unknown> }
  call?: { name: string; workflow: string; variables?: Record<string, unknown>; detached?: boolean }
}

/** What a step may contain. It takes no time. */
export interface QuickAction {
  log?: string | { message: string; level?: LogLevel }
  progress?: number | { percent: number; message?: string }
  artifact?: { name: string; mediaType?: ArtifactMediaType; text?: string; base64?: string; sizeBytes?: number }
}

export interface EvidenceSummary {
  url?: string
  title?: string
  console?: readonly { level: string; text: string }[]
  failedRequests?: readonly { method: string; url: string; status: number | null; error?: string | null }[]
}
