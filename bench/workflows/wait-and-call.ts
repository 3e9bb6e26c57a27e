/** Waits for an answer and returns when it went on, or calls runs, or has a step in place of each call. */
import { defineWorkflow } from 'execution-service/workflow'

const now = () => performance.timeOrigin + performance.now()

export default defineWorkflow({
  id: 'wait-and-call',
  version: '1.0.0',
  title: 'Wait for an answer, or call runs',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['how'],
    properties: { how: { enum: ['answer', 'call', 'step'] }, count: { type: 'integer' } },
  },
  output: {},
  waits: { answer: { schema: {} } },
  async run({ variables, waitFor, call, step }) {
    const { how, count = 1 } = variables as { how: string; count?: number }
    if (how === 'answer') {
      await waitFor('answer')
      return now()
    }
    const names = Array.from({ length: count }, (_, index) => `each ${index}`)
    const act = (name: string) => (how === 'call' ? call(name, 'first-line') : step(name, now))
    await Promise.all(names.map(act))
    return null
  },
})
