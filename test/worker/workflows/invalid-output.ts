/** Returns an output that violates its schema. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'invalid-output',
  version: '1.0.0',
  title: 'Misfit',
  variables: { type: 'object' },
  output: {
    type: 'object',
    properties: { words: { type: 'array', items: { type: 'object', properties: { count: { type: 'integer' } } } } },
  },
  run: () => ({ words: [{ count: 1 }, { count: 'two' }] }) as never,
})
