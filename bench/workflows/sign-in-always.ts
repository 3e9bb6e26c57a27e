/** Signs in like `sign-in`, and keeps evidence, with the DOM of each action and pictures. */
import { defineWorkflow } from 'execution-service/workflow'
import { definition } from './sign-in.ts'

export default defineWorkflow({ ...definition, id: 'sign-in-always', evidence: 'always' })
