import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', RUN_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const wait = unwrap(
  await client.completeWait({
    params: { path: { runId: RUN_ID, name: 'approval' } },
    body: { value: { approved: true } },
  }),
)
console.log(wait.status, wait.value)
