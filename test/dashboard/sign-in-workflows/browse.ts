/** Uses a browser, as far as its definition says. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'browse',
  version: '1.0.0',
  title: 'Browse a site',
  variables: {
    type: 'object',
    additionalProperties: false,
    properties: { url: { type: 'string', default: 'https://example.com' } },
  },
  output: {},
  browser: true,
  run: async () => null,
})
