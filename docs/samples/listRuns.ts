import { createExecutionClient } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

for await (const run of client.runs.list({ status: 'queued', limit: 100 })) {
  console.log(run.id, run.workflowId, run.createdAt)
}
