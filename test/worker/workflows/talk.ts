/** Reports something in every way: log, console, progress and steps. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'talk',
  version: '1.2.3',
  title: 'Talk',
  variables: {
    type: 'object',
    additionalProperties: false,
    properties: { greeting: { type: 'string', default: 'Hello' } },
  },
  output: { type: 'object', required: ['said'], properties: { said: { type: 'string' } } },
  async run({ variables, log, progress, step }) {
    log(`${variables.greeting} from log`)
    // biome-ignore lint/suspicious/noConsole: the test expects the line in the run's log.
    console.error('and from the %s', 'console', { at: 1 })
    progress(50, 'half way')
    const said = await step('speak', async () => `${variables.greeting}!`)
    log('that was all', 'warn')
    progress(170)
    return { said }
  },
})
