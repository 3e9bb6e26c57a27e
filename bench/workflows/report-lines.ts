/** Logs lines at a steady rate, for followers of its events. */
import { setTimeout as delay } from 'node:timers/promises'
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'report-lines',
  version: '1.0.0',
  title: 'Log lines at a steady rate',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['lines', 'intervalMilliseconds'],
    properties: { lines: { type: 'integer' }, intervalMilliseconds: { type: 'integer' } },
  },
  output: {},
  async run({ variables, log, signal }) {
    const { lines, intervalMilliseconds } = variables as Record<string, number>
    for (let line = 1; line <= (lines ?? 0); line += 1) {
      await delay(intervalMilliseconds, undefined, { signal })
      log(`Line ${line}`)
    }
    return null
  },
})
