/** Has a pattern, which the API matches against what callers send. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'match',
  version: '1.0.0',
  title: 'Match',
  variables: { type: 'object', properties: { text: { type: 'string', pattern: '^[a-z]+(-[a-z]+)*$' } } },
  output: {},
  run: () => null,
})
