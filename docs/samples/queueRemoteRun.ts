import { createExecutionClient } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const { data: run, error } = await client.queueRemoteRun({
  params: {
    path: { workflowId: 'count-words' },
    // Repeated calls with this key queue one run. Without it, the client generates a key for its own retries.
    header: { 'Idempotency-Key': 'words-2026-11-20' },
  },
  body: { variableData: { path: 'README.md', top: 5 } },
})
if (error) {
  // `errors` lists the invalid members, such as variables that do not match the workflow's schema.
  console.error(error.status, error.detail, error.errors)
  process.exit(1)
}
console.log(run.id, run.status)
