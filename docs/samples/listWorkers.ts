import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const page = unwrap(await client.listWorkers())
for (const worker of page.data) console.log(worker.name, worker.language, worker.capacity)
