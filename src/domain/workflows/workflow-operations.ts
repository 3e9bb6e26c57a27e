/** The Execution API's operations on workflows. */
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import type { components } from '../../../generated/execution.v1/types.ts'
import type { Principal } from '../api-keys/api-key.ts'
import { notFound } from '../problems.ts'
import type { Workflow } from './workflow.ts'
import type { Workflows } from './workflows.ts'

type Operations = Pick<ExecutionV1Handlers<Principal>, 'listWorkflows' | 'getWorkflow'>

export function workflowOperations(workflows: Workflows): Operations {
  return {
    async listWorkflows() {
      return { status: 200, body: { data: workflows.list().map(toResponse) } }
    },

    async getWorkflow({ path }) {
      const workflow = workflows.get(path.workflowId)
      return workflow ? { status: 200, body: toResponse(workflow) } : notFound('workflow')
    },
  }
}

function toResponse({ variables, output, ...members }: Workflow): components['schemas']['Workflow'] {
  return { ...members, variablesSchema: variables, outputSchema: output }
}
