/** Waits for an answer, then for a time, then for a run that it calls; counts how often each part has gone on. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'ask',
  version: '1.0.0',
  title: 'Ask',
  variables: { type: 'object', additionalProperties: false, properties: { double: { type: 'integer' } } },
  output: {},
  waits: { answer: { schema: { type: 'integer' } } },
  retry: { maxAttempts: 3, backoffSeconds: 0 },
  async run({ variables, waitFor, sleep, call, step }) {
    if (variables.double !== undefined) return 2 * variables.double
    const answer = await waitFor('answer', { timeoutSeconds: 30 * 86_400 })
    if (!answer.ok) return 'timed out'
    const value = answer.value as number
    await step('answered', () => value)
    await sleep('pause', { seconds: 3 })
    return { value, doubled: await call('double', 'ask', { double: value }) }
  },
})
