/** Ends at once; has a variable of every type. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'greet',
  version: '1.0.0',
  title: 'Greet somebody',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['name'],
    properties: {
      name: { type: 'string', minLength: 1, maxLength: 40 },
      times: { type: 'integer', minimum: 1, maximum: 3 },
      warmth: { type: 'number', exclusiveMinimum: 0 },
      style: { enum: ['formal', 'friendly'] },
      tags: { type: 'array', maxItems: 3, items: { type: 'string' } },
      address: { type: 'object', additionalProperties: false, properties: { city: { type: 'string' } } },
      token: { type: 'string', minLength: 8, writeOnly: true },
    },
  },
  output: {
    type: 'object',
    additionalProperties: false,
    required: ['greeting'],
    properties: { greeting: { type: 'string' } },
  },
  run({ variables, log, progress }) {
    log(`Greeting ${variables.name}`)
    progress(50, 'Halfway')
    return { greeting: `Hello, ${variables.name}!` }
  },
})
