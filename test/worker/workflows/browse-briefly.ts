/** Browses, with a short time limit. */
import { defineWorkflow } from 'execution-service/workflow'
import { definition } from './browse.ts'

export default defineWorkflow({ ...definition, id: 'browse-briefly', timeLimitSeconds: 15 })
