import { createExecutionClient } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const { data: batch, error } = await client.queueRemoteRunBatch({
  params: {
    // Repeated calls with this key queue one batch. Without it, the client generates a key for its own retries.
    header: { 'Idempotency-Key': 'words-2026-11-20' },
  },
  body: {
    runs: ['README.md', 'LICENSE'].map((path) => ({
      workflowId: 'count-words',
      variableData: { path },
    })),
  },
})
if (error) {
  // `errors` lists the invalid entries, such as `/runs/17/variableData/path`. No run was queued.
  console.error(error.status, error.detail, error.errors)
  process.exit(1)
}
for (const run of batch.data) console.log(run.id, run.status)
