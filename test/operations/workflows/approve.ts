/** Waits for an approval. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'approve',
  version: '1.0.0',
  title: 'Approve a refund',
  variables: { type: 'object', additionalProperties: false, properties: { amount: { type: 'number', default: 5 } } },
  output: {},
  waits: {
    approval: {
      title: 'Refund?',
      description: 'Refunds above 100 € need a reason.',
      schema: {
        type: 'object',
        additionalProperties: false,
        required: ['approved'],
        properties: { approved: { type: 'boolean' }, reason: { type: 'string', maxLength: 80 } },
      },
    },
    discount: { schema: { type: 'integer', title: 'Percent', minimum: 1, maximum: 100 } },
    reviewers: { schema: { type: 'array', items: { type: 'string' }, minItems: 2 } },
  },
  async run({ variables, waitFor }) {
    return waitFor('approval', { title: `Refund ${variables.amount} €?`, show: { amount: variables.amount } })
  },
})
