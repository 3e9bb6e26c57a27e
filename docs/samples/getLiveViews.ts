import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', RUN_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { runId: RUN_ID, attempt: 1 }
const { liveViews } = unwrap(
  await client.getLiveViews({ params: { path, query: { waitSeconds: 1 } } }),
)
console.log(`liveViews: ${liveViews.length}`)
