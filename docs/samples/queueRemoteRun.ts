import { createExecutionClient } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const { data: run, error } = await client.queueRemoteRun({
  params: {
    path: { workflowId: 'count-words' },
    // However often this is sent, it queues one run. Without a key, the client makes one for its own retries.
    header: { 'Idempotency-Key': 'words-2026-11-20' },
  },
  body: { variableData: { path: 'README.md', top: 5 } },
})
if (error) {
  // `errors` names, for example, each variable that does not fit the workflow.
  console.error(error.status, error.detail, error.errors)
  process.exit(1)
}
console.log(run.id, run.status)
