/** The Execution API's operations on workflows, in the document's words. */
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import type { components } from '../../../generated/execution.v1/types.ts'
import { notFound } from '../../contract/problem.ts'
import type { Principal } from '../api-keys/api-key.ts'
import type { Workflow } from './workflow.ts'
import type { Workflows } from './workflows.ts'

type Wire = components['schemas']['Workflow']
type Operations = Pick<ExecutionV1Handlers<Principal>, 'listWorkflows' | 'getWorkflow'>

export function workflowOperations(workflows: Workflows): Operations {
  return {
    async listWorkflows() {
      return { status: 200, body: { data: workflows.list().map(wireOf) } }
    },

    async getWorkflow({ path }) {
      const workflow = workflows.get(path.workflowId)
      return workflow ? { status: 200, body: wireOf(workflow) } : notFound('workflow')
    },
  }
}

function wireOf({ variables, output, ...same }: Workflow): Wire {
  return { ...same, variablesSchema: variables, outputSchema: output }
}
