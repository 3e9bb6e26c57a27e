/** Returns what it is given, which its output schema may not allow. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'strict',
  version: '1.0.0',
  title: 'Return the value',
  variables: { type: 'object', properties: { value: {} } },
  output: {
    type: 'object',
    additionalProperties: false,
    required: ['name'],
    properties: {
      name: { type: 'string', minLength: 2 },
      kind: { enum: ['a', 'b'], default: 'a' },
      token: { type: 'string', writeOnly: true },
    },
  },
  run: ({ variables }) => variables.value as never,
})
