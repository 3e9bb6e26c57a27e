/** Imports a package with native code, which deployments leave outside. */
import { hash } from '@node-rs/argon2'
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'hash',
  version: '1.0.0',
  title: typeof hash,
  variables: { type: 'object', required: ['text'], properties: { text: { type: 'string' } } },
  output: { type: 'string' },
  run: ({ variables: { text } }) => hash(text),
})
