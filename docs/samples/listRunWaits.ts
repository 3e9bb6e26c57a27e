import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', RUN_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const page = unwrap(await client.listRunWaits({ params: { path: { runId: RUN_ID } } }))
for (const wait of page.data) console.log(wait.runId, wait.name, wait.kind, wait.status)
