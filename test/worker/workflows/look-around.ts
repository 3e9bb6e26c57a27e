/** Tells what it is given. */
import { defineWorkflow } from 'execution-service/workflow'

export default defineWorkflow({
  id: 'look-around',
  version: '1.0.0',
  title: 'Look around',
  variables: { type: 'object' },
  output: { type: 'array', items: { type: 'string' } },
  run: (context) => Object.keys(context),
})
