/** Like `hold`, with a concurrency limit of 1. */
import { defineWorkflow } from 'execution-service/workflow'
import hold from './hold.ts'

export default defineWorkflow({
  ...hold,
  id: 'single',
  title: 'Hold alone',
  concurrency: { limit: 1, per: 'workflow' },
})
