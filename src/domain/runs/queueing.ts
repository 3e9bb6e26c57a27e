/** What is asked for when a run is queued, and what comes of it. */
import type { Encryption } from '../../storage/encryption.ts'
import type { VariableError } from '../workflows/workflows.ts'
import type { PersistContext, Run } from './run.ts'
import type { NewRun } from './runs.sql.ts'

/** Who queues a run: an API key, or a user in the dashboard. */
export interface Queuer {
  accountId: string
  apiKeyId: string | null
  userId?: string | null
}

export interface QueueRequest {
  workflowId: string
  variables: Record<string, unknown>
  idempotencyKey: string | undefined
  delaySeconds: number
  expiresInSeconds: number | undefined
  priority: number
  /** What the run's browser starts with, and when it is changed by the run. */
  browserContext?: { id: string; persist: PersistContext } | undefined
  /**
   * A run of the same account and workflow: where it had a secret and the variables hold a secret's mask, that secret is
   * meant: for who has queued that run, or where all other variables are the same. Any other run has none to give.
   */
  secretsFrom?: string | undefined
}

export type Queued =
  | { kind: 'queued'; run: Run; replayed: boolean }
  | { kind: 'noSuchWorkflow' }
  | { kind: 'noSuchBrowserContext' }
  | { kind: 'usesNoBrowser' }
  | { kind: 'variablesInvalid'; errors: VariableError[] }
  | { kind: 'idempotencyConflict' }
  | { kind: 'tooManyQueuedRuns'; queuedMax: number }

/**
 * What tells a request from another one with the same idempotency key. To be taken before defaults and earlier secrets
 * are filled in: the same request is the same under a newer schema.
 */
export function identityOf({ idempotencyKey: _, browserContext, ...request }: QueueRequest): string {
  // A UUID means the same in capitals (RFC 9562, section 4).
  const context = browserContext && { ...browserContext, id: browserContext.id.toLowerCase() }
  return JSON.stringify({ ...request, browserContext: context }, inOrder)
}

/** Keyed, so that a stolen database does not let anyone guess secret variables from it. */
export function fingerprintOf(identity: string, encryption: Encryption): Buffer {
  return encryption.sign('idempotency', identity)
}

/** Whether the fingerprint is that of the identity, under any key of the installation. */
export function isFingerprintOf(identity: string, fingerprint: Uint8Array, encryption: Encryption): boolean {
  const fingerprints = encryption.signatures('idempotency', identity)
  return fingerprints.some((each) => Buffer.compare(each, fingerprint) === 0)
}

/** For JSON.stringify: members in the order of their names, since their order means nothing (RFC 8259, section 4). */
export function inOrder(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** The run as it was just stored. */
export function queuedRun(run: NewRun, masked: Record<string, unknown>, waits: 'context' | 'limit' | undefined): Run {
  const { secrets: _secrets, traceContext: _traceContext, userId = null, ...kept } = run
  const waitingFor = waits === 'context' ? 'browserContext' : waits === 'limit' ? 'concurrencyLimit' : 'worker'
  return {
    ...kept,
    userId,
    status: 'queued',
    reason: null,
    waitingFor: run.availableAt === null ? waitingFor : 'delay',
    cancelRequested: false,
    attempts: 0,
    variables: masked,
    output: null,
    error: null,
    progress: null,
    artifacts: [],
    startedAt: null,
    finishedAt: null,
  }
}
