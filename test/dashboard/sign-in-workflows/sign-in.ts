/** Signs in, as far as its definition says. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'sign-in',
  version: '1.0.0',
  title: 'Sign in to a site',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['userName', 'password'],
    properties: {
      userName: { type: 'string', minLength: 1 },
      password: { type: 'string', minLength: 1, writeOnly: true },
    },
  },
  output: {},
  browser: true,
  signsIn: true,
  signedOut: async () => true,
  run: async () => null,
})
