import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const { data: workflows } = unwrap(await client.listWorkflows())
for (const { id, version, title } of workflows) console.log(id, version, title)
