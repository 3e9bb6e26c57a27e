/** Writes a file when it has started, and waits until another file exists: patiently, or blocking its thread. */
import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'wait',
  version: '1.0.0',
  title: 'Wait',
  variables: {
    type: 'object',
    required: ['started', 'until'],
    properties: {
      started: { type: 'string', description: 'Gets a line for each attempt: its number and its process.' },
      until: { type: 'string' },
      how: { enum: ['patiently', 'ignoring its signal', 'blocking'], default: 'patiently' },
    },
  },
  output: { type: 'object', required: ['attempt'], properties: { attempt: { type: 'integer' } } },
  async run({ variables, attempt, signal, log }) {
    log(`attempt ${attempt} waits`)
    appendFileSync(variables.started, `${attempt} ${process.pid}\n`)
    while (!existsSync(variables.until)) {
      if (variables.how === 'patiently') await delay(10, undefined, { signal })
      if (variables.how === 'ignoring its signal') await delay(10)
    }
    return { attempt }
  },
})
