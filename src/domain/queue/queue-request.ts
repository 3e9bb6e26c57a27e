/** A request to queue a run: its validation, its row, and the fingerprint by which a repeated request is recognized. */
import { findValueErrors } from '../../contract/value-checks.ts'
import type { Encryption, ValueEncryption } from '../../storage/encryption.ts'
import { insertedRunColumns } from '../../storage/runs/run-statements.ts'
import type { RunsTable } from '../../storage/tables/run-tables.ts'
import { canonicalJson } from '../canonical-json.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { createRunId, groupOf, parseCreatedAt, secretsAad, stepAad } from '../runs/run.ts'
import type { Secrets } from '../workflows/secrets.ts'
import type { VariableError, Workflows } from '../workflows/workflows.ts'
import type { IdempotencyKey, NewRun } from './enqueue-batcher.ts'
import { isLimitedByKey } from './limits.ts'
import type { RunStart } from './reused-steps.ts'
import {
  fromMembers,
  type GivenOptions,
  identify,
  type OptionName,
  type RunOptions,
  toColumns,
  withDefaults,
} from './run-options.ts'

/** An API key, or a user in the dashboard. */
export interface Queuer {
  accountId: string
  apiKeyId: string | null
  userId?: string | null
}

export interface QueueRequest extends GivenOptions {
  workflowId: string
  variables: Record<string, unknown>
  idempotencyKey?: string | undefined
  /**
   * A run of the same account and workflow whose secrets replace the masks in `variables`. Applies if the same caller
   * queued that run or all other variables are equal; otherwise the masks are not replaced.
   */
  secretsFrom?: string | undefined
  /** The step of `rerunOf` that the run starts from, with the results of the steps before. */
  start?: RunStart | undefined
  /** The run of the same account and workflow that this one repeats. */
  rerunOf?: string | undefined
  /** The run that calls this one. */
  parent?: string | undefined
  /** The schedule that queues the run, and the time that it is for; `null` if a caller starts it. */
  schedule?: { id: string; time: number | null } | undefined
}

/** Why a request is refused. */
export type RefusedRun =
  | { kind: 'noSuchWorkflow' }
  | { kind: 'expiresTooSoon' }
  | { kind: 'noSuchBrowserContext' }
  | { kind: 'usesNoBrowser' }
  /** The workflow has no limit per key. */
  | { kind: 'usesNoConcurrencyKey' }
  | { kind: 'variablesInvalid'; errors: VariableError[] }
  /** Options that the document does not allow. */
  | { kind: 'optionsInvalid'; errors: OptionError[] }

/** The JSON Pointer is within the value of the option. */
interface OptionError extends VariableError {
  member: OptionName
}

function findOptionErrors(request: GivenOptions): OptionError[] {
  // These stand for the default.
  const isChosen = ([, value]: [string, unknown]) => value !== null && !(Array.isArray(value) && value.length === 0)
  const chosen = Object.fromEntries(Object.entries(fromMembers(request)).filter(isChosen))
  return findValueErrors('BatchEntry', chosen).map(({ pointer, detail }) => {
    const [, member = ''] = pointer.split('/')
    return { member: member as OptionName, pointer: pointer.slice(member.length + 1), detail }
  })
}

/** Validates the request, and fills in the defaults of its options and variables. */
export function checkRequest(workflows: Workflows, request: QueueRequest, earlierSecrets: Secrets = {}) {
  const optionErrors = findOptionErrors(request)
  if (optionErrors.length > 0) return { kind: 'optionsInvalid', errors: optionErrors } as const
  const options = withDefaults(request)
  const { delaySeconds, expiresInSeconds, concurrencyKey } = options
  if (expiresInSeconds !== null && expiresInSeconds <= delaySeconds) return { kind: 'expiresTooSoon' } as const
  const workflow = workflows.get(request.workflowId)
  if (!workflow) return { kind: 'noSuchWorkflow' } as const
  if (options.browserContextId !== null && !workflow.usesBrowser) return { kind: 'usesNoBrowser' } as const
  // A run that repeats another one leaves out its key if the workflow no longer has a limit per key.
  if (concurrencyKey !== null && !isLimitedByKey(workflow) && request.rerunOf === undefined)
    return { kind: 'usesNoConcurrencyKey' } as const
  const checked = workflows.checkVariables(workflow.id, request.variables, earlierSecrets)
  if ('errors' in checked) return { kind: 'variablesInvalid', errors: checked.errors } as const
  return { kind: 'valid', workflow, options, ...checked } as const
}

