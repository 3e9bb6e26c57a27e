/** Returns the time of its first line, in milliseconds since 1970 with fractions. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'first-line',
  version: '1.0.0',
  title: 'Return the time of the first line',
  variables: { type: 'object', additionalProperties: false, properties: { note: { type: 'string' } } },
  output: { type: 'number' },
  run: () => performance.timeOrigin + performance.now(),
})
