import { createExecutionClient, unwrap } from 'execution-service-client'

const { API_KEY = '', RUN_ID = '' } = process.env
const client = createExecutionClient({ baseUrl: 'http://127.0.0.1:3001', apiKey: API_KEY })

const run = unwrap(await client.rerunRun({ params: { path: { runId: RUN_ID } } }))
console.log(run.id, run.status, 'repeats', run.rerunOf)