/**
 * Validates the request by the current deployment, and creates the row.
 *
 * @param addedSecrets stored with those of the variables.
 */
export function createRun(
  { workflows: registry, encryption }: { workflows: WorkflowRegistry; encryption: ValueEncryption },
  queuer: Queuer,
  request: QueueRequest,
  earlierSecrets?: Secrets,
  addedSecrets?: Secrets,
): { kind: 'created'; run: NewRun } | RefusedRun {
  const workflows = registry.current(queuer.accountId)
  const checked = checkRequest(workflows, request, earlierSecrets)
  if (checked.kind !== 'valid') return checked
  const { workflow, options, masked, files } = checked
  const secrets = { ...checked.secrets, ...addedSecrets }
  const deploymentId = workflows.deploymentOf(workflow.id)
  const run = toNewRun(queuer, request, options, { ...workflow, deploymentId }, masked)
  if (files) run.files = files
  if (isLimitedByKey(workflow)) run.concurrency_group = groupOf(run, options.concurrencyKey ?? undefined)
  const { id, account_id } = run
  if (Object.keys(secrets).length > 0) {
    run.secrets = () => encryption.encrypt(JSON.stringify(secrets), secretsAad(account_id, id))
  }
  if (request.start) {
    run.steps = request.start.results.map(({ name, value }) => {
      return { name, bytes: Buffer.byteLength(value), encrypt: () => encryption.encrypt(value, stepAad(id, name)) }
    })
  }
  return { kind: 'created', run }
}

const idempotencyMilliseconds = 24 * 60 * 60 * 1000

/** @param canonical the request as canonical JSON, which identifies it. */
export function createIdempotencyKey(
  encryption: Encryption,
  key: string,
  canonical: string,
  now: number,
): IdempotencyKey {
  return { key, fingerprint: encryption.sign('idempotency', canonical), expiresAt: now + idempotencyMilliseconds }
}

/** Columns that an INSERT leaves at their defaults. */
const unstarted = {
  reason: null,
  attempts: 0,
  failures: 0,
  losses: 0,
  attempt_started_at: null,
  attempt_ends: null,
  output: null,
  error: null,
  progress: null,
  cancel_requested: 0,
  cancelled_by_key_id: null,
  cancelled_by_user_id: null,
  started_at: null,
  finished_at: null,
  worker_id: null,
  lease_expires_at: null,
  deployment_problem: null,
  continues: 0,
  continuations: 0,
  executed_ms: 0,
  total_executed_ms: 0,
  has_waits: 0,
  signs_in: null,
} as const

/** The stored row of a run that was just inserted, without its secrets. */
export function toQueuedRow({ steps: _, files: __, ...run }: NewRun): RunsTable {
  return { ...unstarted, ...run, secrets: null }
}

/** All columns of a run, for statements that leave some out. */
export const queuedRowColumns = [...insertedRunColumns, ...(Object.keys(unstarted) as (keyof typeof unstarted)[])]

function toNewRun(
  { accountId, apiKeyId, userId = null }: Queuer,
  { schedule, rerunOf, parent }: QueueRequest,
  options: RunOptions,
  workflow: { id: string; version: string; deploymentId: string | null },
  variables: Record<string, unknown>,
): NewRun {
  const id = createRunId()
  const createdAt = parseCreatedAt(id)
  return {
    id,
    account_id: accountId,
    api_key_id: apiKeyId,
    user_id: userId,
    workflow_id: workflow.id,
    workflow_version: workflow.version,
    status: 'queued',
    variables: JSON.stringify(variables),
    secrets: null,
    created_at: createdAt,
    ...toColumns(options, createdAt),
    waiting_for: '',
    trace_context: null,
    deployment_id: workflow.deploymentId,
    concurrency_group: null,
    schedule_id: schedule?.id ?? null,
    scheduled_for: schedule?.time ?? null,
    rerun_of: rerunOf ?? null,
    parent_run_id: parent ?? null,
  }
}

/** Identifies a request that is sent again with its idempotency key. */
export function canonicalRequest(request: QueueRequest): string {
  const { workflowId, variables, secretsFrom, rerunOf, schedule, start } = request
  const options = identify(withDefaults(request))
  return canonicalJson({ workflowId, variables, secretsFrom, rerunOf, schedule, fromStep: start?.fromStep, options })
}
