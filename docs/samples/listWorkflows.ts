import { createExecutionClient } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

for await (const { id, version, title } of client.workflows.list()) console.log(id, version, title)
