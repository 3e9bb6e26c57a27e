/** Returns when its page was open, in milliseconds since 1970 with fractions, and its process id. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'first-page',
  version: '1.0.0',
  title: 'Return the time of the first page',
  variables: {
    type: 'object',
    additionalProperties: false,
    // A failed attempt's process is not reused.
    properties: { fail: { type: 'boolean', default: false } },
  },
  output: {
    type: 'object',
    required: ['at', 'pid'],
    properties: { at: { type: 'number' }, pid: { type: 'integer' } },
  },
  browser: true,
  async run({ variables, browser }) {
    const context = await browser()
    await context.newPage()
    const at = performance.timeOrigin + performance.now()
    if (variables.fail) throw new Error('Failed on request.')
    return { at, pid: process.pid }
  },
})
