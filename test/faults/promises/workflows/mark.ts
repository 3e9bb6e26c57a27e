/** Appends a line to the run's file when an attempt starts and when it ends, and works for a while in between. */
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'mark',
  version: '1.0.0',
  title: 'Leave a mark',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['directory', 'milliseconds'],
    properties: { directory: { type: 'string' }, milliseconds: { type: 'integer' } },
  },
  output: { type: 'integer' },
  async run({ variables, runId, attempt, signal }) {
    const mark = (what: string) => appendFileSync(join(variables.directory, runId), `${what} ${attempt}\n`)
    mark('started')
    await setTimeout(variables.milliseconds, undefined, { signal })
    mark('done')
    return attempt
  },
})
