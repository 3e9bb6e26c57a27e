/** Counts the executions of each step in a file, and fails between steps as often as its variables say. */
import { appendFile } from 'node:fs/promises'
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'steps',
  version: '1.0.0',
  title: 'Steps',
  variables: {
    type: 'object',
    required: ['file'],
    properties: { file: { type: 'string' }, failures: { type: 'integer', default: 0 }, name: { type: 'string' } },
  },
  output: {},
  retry: { maxAttempts: 3, backoffSeconds: 0.001, backoffFactor: 1 },
  async run({ variables, attempt, step }) {
    const count = (name: string) => appendFile(variables.file, `${name} ${attempt}\n`)
    // A name that every object inherits.
    const first = await step('constructor', async () => {
      await count('first')
      return { madeBy: attempt, nothing: undefined }
    })
    await step('nothing', () => undefined)
    if (variables.name !== undefined) await step(variables.name, () => undefined)
    if (attempt <= (variables.failures ?? 0)) throw new RangeError(`Attempt ${attempt} fails.`)
    const second = await step('second', async () => {
      await count('second')
      return attempt
    })
    return { first, second }
  },
})
