/** The Execution API: every operation of openapi/execution.v1.yaml, the scope that guards it, and its handler. */
import type { ExecutionV1Handlers } from '../../generated/execution.v1/server.ts'
import type { Principal } from '../domain/api-keys/api-key.ts'
import { type RunDependencies, runOperations } from '../domain/runs/run-operations.ts'
import { workflowOperations } from '../domain/workflows/workflow-operations.ts'
import type { Workflows } from '../domain/workflows/workflows.ts'

type Handlers = ExecutionV1Handlers<Principal>

/** The scope that an API key needs. The stages read it from the document; a test compares this table with it. */
export const executionScopes = {
  queueRemoteRun: 'runs:write',
  listRuns: 'runs:read',
  getRun: 'runs:read',
  cancelRun: 'runs:write',
  streamRunEvents: 'runs:read',
  getRunArtifact: 'runs:read',
  listWorkflows: 'workflows:read',
  getWorkflow: 'workflows:read',
} satisfies Record<keyof Handlers, string>

export interface ExecutionApiDependencies extends RunDependencies {
  workflows: Workflows
}

export function executionApi(dependencies: ExecutionApiDependencies): Handlers {
  return { ...runOperations(dependencies), ...workflowOperations(dependencies.workflows) }
}
