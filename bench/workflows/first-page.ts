/** Returns when its page was open, in milliseconds since 1970 with fractions, and in which process. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'first-page',
  version: '1.0.0',
  title: 'Tell when the first page was open',
  variables: {
    type: 'object',
    additionalProperties: false,
    // A process is not used again after an attempt that failed.
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
    if (variables.fail) throw new Error('As it was told to.')
    return { at, pid: process.pid }
  },
})
