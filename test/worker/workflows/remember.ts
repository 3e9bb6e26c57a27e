/** Returns what earlier runs in its process have left there, and leaves its own secret. */
import { defineWorkflow } from 'execution-service/workflow'

const kept: string[] = []

export default defineWorkflow({
  id: 'remember',
  version: '1.0.0',
  title: 'Remember',
  variables: { type: 'object', required: ['secret'], properties: { secret: { type: 'string' } } },
  output: {},
  run: ({ variables }) => ({ pid: process.pid, kept: kept.splice(0, kept.length, variables.secret) }),
})
