/** Greets a person by name, and says how long the greeting is. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'greet',
  version: '1.0.0',
  title: 'Greet by name',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['name'],
    properties: {
      name: { type: 'string', minLength: 1 },
      greeting: { type: 'string', default: 'Hello' },
    },
  },
  output: {
    type: 'object',
    additionalProperties: false,
    required: ['text', 'characters'],
    properties: { text: { type: 'string' }, characters: { type: 'integer' } },
  },
  retry: { maxAttempts: 3 },
  async run({ variables, step, log, progress }) {
    // The result of a step is stored: a later attempt does not repeat it.
    const text = await step('compose', () => `${variables.greeting}, ${variables.name}!`)
    log(`The greeting is "${text}".`)
    progress(100)
    return { text, characters: text.length }
  },
})
