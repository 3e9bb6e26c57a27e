/** Blocks its thread for ever. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'block',
  version: '1.0.0',
  title: 'Block the thread',
  variables: { type: 'object', additionalProperties: false },
  output: {},
  timeLimitSeconds: 2,
  run() {
    for (;;) Math.random()
  },
})
