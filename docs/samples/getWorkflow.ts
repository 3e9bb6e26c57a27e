import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const path = { workflowId: 'count-words' }
const workflow = unwrap(await client.getWorkflow({ params: { path } }))
// The JSON Schema of variableData.
console.log(JSON.stringify(workflow.variablesSchema, null, 2))
