/** Waits until it is aborted, and for a time that the caller chooses. */
import { setTimeout as delay } from 'node:timers/promises'
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'patient',
  version: '1.0.0',
  title: 'Wait',
  variables: {
    type: 'object',
    required: ['how'],
    properties: { how: { enum: ['until aborted', 'and clean up', 'deaf', 'briefly'] } },
  },
  output: {},
  timeLimitSeconds: 1,
  async run({ variables: { how }, signal, log, step }) {
    log('waiting')
    if (how === 'briefly') return delay(50, 'done')
    if (how === 'deaf') return delay(30_000, 'too late')
    try {
      await delay(30_000, undefined, { signal })
    } catch (error) {
      log(`${(error as Error).name}: ${signal.reason.message}`)
      if (how === 'and clean up') {
        await step('after the end', () => 1).catch(({ message }) => log(`no step: ${message}`))
        return 'cleaned up'
      }
      throw error
    }
  },
})
