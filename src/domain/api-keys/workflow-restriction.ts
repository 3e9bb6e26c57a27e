/**
 * API keys that are restricted to workflows, so that one which is stolen shows and changes nothing else of its account. A
 * request of such a key names one of its workflows, or a run, or is one of a worker. All others are refused with 403: an
 * operation that is added later is closed to these keys unless its parameters have such a name.
 */
import type { PermitsRequest } from '../../contract/stages.ts'
import { ApiKeyError } from './api-key.ts'

export type { PermitsRequest }

/** The scopes that a restricted key may have. With any other one, it would have operations that name no workflow. */
export const restrictableScopes = ['runs:write', 'runs:read', 'runs:execute', 'waits:write', 'workflows:read'] as const

const workersScope = 'runs:execute' satisfies (typeof restrictableScopes)[number]

/** Workflows of one key. */
export const workflowIdsMax = 100
const workflowIdPattern = /^[A-Za-z0-9._-]{1,128}$/

/**
 * Which requests a key of these workflows may send. The handlers check what the parameters do not show: the workflow of a
 * run (`restrictRuns`), and the workflows and the claims of a worker.
 */
export function restrictTo(workflowIds: readonly string[]): PermitsRequest {
  return ({ scopes }, { path, query }) => {
    const named = [path.workflowId, query.workflowId].filter((id) => id !== undefined)
    if (named.some((id) => !workflowIds.includes(String(id)))) return false
    return named.length > 0 || path.runId !== undefined || scopes.includes(workersScope)
  }
}

/** The requests of a token that reads one run. */
export function permitsRun(runId: string): PermitsRequest {
  return (_operation, { path }) => String(path.runId).toLowerCase() === runId
}

interface RestrictedKey {
  scopes: readonly string[] | null
  workflowIds: readonly string[] | null
}

/** @throws {ApiKeyError} */
export function requireValidRestriction({ scopes, workflowIds }: RestrictedKey): void {
  if (workflowIds === null) return
  const refuse = (message: string) => {
    throw new ApiKeyError('workflows', message)
  }
  if (workflowIds.length === 0) refuse('Name at least one workflow.')
  if (workflowIds.length > workflowIdsMax) refuse(`A key may be restricted to ${workflowIdsMax} workflows at most.`)
  const invalid = workflowIds.find((id) => !workflowIdPattern.test(id))
  if (invalid !== undefined) refuse(`"${invalid}" is not the id of a workflow.`)
  const permitted: readonly string[] = restrictableScopes
  const other = scopes?.find((scope) => !permitted.includes(scope))
  if (scopes && other === undefined) return
  const reason = other === undefined ? 'needs scopes' : `cannot have the scope ${other}`
  refuse(`A key that is restricted to workflows ${reason}. Choose from ${permitted.join(', ')}.`)
}
