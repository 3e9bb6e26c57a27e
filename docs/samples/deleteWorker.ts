import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', WORKER_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { workerId: WORKER_ID }
unwrap(await client.deleteWorker({ params: { path } }))
console.log('Signed off', WORKER_ID)
