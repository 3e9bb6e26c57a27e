/** Declares that it signs browser contexts in, without using its browser. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'sign-in',
  version: '1.0.0',
  title: 'Sign in',
  browser: true,
  signsIn: true,
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['user', 'password'],
    properties: { user: { type: 'string' }, password: { type: 'string', writeOnly: true } },
  },
  output: { type: 'null' },
  signedOut: async () => false,
  async run() {
    return null
  },
})
