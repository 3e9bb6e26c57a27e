/** The Execution API's operations on workflows. */
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import type { components } from '../../../generated/execution.v1/types.ts'
import { invalidRequest } from '../../contract/problem.ts'
import type { Cursors } from '../../storage/cursors.ts'
import type { Principal } from '../api-keys/api-key.ts'
import { notFound } from '../problems.ts'
import type { Workflow } from './workflow.ts'
import type { Workflows } from './workflows.ts'

type Operations = Pick<ExecutionV1Handlers<Principal>, 'listWorkflows' | 'getWorkflow'>

export interface WorkflowDependencies {
  workflows: Workflows
  cursors: Cursors
}

/** Identifies the list in its cursors. */
const listName = 'workflows'

export function workflowOperations({ workflows, cursors }: WorkflowDependencies): Operations {
  return {
    async listWorkflows({ query: { limit, cursor } }) {
      const after = cursor === undefined ? '' : cursors.read(listName, cursor)
      if (after === undefined) return invalidRequest([{ parameter: 'cursor', detail: 'is not a cursor of this list' }])
      const rest = workflows.list().filter(({ id }) => id > after)
      const page = rest.slice(0, limit)
      const last = rest.length > limit ? page.at(-1) : undefined
      return {
        status: 200,
        body: { data: page.map(toResponse), nextCursor: last ? cursors.write(listName, last.id) : null },
      }
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
