/** The Execution API's operations on workflows. */
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import type { components } from '../../../generated/execution.v1/types.ts'
import { matchesWeakly } from '../../contract/conditional-requests.ts'
import { EncodedJson } from '../../contract/i-json.ts'
import type { Cursors } from '../../storage/cursors.ts'
import type { Principal } from '../api-keys/api-key.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { notFound, wrongCursor } from '../problems.ts'
import type { Workflow } from './workflow.ts'
import type { Workflows } from './workflows.ts'
import { workflowsDocument } from './workflows-document.ts'

type Operations = Pick<ExecutionV1Handlers<Principal>, 'listWorkflows' | 'getWorkflow' | 'getWorkflowsDocument'>

export interface WorkflowDependencies {
  workflows: WorkflowRegistry
  cursors: Cursors
  /** The address at which callers reach the API. */
  executionUrl(): string
}

/** Identifies the list in its cursors. */
const listName = 'workflows'

export function workflowOperations({ workflows, cursors, executionUrl }: WorkflowDependencies): Operations {
  return {
    async listWorkflows({ principal, query: { limit, cursor } }) {
      const after = cursor === undefined ? '' : cursors.read(listName, cursor)
      if (after === undefined) return wrongCursor
      const visible = workflows.current(principal.accountId)
      const rest = visible.list().filter(({ id }) => id > after)
      const page = rest.slice(0, limit)
      const last = rest.length > limit ? page.at(-1) : undefined
      const data = page.map((workflow) => toResponse(workflow, visible))
      return { status: 200, body: { data, nextCursor: last ? cursors.write(listName, last.id) : null } }
    },

    async getWorkflow({ principal, path }) {
      const visible = workflows.current(principal.accountId)
      const workflow = visible.get(path.workflowId)
      return workflow ? { status: 200, body: toResponse(workflow, visible) } : notFound('workflow')
    },

    async getWorkflowsDocument({ principal, header, reserve }) {
      const { bytes, etag } = workflowsDocument(workflows.current(principal.accountId), executionUrl())
      const headers = { ETag: etag }
      const known = header['If-None-Match']
      if (known && matchesWeakly(known, etag)) return { status: 304, headers }
      await reserve(bytes.length)
      return { status: 200, headers, body: new EncodedJson(bytes) as never }
    },
  }
}

function toResponse(workflow: Workflow, visible: Workflows): components['schemas']['Workflow'] {
  // Not all members: a deployed definition also has the path of its module.
  const { id, version, title, description, variables, output, retry } = workflow
  const { timeLimitSeconds, concurrency = null, throttle = null, usesBrowser, deprecated } = workflow
  const { secrets = [], settings = {} } = workflow
  const described = { id, version, deploymentId: visible.deploymentOf(id) ?? '', title, description }
  const schemas = { variablesSchema: variables, outputSchema: output }
  const limits = { timeLimitSeconds, concurrency, throttle }
  return {
    ...described,
    ...schemas,
    retry,
    ...limits,
    usesBrowser,
    signsIn: workflow.signsIn ?? false,
    secrets: [...secrets],
    settings: { ...settings },
    deprecated,
  }
}
