/** Logs a line, and stores the time of its first line as a step. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'one-step',
  version: '1.0.0',
  title: 'Store the time of the first line as a step',
  variables: { type: 'object', additionalProperties: false },
  output: { type: 'number' },
  async run({ log, step }) {
    log('A line')
    return step('now', () => performance.timeOrigin + performance.now())
  },
})
