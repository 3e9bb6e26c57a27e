/** Runs until a file exists or the run is cancelled. */
import { existsSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'hold',
  version: '1.0.0',
  title: 'Hold until a file exists',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['file'],
    properties: { file: { type: 'string', minLength: 1 } },
  },
  output: { type: 'string' },
  async run({ variables, log, signal }) {
    log('Holding')
    while (!existsSync(variables.file)) await setTimeout(10, undefined, { signal })
    log('Released')
    return 'released'
  },
})
