import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const action = unwrap(await client.bulkCancelRuns({ body: { tag: ['customer:42'] } }))
console.log(action.id, action.kind, action.status)
