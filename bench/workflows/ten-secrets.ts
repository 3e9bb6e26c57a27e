/** The same as `first-line`, with ten secrets. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'ten-secrets',
  version: '1.0.0',
  title: 'Get ten secrets',
  variables: { type: 'object', additionalProperties: true },
  output: { type: 'number' },
  secrets: [
    ...['SECRET_0', 'SECRET_1', 'SECRET_2', 'SECRET_3', 'SECRET_4'],
    ...['SECRET_5', 'SECRET_6', 'SECRET_7', 'SECRET_8', 'SECRET_9'],
  ],
  run: () => performance.timeOrigin + performance.now(),
})
