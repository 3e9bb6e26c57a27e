import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const document = unwrap(await client.getWorkflowsDocument())
// The operations of workflows are the last ones.
console.log(Object.keys(document.paths).join('\n'))
