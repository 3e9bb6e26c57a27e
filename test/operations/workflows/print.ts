/** Declares a browser without using it; creates an artifact. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'print',
  version: '1.0.0',
  title: 'Print a page',
  browser: true,
  variables: { type: 'object', additionalProperties: false },
  output: { type: 'string' },
  async run({ artifact }) {
    await artifact('hello.txt', 'Hello')
    return 'printed'
  },
})
