/** Holds like `hold`, but only one of its runs at a time. */
import { defineWorkflow } from 'execution-service/workflow'
import hold from './hold.ts'

export default defineWorkflow({ ...hold, id: 'single', title: 'Hold alone', concurrencyLimit: 1 })
