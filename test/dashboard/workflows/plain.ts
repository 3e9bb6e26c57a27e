/** Uses no browser. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'plain',
  version: '1.0.0',
  title: 'Do without a browser',
  variables: { type: 'object', additionalProperties: false, properties: {} },
  output: {},
  run: async () => null,
})
