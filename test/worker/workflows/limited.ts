/** Exceeds its time limit and ignores its AbortSignal. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'limited',
  version: '1.0.0',
  title: 'Limited',
  variables: { type: 'object', properties: { blocking: { type: 'boolean', default: false } } },
  output: {},
  timeLimitSeconds: 0.3,
  async run({ variables, signal }) {
    while (variables.blocking);
    // A late result does not count.
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    return 'too late'
  },
})
