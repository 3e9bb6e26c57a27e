/** Signs in like `sign-in`, and records evidence, which is not kept because the run succeeds. */
import { defineWorkflow } from 'execution-service/workflow'
import { definition } from './sign-in.ts'

export default defineWorkflow({ ...definition, id: 'sign-in-recorded', evidence: 'onFailure' })
