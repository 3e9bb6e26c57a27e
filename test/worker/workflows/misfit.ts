/** Returns what its output schema does not allow. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'misfit',
  version: '1.0.0',
  title: 'Misfit',
  variables: { type: 'object' },
  output: {
    type: 'object',
    properties: { words: { type: 'array', items: { type: 'object', properties: { count: { type: 'integer' } } } } },
  },
  run: () => ({ words: [{ count: 1 }, { count: 'two' }] }) as never,
})
