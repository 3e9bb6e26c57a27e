import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

// Questions that are open.
const page = unwrap(
  await client.listWaits({ params: { query: { kind: 'answer', status: 'open' } } }),
)
for (const wait of page.data) console.log(wait.runId, wait.name, wait.title, wait.deadline)
