/** Asks a person for approval. While it waits, the run has no process. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'approve',
  version: '1.0.0',
  title: 'Ask for approval',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['request'],
    properties: { request: { type: 'string', minLength: 1 } },
  },
  output: {
    type: 'object',
    additionalProperties: false,
    required: ['approved'],
    properties: { approved: { type: 'boolean' } },
  },
  waits: { approval: { title: 'Approve this request?', schema: { type: 'boolean' } } },
  async run({ variables, waitFor, sleep }) {
    const approval = await waitFor('approval', { show: { request: variables.request }, timeoutSeconds: 7 * 86_400 })
    if (!approval.ok || !approval.value) return { approved: false }
    // The requester may withdraw it until then, by cancelling the run.
    await sleep('withdrawal', { hours: 1 })
    return { approved: true }
  },
})
