import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', RUN_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

// A run that has not finished is refused (409): cancel it first.
unwrap(await client.deleteRun({ params: { path: { runId: RUN_ID } } }))
console.log('Erased', RUN_ID)
